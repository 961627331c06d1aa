//! `WAVESIM_COVERAGE`: what all launches of the process have run, written when it ends; and `WAVESIM_FIDELITY`.

use crate::{Error, Settings, message};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use wavesim::check::{Check, Checker};
use wavesim::coverage::Coverage;
use wavesim::loader::prepared::Prepared;

/// What is observed of launches, besides checks and traces.
#[derive(Debug, Clone, Copy, Default)]
pub struct Observation<'a> {
    /// The file that coverage is written to.
    pub coverage: Option<&'a Path>,
    /// Whether a report about inexact results follows each launch.
    pub fidelity: bool,
}

impl<'a> Observation<'a> {
    /// Returns what the settings request.
    pub fn of(settings: &'a Settings) -> Observation<'a> {
        Observation { coverage: settings.coverage.as_deref(), fidelity: settings.fidelity }
    }

    /// Returns whether anything is observed.
    pub(crate) fn any(self) -> bool {
        self.coverage.is_some() || self.fidelity
    }
}

/// Returns the check that follows undefined bits, for architectures that have it.
pub(crate) fn undefined_bits(prepared: &Prepared) -> Result<Option<Checker<'_>>, Error> {
    let has = Check::of(prepared.program.arch).contains(&Check::Init);
    Ok(if has { Some(Checker::new(prepared, &[Check::Init])?) } else { None })
}

/// The launches of the process so far, and the file.
static COLLECTED: Mutex<Option<(PathBuf, Coverage)>> = Mutex::new(None);

/// Adds a launch. `%p` in the name of the file stands for the number of the process.
pub(crate) fn add(file: &Path, coverage: &Coverage) {
    let mut collected = COLLECTED.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, all) = collected.get_or_insert_with(|| {
        // SAFETY: `at_exit` does not unwind. If registration fails, the file is not written.
        unsafe { libc::atexit(at_exit) };
        let name = file.to_string_lossy().replace("%p", &std::process::id().to_string());
        (PathBuf::from(name), Coverage::default())
    });
    if let Err(e) = all.merge(coverage) {
        message::report(&format!("WAVESIM_COVERAGE: {e}"));
    }
}

extern "C" fn at_exit() {
    // Another thread may still add a launch, which is then lost.
    let Ok(collected) = COLLECTED.try_lock() else { return };
    let Some((file, coverage)) = &*collected else { return };
    let text = coverage.text();
    if let Err(e) = wavesim::files::write(file, |out| out.write_all(text.as_bytes())) {
        message::report(&format!("WAVESIM_COVERAGE={}: {e}", file.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CodeCache;
    use crate::launch::{RunOptions, run};
    use wavesim::loader::text_kernel::{self, Options};
    use wavesim::sharing::Threads;

    #[test]
    fn launches_are_added() {
        let source = "---\nlocal = 32, 1, 1\nglobal = 2, 1, 1\n---\n  v_mov_b32 v1, 0\n  s_endpgm\n";
        let prepared = text_kernel::prepare("k.rdna", source, &Options::default(), 0).unwrap();
        let (settings, code_cache) = (Settings::default(), CodeCache::default());
        let file = std::env::temp_dir().join(format!("wavesim-coverage-{}.json", std::process::id()));
        for fidelity in [false, true] {
            let options = RunOptions {
                kernel: "k",
                threads: Threads::Fixed(1),
                max_instructions: 1000,
                observation: Observation { coverage: Some(&file), fidelity },
                ..RunOptions::new(&settings, &code_cache)
            };
            run(&prepared, &options, None).unwrap();
        }
        // Here rather than when the process ends.
        at_exit();
        let text = std::fs::read_to_string(&file).unwrap();
        let coverage = Coverage::parse(&text).unwrap();
        assert_eq!((coverage.launches, coverage.programs[0].waves), (2, 4));
        *COLLECTED.lock().unwrap() = None;
        std::fs::remove_file(&file).unwrap();
    }
}
