//! Predicted times of launches and copies: `WAVESIM_TIMING`, and reports of launches: `WAVESIM_PROFILE`.

use crate::{Error, clock, message};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use wavesim::arch::Arch;
use wavesim::fault::Fault;
use wavesim::loader::prepared::Prepared;
use wavesim::sched::dispatch::{self, Dispatch, RunStats};
use wavesim_cost::data::{self, CostError, DeviceCost, Sample};
use wavesim_cost::model::{Effort, History, Region, copy_microseconds, launch_microseconds};
use wavesim_cost::profile::{self, Costs, Profile};
use wavesim_cost::report;
use wavesim_cost::what_if::Changes;

/// How launches are timed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimingSettings {
    /// The device whose times are predicted, or a file (.toml).
    pub device: Option<String>,
    /// Directory of the reports of launches.
    pub profile: Option<PathBuf>,
    /// Only workgroups that a prediction needs run: results are wrong.
    pub only: bool,
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

/// The timing of a device's launches, or the profiler of a single one.
pub struct Timing {
    settings: TimingSettings,
    costs: Costs,
    state: Mutex<State>,
    /// The names and texts of sources, of a profiler.
    sources: Option<Vec<(String, String)>>,
}

/// The reports of a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profiled {
    /// As `wavesim profile --json` prints it.
    pub json: String,
    /// As `wavesim profile --html` writes it.
    pub html: String,
}

/// What earlier launches have left.
#[derive(Default)]
struct State {
    history: History,
    /// Launches by kernel.
    launches: BTreeMap<String, u64>,
    /// By kernel and numbers of workgroups.
    series: BTreeMap<(String, [u32; 3]), Series>,
    /// What a profiler has found.
    profiled: Option<Profiled>,
}

/// The launches of a kernel with one number of workgroups.
#[derive(Default)]
struct Series {
    launches: u64,
    /// Microseconds of the last one that the model has run, without the launch itself.
    last: f64,
}

impl Series {
    /// Counts a launch; returns whether the model runs it. Of many, it runs some; the others take as long as the one
    /// before.
    fn count(&mut self, sample: &Sample) -> bool {
        let number = self.launches;
        self.launches += 1;
        number < sample.series_all.count() || number.is_multiple_of(sample.series_every.count().max(1))
    }
}

impl Timing {
    /// Creates the timing of launches for an architecture.
    pub(crate) fn new(settings: &TimingSettings, arch: Arch) -> Result<Option<Timing>, String> {
        if !settings.any() {
            return Ok(None);
        }
        let device = match &settings.device {
            Some(name) => open_device(name)?,
            None => data::device_of(arch).map_err(|e| e.to_string())?.clone(),
        };
        let costs = costs(&device, settings.device.as_deref(), arch)?;
        if settings.device.is_some() {
            clock::predict();
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                message::report(&format!(
                    "times are predicted for {}, not measured; {}",
                    device.title, device.calibration
                ));
                if settings.only {
                    message::report(
                        "WAVESIM_TIMING_ONLY: only the workgroups that predictions need run; results are wrong",
                    );
                }
            });
        }
        Ok(Some(Timing { settings: settings.clone(), costs, state: Mutex::default(), sources: None }))
    }

    /// Creates the profiler of one launch, for a device as in `WAVESIM_TIMING`; an empty text is the default device of the
    /// architecture. `sources` are the names and texts of source files.
    ///
    /// # Errors
    /// There is no such device or constant, or it does not run the architecture's code.
    pub fn profiler(text: &str, arch: Arch, sources: Vec<(String, String)>) -> Result<Timing, Error> {
        let text = Some(text.trim()).filter(|text| !text.is_empty());
        let device = match text {
            Some(text) => open_device(text),
            None => data::device_of(arch).cloned().map_err(|e| e.to_string()),
        };
        let costs = device.and_then(|device| costs(&device, text, arch)).map_err(Error::Timing)?;
        let settings = TimingSettings::default();
        Ok(Timing { settings, costs, state: Mutex::default(), sources: Some(sources) })
    }

    /// Returns whether this is the profiler of a launch.
    pub fn is_profiler(&self) -> bool {
        self.sources.is_some()
    }

    /// Returns the reports of a profiler's launch.
    pub fn take(&self) -> Option<Profiled> {
        self.state().profiled.take()
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
        let reports = self.settings.profile.is_some() || self.is_profiler();
        let model = &self.costs.model;
        let effort = match reports {
            true => Effort::report(model),
            false => Effort::time(model).after(*launches, model),
        };
        let effort = Effort { only: self.settings.only, ..effort };
        *launches += 1;
        // The host waits for a launch that it profiles, whatever it has launched before.
        let first = clock::take_waited() || self.is_profiler();
        let series = state.series.entry((kernel.to_string(), dispatch.shape.grid)).or_default();
        if !series.count(&model.sample) && !reports {
            clock::advance(launch_microseconds(&self.costs.device, first) + series.last);
            return Ok(match self.settings.only {
                true => (RunStats::default(), None),
                false => match dispatch::run(dispatch, &prepared.memory) {
                    Ok(stats) => (stats, None),
                    Err(fault) => (RunStats::default(), Some(fault)),
                },
            });
        }
        let launch = (&mut state.history, first);
        let run = profile::run(dispatch, &prepared.memory, regions, &self.costs, &effort, launch);
        let (stats, result) = run.map_err(|e| Error::Timing(e.to_string()))?;
        let profile = match result {
            Ok(profile) => profile,
            Err(fault) => return Ok((stats, Some(fault))),
        };
        series.last = profile.prediction.microseconds - profile.prediction.launch;
        clock::advance(profile.prediction.microseconds);
        if let Some(folder) = &self.settings.profile {
            std::fs::create_dir_all(folder)
                .map_err(|e| Error::Timing(format!("{}: {e}", folder.display())))?;
            let name = format!("{number:06}-{kernel}");
            let Profiled { html, json } = profiled(&profile, prepared, kernel, &[]);
            for (extension, text) in [("html", html), ("json", json)] {
                let path = folder.join(format!("{name}.{extension}"));
                wavesim::files::write(&path, |out| out.write_all(text.as_bytes()))
                    .map_err(|e| Error::Timing(format!("{}: {e}", path.display())))?;
            }
        }
        if let Some(sources) = &self.sources {
            let file = sources.first().map_or("", |(name, _)| name);
            let name = if kernel.is_empty() { file } else { kernel };
            state.profiled = Some(profiled(&profile, prepared, name, sources));
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

/// Returns the costs of a device that runs code of an architecture, with the changes after the comma of a setting.
fn costs(device: &DeviceCost, text: Option<&str>, arch: Arch) -> Result<Costs, String> {
    if device.arch() != arch {
        let e = CostError::OtherArch {
            device: device.device.clone(),
            has: device.arch().name().to_string(),
            needs: arch.name(),
        };
        return Err(e.to_string());
    }
    let changes = text.and_then(|text| Some(text.split_once(',')?.1)).unwrap_or_default();
    let changes = Changes::parse(changes)?;
    Costs::of(device).and_then(|costs| costs.changed(&changes)).map_err(|e| e.to_string())
}

/// Returns the reports of a profile.
fn profiled(profile: &Profile, prepared: &Prepared, kernel: &str, sources: &[(String, String)]) -> Profiled {
    Profiled {
        json: report::json(profile, &prepared.program).to_string(),
        html: report::html(profile, &prepared.program, kernel, sources),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_of_launches_are_sampled() {
        let sample = &data::model().expect("a file").sample;
        let (all, every) = (sample.series_all.count(), sample.series_every.count());
        let mut series = Series::default();
        let modelled = (0..2 * all).filter(|_| series.count(sample)).count() as u64;
        assert_eq!(modelled, all + all / every);
    }
}
