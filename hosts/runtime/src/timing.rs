//! Predicted times of launches and copies: `WAVESIM_TIMING`, and reports of launches: `WAVESIM_PROFILE`.

use crate::{Error, clock, message};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use wavesim::fault::Fault;
use wavesim::loader::prepared::Prepared;
use wavesim::sched::dispatch::{Dispatch, RunStats};
use wavesim_cost::data::{self, CostError, DeviceCost};
use wavesim_cost::model::{Effort, History, Region, copy_microseconds};
use wavesim_cost::profile::{self, Costs};
use wavesim_cost::report;
use wavesim_cost::what_if::Changes;

/// How launches are timed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimingSettings {
    /// The device whose times are predicted, or a file (.toml).
    pub device: Option<String>,
    /// Directory of the reports of launches.
    pub profile: Option<PathBuf>,
}

impl TimingSettings {
    /// Returns whether launches are timed or profiled.
    pub fn any(&self) -> bool {
        self.device.is_some() || self.profile.is_some()
    }
}

/// Returns the costs of a device, by its name or by a file.
///
/// # Errors
/// The file is malformed, or there is no such device.
pub fn open_device(text: &str) -> Result<DeviceCost, String> {
    let name = text.split_once(',').map_or(text, |(name, _)| name);
    if name.ends_with(".toml") {
        let text = wavesim::files::read_text(name.as_ref()).map_err(|e| e.to_string())?;
        return DeviceCost::parse(name, &text).map_err(|e| e.to_string());
    }
    data::device(name).cloned().map_err(|e| e.to_string())
}

/// The timing of a device's launches.
pub struct Timing {
    settings: TimingSettings,
    costs: Costs,
    state: Mutex<State>,
}

/// What earlier launches have left.
#[derive(Default)]
struct State {
    history: History,
    /// Launches by kernel.
    launches: BTreeMap<String, u64>,
}

impl Timing {
    /// Creates the timing of launches for an architecture.
    pub(crate) fn new(
        settings: &TimingSettings,
        arch: wavesim::arch::Arch,
    ) -> Result<Option<Timing>, String> {
        if !settings.any() {
            return Ok(None);
        }
        let device = match &settings.device {
            Some(name) => open_device(name)?,
            None => data::device_of(arch).map_err(|e| e.to_string())?.clone(),
        };
        if device.arch() != arch {
            let e = CostError::OtherArch {
                device: device.device.clone(),
                has: device.arch().name().to_string(),
                needs: arch.name(),
            };
            return Err(e.to_string());
        }
        let changes =
            settings.device.as_deref().and_then(|text| Some(text.split_once(',')?.1)).unwrap_or_default();
        let costs = Changes::parse(changes).and_then(|changes| {
            Costs::of(&device).and_then(|costs| costs.changed(&changes)).map_err(|e| e.to_string())
        })?;
        if settings.device.is_some() {
            clock::predict();
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                message::report(&format!(
                    "times are predicted for {}, not measured; {}",
                    device.title, device.calibration
                ));
            });
        }
        Ok(Some(Timing { settings: settings.clone(), costs, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a launch, and advances the predicted clock. `kernel` names its report.
    pub(crate) fn run(
        &self,
        prepared: &Prepared,
        dispatch: &Dispatch<'_>,
        regions: &[Region],
        kernel: &str,
        number: u64,
    ) -> Result<(RunStats, Option<Box<Fault>>), Error> {
        let mut state = self.state();
        let state = &mut *state;
        let launches = state.launches.entry(kernel.to_string()).or_default();
        let effort = match self.settings.profile {
            Some(_) => Effort::REPORT,
            None => Effort::TIME.after(*launches),
        };
        *launches += 1;
        let launch = (&mut state.history, clock::take_waited());
        let run = profile::run(dispatch, &prepared.memory, regions, &self.costs, &effort, launch);
        let (stats, result) = run.map_err(|e| Error::Timing(e.to_string()))?;
        let profile = match result {
            Ok(profile) => profile,
            Err(fault) => return Ok((stats, Some(fault))),
        };
        clock::advance(profile.prediction.microseconds);
        if let Some(folder) = &self.settings.profile {
            std::fs::create_dir_all(folder)
                .map_err(|e| Error::Timing(format!("{}: {e}", folder.display())))?;
            let name = format!("{number:06}-{kernel}");
            let program = &prepared.program;
            let html = report::html(&profile, program, kernel, &[]);
            let json = report::json(&profile, program).to_string();
            for (extension, text) in [("html", html), ("json", json)] {
                let path = folder.join(format!("{name}.{extension}"));
                wavesim::files::write(&path, |out| out.write_all(text.as_bytes()))
                    .map_err(|e| Error::Timing(format!("{}: {e}", path.display())))?;
            }
        }
        Ok((stats, None))
    }

    /// Advances the predicted clock by a copy. `device` states whether both sides are memory of the device.
    pub(crate) fn copy(&self, bytes: u64, device: bool) {
        if self.settings.device.is_some() {
            let first = clock::take_waited();
            clock::advance(copy_microseconds(&self.costs.device, bytes, device, first));
        }
    }
}
