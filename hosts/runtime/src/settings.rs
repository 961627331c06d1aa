//! Environment variables that configure all hosts.

use crate::debug::DebugTarget;
use crate::timing::{self, TimingSettings};
use crate::{Engine, Target, message};
use std::path::PathBuf;
use std::sync::Once;
use wavesim::check::Check;
use wavesim::delayed;
pub use wavesim::environment::VARIABLES;
use wavesim::environment::{misspelt, names};
use wavesim::sharing::{Threads, WrongThreads};

/// Default limit on the number of wave-instructions of a launch.
pub const MAX_INSTRUCTIONS: u64 = 1_000_000_000_000;

/// Default size of a device's memory in bytes.
pub const MEMORY_BYTES: u64 = 16 << 30;

/// What happens after a kernel has faulted. The kernel itself ends in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFault {
    /// The launch returns the fault as an error.
    #[default]
    Error,
    /// The fault is reported on standard error, and the launch succeeds. Launches that are cancelled still
    /// return an error.
    Continue,
    /// The fault is reported on standard error, and the process aborts, as in ROCm's runtime.
    Abort,
}

impl OnFault {
    /// All values with their names.
    pub const NAMES: [(&str, OnFault); 3] =
        [("error", OnFault::Error), ("continue", OnFault::Continue), ("abort", OnFault::Abort)];
}

/// Default configuration of a device's launches. [`Launch`](crate::Launch) can override part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Name of the target, if set.
    pub target: Option<String>,
    /// Names of the targets of several devices; empty for one of `target`.
    pub devices: Vec<String>,
    /// Checks to run on every launch.
    pub checks: Vec<Check>,
    /// Number of random schedules in which every kernel runs before its launch.
    pub explore: u64,
    /// Whether a report about inexact results follows each launch.
    pub fidelity: bool,
    /// File that coverage is written to.
    pub coverage: Option<PathBuf>,
    /// Directory that traces are written to.
    pub trace: Option<PathBuf>,
    /// The launches that are debugged.
    pub debug: Option<DebugTarget>,
    /// Number of host threads.
    pub threads: Threads,
    /// The execution engine.
    pub engine: Engine,
    /// Number of wave-instructions after which a launch faults.
    pub max_instructions: u64,
    /// Exit status of the process if a check or a launch failed; 0 keeps the program's own status.
    pub error_exit_code: u8,
    /// What happens after a fault.
    pub on_fault: OnFault,
    /// File that findings and faults are appended to, a line of JSON each.
    pub report: Option<PathBuf>,
    /// Size of the device's memory in bytes, as HIP and OpenCL programs see it.
    pub memory: u64,
    /// How launches are timed.
    pub timing: TimingSettings,
    /// When memory operations take effect.
    pub delays: delayed::Timing,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            target: None,
            devices: Vec::new(),
            checks: Vec::new(),
            explore: 0,
            fidelity: false,
            coverage: None,
            trace: None,
            debug: None,
            threads: Threads::Auto,
            engine: Engine::default(),
            max_instructions: MAX_INSTRUCTIONS,
            error_exit_code: 0,
            on_fault: OnFault::default(),
            report: None,
            memory: MEMORY_BYTES,
            timing: TimingSettings::default(),
            delays: delayed::Timing::Immediate,
        }
    }
}

/// An environment variable with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}={value}: {reason}")]
pub struct SettingError {
    /// Name of the variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// Why the value is invalid.
    pub reason: String,
}

impl Settings {
    /// Reads the settings from the environment.
    ///
    /// Warns once about variables whose names are misspelt.
    pub fn from_env() -> Result<Settings, SettingError> {
        static WARNED: Once = Once::new();
        WARNED.call_once(|| {
            for warning in misspelt(names()) {
                message::report(&format!("warning: {warning}"));
            }
        });
        Settings::read(|name| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned()))
    }

    /// Reads the settings like [`Settings::from_env`], but looks variables up with `get`.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Settings, SettingError> {
        let given = |name: &str| get(name).filter(|value| !value.is_empty());
        let mut settings = Settings { target: given("WAVESIM_TARGET"), ..Settings::default() };
        if let Some(value) = given("WAVESIM_DEVICES") {
            settings.devices = parse_devices(&value).map_err(|reason| SettingError {
                variable: "WAVESIM_DEVICES",
                value,
                reason,
            })?;
        }
        if let Some(value) = given("WAVESIM_CHECK") {
            settings.checks = parse_checks(&value).map_err(|reason| SettingError {
                variable: "WAVESIM_CHECK",
                value: value.clone(),
                reason,
            })?;
        }
        settings.timing.profile = given("WAVESIM_PROFILE").map(PathBuf::from);
        if let Some(value) = given("WAVESIM_TIMING") {
            let device = timing::open_device(value.trim());
            let device = device.map_err(|reason| SettingError {
                variable: "WAVESIM_TIMING",
                value: value.clone(),
                reason,
            })?;
            // A program for the device needs no second variable.
            settings.target.get_or_insert_with(|| device.processor().to_string());
            settings.timing.device = Some(value.trim().to_string());
        }
        settings.timing.only =
            one_of("WAVESIM_TIMING_ONLY", &given, &[("0", false), ("1", true)])?.unwrap_or(false);
        settings.trace = given("WAVESIM_TRACE").map(PathBuf::from);
        settings.coverage = given("WAVESIM_COVERAGE").map(PathBuf::from);
        settings.fidelity =
            one_of("WAVESIM_FIDELITY", &given, &[("0", false), ("1", true)])?.unwrap_or(false);
        settings.report = given("WAVESIM_REPORT").map(PathBuf::from);
        if let Some(value) = given("WAVESIM_DEBUG") {
            let target = DebugTarget::parse(&value);
            let target =
                target.map_err(|reason| SettingError { variable: "WAVESIM_DEBUG", value, reason })?;
            let commands = given("WAVESIM_DEBUG_COMMANDS").map(PathBuf::from);
            settings.debug = Some(DebugTarget { commands, listen: given("WAVESIM_DEBUG_LISTEN"), ..target });
        }
        if let Some(value) = given("WAVESIM_THREADS") {
            settings.threads = value.parse().map_err(|error: WrongThreads| SettingError {
                variable: "WAVESIM_THREADS",
                value: value.clone(),
                reason: error.to_string(),
            })?;
        }
        if let Some(engine) = one_of("WAVESIM_ENGINE", &given, &Engine::NAMES)? {
            settings.engine = engine;
        }
        settings.explore = number("WAVESIM_EXPLORE", &given)?.unwrap_or(0);
        if let Some(on_fault) = one_of("WAVESIM_ON_FAULT", &given, &OnFault::NAMES)? {
            settings.on_fault = on_fault;
        }
        if let Some(n) = number("WAVESIM_MAX_INSTRUCTIONS", &given)? {
            settings.max_instructions = n;
        }
        if let Some(value) = given("WAVESIM_MEMORY") {
            for part in value.split(',').map(str::trim) {
                if let Ok(timing) = part.parse() {
                    settings.delays = timing;
                    continue;
                }
                settings.memory = bytes(part).ok_or_else(|| SettingError {
                    variable: "WAVESIM_MEMORY",
                    value: value.clone(),
                    reason: "not a size such as 512M, 16G or a number of bytes, nor delayed or delayed:SEED"
                        .to_string(),
                })?;
            }
        }
        if let Some(value) = given("WAVESIM_ERROR_EXITCODE") {
            settings.error_exit_code = value.trim().parse().map_err(|_| SettingError {
                variable: "WAVESIM_ERROR_EXITCODE",
                value: value.clone(),
                reason: "not a number from 0 to 255".to_string(),
            })?;
        }
        Ok(settings)
    }
}

/// Maximum number of devices.
const MAX_DEVICES: usize = 64;

/// Parses a list of targets, each with an optional number of equal devices (`gfx942*4`).
fn parse_devices(text: &str) -> Result<Vec<String>, String> {
    let mut devices = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (name, count) = part.split_once('*').unwrap_or((part, "1"));
        let (name, count) = (name.trim(), count.trim());
        Target::from_name(name).map_err(|error| error.to_string())?;
        let count: usize = count
            .parse()
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| format!("`{count}` is not a number of devices; `{name}*2` is two devices"))?;
        if count > MAX_DEVICES - devices.len() {
            return Err(format!("there can be at most {MAX_DEVICES} devices"));
        }
        devices.extend(std::iter::repeat_n(name.to_string(), count));
    }
    Ok(devices)
}

fn one_of<T: Copy>(
    variable: &'static str,
    given: &impl Fn(&str) -> Option<String>,
    names: &[(&str, T)],
) -> Result<Option<T>, SettingError> {
    let Some(value) = given(variable) else { return Ok(None) };
    match names.iter().find(|(name, _)| *name == value.trim()) {
        Some((_, named)) => Ok(Some(*named)),
        None => {
            let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            Err(SettingError { variable, value, reason: format!("the values are {}", names.join(", ")) })
        }
    }
}

fn number(
    variable: &'static str,
    given: &impl Fn(&str) -> Option<String>,
) -> Result<Option<u64>, SettingError> {
    let Some(value) = given(variable) else { return Ok(None) };
    match value.trim().parse() {
        Ok(n) if n > 0 => Ok(Some(n)),
        _ => Err(SettingError { variable, value, reason: "not a positive number".to_string() }),
    }
}

/// Parses a positive size in bytes, in which K, M, G and T stand for powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let unit = "KMGT".find(text.chars().last()?.to_ascii_uppercase());
    let (digits, shift) = match unit {
        Some(at) => (&text[..text.len() - 1], 10 * (at as u32 + 1)),
        None => (text, 0),
    };
    let size = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (size > 0).then_some(size)
}

/// Parses a selection of checks: `0`, or a comma-separated list of names, among which `all` stands for those that are
/// not only on demand.
pub fn parse_checks(text: &str) -> Result<Vec<Check>, String> {
    match text.trim() {
        "1" => return Ok(Check::DEFAULT.to_vec()),
        "" | "0" | "none" => return Ok(Vec::new()),
        _ => {}
    }
    let list = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let parsed = list.map(|name| {
        if name == "all" {
            return Ok(Check::DEFAULT.to_vec());
        }
        Check::from_name(name).map(|check| vec![check]).ok_or_else(|| {
            let names: Vec<&str> = Check::ALL.iter().map(|c| c.name()).collect();
            let suggestion = isa_spec::diag::nearest(name, names.iter().copied());
            let suggestion =
                suggestion.map_or_else(String::new, |suggestion| format!(" (did you mean `{suggestion}`?)"));
            format!("`{name}` is not a check{suggestion}; checks are all, {}", names.join(", "))
        })
    });
    let chosen = parsed.collect::<Result<Vec<Vec<Check>>, String>>()?.concat();
    // Each once, in the order of the list.
    let first = |(at, check): &(usize, Check)| !chosen[..*at].contains(check);
    Ok(chosen.iter().copied().enumerate().filter(first).map(|(_, check)| check).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |name: &str| list.iter().find(|v| v.0 == name).map(|v| v.1.to_string());
        Settings::read(find).map_err(|e| e.to_string())
    }

    #[test]
    fn variables_are_read() {
        assert_eq!(read(&[("WAVESIM_CHECK", ""), ("WAVESIM_THREADS", "")]).unwrap(), Settings::default());
        let all = read(&[("WAVESIM_CHECK", "all"), ("WAVESIM_TARGET", "gfx1201"), ("WAVESIM_THREADS", "4")])
            .unwrap();
        assert_eq!(
            (all.checks.len(), all.target.as_deref(), all.threads),
            (6, Some("gfx1201"), Threads::Fixed(4))
        );
        let debug =
            read(&[("WAVESIM_DEBUG", "axpy:3"), ("WAVESIM_DEBUG_LISTEN", "4711")]).unwrap().debug.unwrap();
        assert_eq!((&*debug.kernel, debug.launch, debug.listen.as_deref()), ("axpy", Some(3), Some("4711")));
        assert_eq!(read(&[("WAVESIM_EXPLORE", "200")]).unwrap().explore, 200);
        let devices = read(&[("WAVESIM_DEVICES", "gfx942*2, rdna3")]).unwrap().devices;
        assert_eq!(devices, ["gfx942", "gfx942", "rdna3"]);
        assert!(read(&[("WAVESIM_FIDELITY", "1")]).unwrap().fidelity);
        assert!(!read(&[("WAVESIM_FIDELITY", "0")]).unwrap().fidelity);
        let coverage = read(&[("WAVESIM_COVERAGE", "%p.json")]).unwrap().coverage;
        assert_eq!(coverage, Some(PathBuf::from("%p.json")));
        assert_eq!(read(&[("WAVESIM_ENGINE", "jit")]).unwrap().engine, Engine::Jit);
        assert_eq!(read(&[("WAVESIM_ENGINE", "auto")]).unwrap().engine, Engine::Auto);
        assert_eq!(read(&[("WAVESIM_ON_FAULT", "continue")]).unwrap().on_fault, OnFault::Continue);
        assert_eq!(read(&[("WAVESIM_ERROR_EXITCODE", "86")]).unwrap().error_exit_code, 86);
        for (text, size) in [("24G", 24 << 30), ("512m", 512 << 20), ("1T", 1 << 40), ("4096", 4096)] {
            assert_eq!(read(&[("WAVESIM_MEMORY", text)]).unwrap().memory, size);
        }
        let both = read(&[("WAVESIM_MEMORY", "24G, delayed:7")]).unwrap();
        assert_eq!((both.memory, both.delays), (24 << 30, delayed::Timing::Delayed(7)));
        let alone = read(&[("WAVESIM_MEMORY", "delayed")]).unwrap();
        assert_eq!((alone.memory, alone.delays), (MEMORY_BYTES, delayed::Timing::Delayed(1)));
        let two = read(&[("WAVESIM_CHECK", "race, mem"), ("WAVESIM_MAX_INSTRUCTIONS", "77")]).unwrap();
        assert_eq!((two.checks, two.max_instructions), (vec![Check::Race, Check::Mem], 77));
        let more = read(&[("WAVESIM_CHECK", "all,lanes,mem")]).unwrap();
        assert_eq!((more.checks.len(), more.checks.last()), (7, Some(&Check::Lanes)));
    }

    #[test]
    fn documentation_lists_all_variables() {
        let text = include_str!("../../../docs/python.md");
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `WAVESIM_"));
        let rows: Vec<String> = rows.map(|row| format!("WAVESIM_{}", row.replace('`', ""))).collect();
        let expected: Vec<String> =
            VARIABLES.iter().map(|(name, text)| format!("{name} | {text} |")).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn invalid_values_are_errors() {
        assert_eq!(
            read(&[("WAVESIM_THREADS", "many")]).unwrap_err(),
            "WAVESIM_THREADS=many: not `auto`, and not a number from 1 to 256"
        );
        assert_eq!(
            read(&[("WAVESIM_CHECK", "mem,rase")]).unwrap_err(),
            "WAVESIM_CHECK=mem,rase: `rase` is not a check (did you mean `race`?); checks are all, mem, init, race, waits, barrier, hazard, lanes, arith"
        );
        assert!(read(&[("WAVESIM_MAX_INSTRUCTIONS", "0")]).is_err());
        assert_eq!(
            read(&[("WAVESIM_MEMORY", "16 GB")]).unwrap_err(),
            "WAVESIM_MEMORY=16 GB: not a size such as 512M, 16G or a number of bytes, nor delayed or delayed:SEED"
        );
        assert!(
            ["0", "G", "99999999999T", "ß"].iter().all(|text| read(&[("WAVESIM_MEMORY", text)]).is_err())
        );
        for (text, reason) in [
            ("gfx942*0", "`0` is not a number of devices; `gfx942*2` is two devices"),
            ("gfx942*64,gfx1100", "there can be at most 64 devices"),
        ] {
            let expected = format!("WAVESIM_DEVICES={text}: {reason}");
            assert_eq!(read(&[("WAVESIM_DEVICES", text)]).unwrap_err(), expected);
        }
        assert!(read(&[("WAVESIM_DEVICES", "gfx942,")]).unwrap_err().contains("`` is not a target"));
        assert_eq!(
            read(&[("WAVESIM_FIDELITY", "yes")]).unwrap_err(),
            "WAVESIM_FIDELITY=yes: the values are 0, 1"
        );
        assert_eq!(
            read(&[("WAVESIM_ENGINE", "jet")]).unwrap_err(),
            "WAVESIM_ENGINE=jet: the values are interpreter, jit, auto"
        );
        assert_eq!(
            read(&[("WAVESIM_ERROR_EXITCODE", "256")]).unwrap_err(),
            "WAVESIM_ERROR_EXITCODE=256: not a number from 0 to 255"
        );
    }
}
