//! The debugger in a running program (`WAVESIM_DEBUG`): a launch that it names stops before its first instruction,
//! while the thread of the program that runs it waits. Commands come from a file, from the terminal, or from an
//! editor that attaches ([`attach`]). When the session ends, the launch runs to its end and the program goes on.
//!
//! Device memory is memory of the process. Going back restores it, so that threads of the program which use it
//! meanwhile see it change.

mod attach;

use crate::launch::{RunOptions, report_of};
use crate::{Error, HostMemory, Report, message};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, Once, PoisonError};
use wavesim::array::DType;
use wavesim::debug::command::{Debugger, Files, Flow};
use wavesim::debug::timeline::Timeline;
use wavesim::debug::view;
use wavesim::fault::{Fault, FaultKind};
use wavesim::files;
use wavesim::loader::code_object::Arg;
use wavesim::loader::kernel_name::{demangled, is_named};
use wavesim::loader::parameters::Parameter;
use wavesim::loader::prepared::{Buffer, Prepared};
use wavesim::sched::dispatch::RunStats;

/// The launches that are debugged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugTarget {
    /// The kernel, by its symbol or the name of its function in the source; `*` for any.
    pub kernel: String,
    /// The number of the launch, as reports have it; `None` for every launch of the kernel.
    pub launch: Option<u64>,
    /// A file with commands that are executed first.
    pub commands: Option<PathBuf>,
    /// The address on which an editor can attach, in place of the terminal.
    pub listen: Option<String>,
}

impl DebugTarget {
    /// Parses `KERNEL[:LAUNCH]`.
    ///
    /// # Errors
    /// The number of the launch is invalid.
    pub fn parse(text: &str) -> Result<DebugTarget, String> {
        let (kernel, launch) = match text.trim().rsplit_once(':') {
            // A name in the source may contain `::`.
            Some((kernel, number)) if !kernel.ends_with(':') => {
                let number = number.parse().ok().filter(|n| *n > 0);
                (kernel, Some(number.ok_or("expected KERNEL[:LAUNCH], with a number counted from 1")?))
            }
            _ => (text.trim(), None),
        };
        Ok(DebugTarget { kernel: kernel.to_string(), launch, commands: None, listen: None })
    }

    /// Returns whether a launch is debugged.
    pub fn selects(&self, kernel: &str, launch: u64) -> bool {
        self.launch.is_none_or(|number| number == launch)
            && (self.kernel == "*" || is_named(kernel, &self.kernel))
    }
}

/// The launches of the process, as long as none has been debugged: how many of each kernel.
static MISSED: Mutex<Option<(DebugTarget, BTreeMap<String, u64>)>> = Mutex::new(None);

/// Records a launch, so that a process in which none is debugged says so at its end.
pub(crate) fn record(target: &DebugTarget, kernel: &str, debugged: bool) {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        // SAFETY: `report_missed` does not unwind. If the registration fails, there is no report.
        let _ = unsafe { libc::atexit(report_missed) };
    });
    let mut missed = MISSED.lock().unwrap_or_else(PoisonError::into_inner);
    let (wanted, launches) = missed.get_or_insert_with(|| (target.clone(), BTreeMap::new()));
    match debugged {
        true => wanted.launch = Some(0),
        false => *launches.entry(kernel.to_string()).or_default() += 1,
    }
}

extern "C" fn report_missed() {
    let Ok(missed) = MISSED.try_lock() else { return };
    let Some((target, launches)) = missed.as_ref().filter(|(target, _)| target.launch != Some(0)) else {
        return;
    };
    let number = target.launch.map_or(String::new(), |number| format!(":{number}"));
    let each = launches.iter().map(|(kernel, times)| format!("{times} of `{}`", demangled(kernel)));
    let each: Vec<String> = each.collect();
    let kernel = &target.kernel;
    message::report(&format!(
        "WAVESIM_DEBUG={kernel}{number}: no such launch; there were {}",
        each.join(", ")
    ));
}

/// Returns the arguments of a kernel that point to memory of the launch, as buffers of the debugger. Their names are
/// those of the metadata, of the debug information, or of memory that the host has for this launch (`own`), or else
/// `arg0`, `arg1` …, by position.
pub(crate) fn buffers(
    args: &[Arg],
    parameters: &[Parameter],
    kernarg: &[u8],
    ranges: &[HostMemory],
    own: &[HostMemory],
) -> Vec<Buffer> {
    let buffer = |(position, arg): (usize, &Arg)| {
        let at = arg.offset as usize;
        let address = u64::from_le_bytes(kernarg.get(at..at + 8)?.try_into().ok()?);
        let range = ranges.iter().find(|r| address.wrapping_sub(r.address()) < r.len())?;
        let parameter = parameters.get(position);
        let dtype = parameter.and_then(|p| p.element).unwrap_or(DType::U32);
        let elements = (range.address() + range.len() - address) / dtype.size() as u64;
        let name = parameter.and_then(|p| p.name.clone());
        let holds = |r: &&HostMemory| !r.name().is_empty() && address.wrapping_sub(r.address()) < r.len();
        let name = name.or_else(|| own.iter().find(holds).map(|range| range.name().to_string()));
        let name = name.unwrap_or_else(|| format!("arg{position}"));
        let len_bytes = elements * dtype.size() as u64;
        Some(Buffer { name, address, len_bytes, dtype, shape: vec![elements], output: false, surface: None })
    };
    let pointers = args.iter().enumerate().filter(|(_, arg)| arg.kind == "global_buffer");
    pointers.filter_map(buffer).collect()
}

/// Returns the addresses of the memory that going back restores.
pub(crate) fn writable(ranges: &[HostMemory]) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = ranges
        .iter()
        .filter(|r| r.is_writable() && !r.is_empty())
        .map(|r| r.address()..r.address() + r.len())
        .collect();
    all.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(all.len());
    for range in all {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Debugs a launch, then runs it to its end.
///
/// # Errors
/// The launch is impossible, or an editor cannot attach.
pub(crate) fn run(
    prepared: &Prepared,
    options: &RunOptions<'_>,
    target: &DebugTarget,
    memory: Vec<Range<u64>>,
) -> Result<(RunStats, Report), Error> {
    let mut dispatch = prepared.dispatch(options.max_instructions);
    dispatch.cooperative = options.cooperative;
    dispatch.check()?;
    let client = match &target.listen {
        Some(address) => Some(
            attach::Client::wait(address, options)
                .map_err(|cause| Error::Attach { address: address.clone(), cause: cause.to_string() })?,
        ),
        None => None,
    };
    let mut timeline = Timeline::with_host_memory(prepared, &dispatch, memory)?;
    timeline.check(options.checks)?;
    if let Some(client) = &client {
        timeline = wavesim_dap::serve_attached(client, timeline);
    } else {
        timeline = session(timeline, options, target);
    }
    let cancel = options.cancel;
    let mut debugger = Debugger::new(timeline, move || cancel.is_some_and(|c| c.load(Ordering::Relaxed)));
    let unfinished = debugger.run_to_end().err();
    let timeline = &debugger.timeline;
    let stats =
        RunStats { instructions: timeline.time(), waves: timeline.position().1 * timeline.waves() as u64 };
    let fault = timeline.fault().cloned().map(Box::new).or_else(|| unfinished.map(ended_early));
    let findings = timeline.findings().map(|(_, finding)| finding.clone()).collect();
    Ok((stats, report_of(options, fault, findings)))
}

/// The fault of a run that could not be completed.
fn ended_early(reason: String) -> Box<Fault> {
    Box::new(Fault {
        kind: FaultKind::Interrupted,
        message: format!("the debugged launch did not end: {reason}"),
        line: 0,
        file: None,
        pc: 0,
        instruction: String::new(),
        workgroup: [0; 3],
        wave: 0,
        lane: None,
        address: None,
    })
}

/// Executes the commands of a file, then those that the user types.
fn session<'a>(timeline: Timeline<'a>, options: &'a RunOptions<'_>, target: &DebugTarget) -> Timeline<'a> {
    let cancel = options.cancel;
    let mut debugger = Debugger::new(timeline, move || cancel.is_some_and(|c| c.load(Ordering::Relaxed)));
    debugger.set_files(ProcessFiles);
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let head = format!(
        "launch {} of `{}`\n{}\n",
        options.number,
        options.kernel,
        view::position(&debugger.timeline, debugger.focus.wave)
    );
    let mut quit = false;
    if let Some(path) = &target.commands {
        quit = match files::read_text(path) {
            Ok(text) => script(&mut debugger, &head, &text),
            Err(e) => {
                message::report(&format!("WAVESIM_DEBUG_COMMANDS: {e}"));
                false
            }
        };
    }
    match terminal {
        _ if quit => {}
        Ok(terminal) => prompt(&mut debugger, if target.commands.is_none() { &head } else { "" }, terminal),
        Err(_) if target.commands.is_none() => message::report(
            "WAVESIM_DEBUG: the program has no terminal; WAVESIM_DEBUG_COMMANDS names a file with commands",
        ),
        Err(_) => {}
    }
    debugger.into_timeline()
}

/// Executes commands and writes them with their outputs to standard error. Returns whether one of them was
/// `quit`.
fn script(debugger: &mut Debugger<'_>, head: &str, text: &str) -> bool {
    let mut out = head.to_string();
    let mut quit = false;
    for line in text.lines() {
        out.push_str(&format!("(wavesim) {line}\n"));
        let (result, flow) = debugger.execute(line);
        match result {
            Ok(text) => out.push_str(&text),
            Err(message) => out.push_str(&format!("error: {message}\n")),
        }
        quit = flow == Flow::Quit;
        if quit {
            break;
        }
    }
    // Standard error may be closed.
    let _ = message::write_error(out.as_bytes());
    quit
}

/// Reads commands from the terminal until `quit` or the end of input. A terminal that fails ends the session.
fn prompt(debugger: &mut Debugger<'_>, head: &str, terminal: File) {
    let mut lines = BufReader::new(&terminal);
    let mut out = &terminal;
    if out.write_all(head.as_bytes()).is_err() {
        return;
    }
    loop {
        let mut line = String::new();
        if out.write_all(b"(wavesim) ").is_err() || !matches!(lines.read_line(&mut line), Ok(1..)) {
            return;
        }
        let (result, flow) = debugger.execute(&line);
        let text = result.unwrap_or_else(|message| format!("error: {message}\n"));
        if out.write_all(text.as_bytes()).is_err() || flow == Flow::Quit {
            return;
        }
    }
}

/// The files that the program can access.
pub struct ProcessFiles;

impl Files for ProcessFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        files::read_text(Path::new(path)).map_err(|e| e.to_string())
    }

    fn write(&self, path: &str, text: &str) -> Result<(), String> {
        files::write(Path::new(path), |out| out.write_all(text.as_bytes())).map_err(|e| e.to_string())
    }

    fn source(&self, path: &str) -> Option<String> {
        files::read_text(Path::new(path)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_selected() {
        let target = |text| DebugTarget::parse(text).unwrap();
        assert!(target("add").selects("add", 1) && target("add").selects("_Z3addPKfS0_Pfi", 7));
        assert!(!target("add").selects("_Z4add2Pf", 1) && !target("ad").selects("add", 1));
        assert!(target("add:2").selects("add", 2) && !target("add:2").selects("add", 1));
        assert!(target("*:3").selects("anything", 3) && !target("*:3").selects("anything", 4));
        assert!(target("a::b").launch.is_none() && target("a::b").selects("_ZN1a1bEPf", 1));
        assert!(DebugTarget::parse("add:0").is_err() && DebugTarget::parse("add:x").is_err());
    }
}
