//! Outcomes of launches, and findings of checks.

use pyo3::prelude::*;
use wavesim::check;
use wavesim::sched::dispatch::RunStats;
use wavesim_runtime::{ExploreOptions, Explored, Profiled};

/// An error found by a check. `str()` returns the report.
///
/// The fields are copies, so that a finding can be pickled: processes of a pool return findings.
#[pyclass(frozen, get_all, module = "wavesim")]
#[derive(Clone)]
pub struct Finding {
    /// Name of the check: mem, init, race, waits, barrier or hazard.
    check: String,
    /// Kind of the error.
    kind: String,
    message: String,
    /// Source line of the instruction, if known.
    line: Option<u32>,
    /// Source file, if debug information names one.
    file: Option<String>,
    /// Byte offset of the instruction in the code.
    pc: u64,
    instruction: String,
    workgroup: (u32, u32, u32),
    wave: u32,
    lane: Option<u32>,
    address: Option<u64>,
    /// Suggested fix.
    hint: Option<String>,
    /// Number of occurrences.
    count: u64,
    /// The report.
    #[pyo3(name = "_text")]
    text: String,
}

impl From<check::Finding> for Finding {
    fn from(finding: check::Finding) -> Finding {
        let text = finding.to_string();
        let site = finding.site;
        Finding {
            check: finding.check.name().to_string(),
            kind: finding.kind.to_string(),
            message: finding.message,
            line: (site.line != 0).then_some(site.line),
            file: site.file.as_deref().map(str::to_string),
            pc: site.pc,
            instruction: site.text,
            workgroup: site.workgroup.into(),
            wave: site.wave,
            lane: site.lane,
            address: finding.address,
            hint: finding.hint,
            count: finding.count,
            text,
        }
    }
}

/// The words of a pickled finding: check, kind, message, file, instruction, hint, report.
type Words = (String, String, String, Option<String>, String, Option<String>, String);
/// Its numbers: line, pc, workgroup, wave, lane, address, count.
type Numbers = (Option<u32>, u64, (u32, u32, u32), u32, Option<u32>, Option<u64>, u64);

#[pymethods]
impl Finding {
    /// Restores a finding; for `pickle`.
    #[staticmethod]
    fn _restore(words: Words, numbers: Numbers) -> Finding {
        let (check, kind, message, file, instruction, hint, text) = words;
        let (line, pc, workgroup, wave, lane, address, count) = numbers;
        Finding {
            check,
            kind,
            message,
            line,
            file,
            pc,
            instruction,
            workgroup,
            wave,
            lane,
            address,
            hint,
            count,
            text,
        }
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, (Words, Numbers))> {
        let f = slf.get().clone();
        let words = (f.check, f.kind, f.message, f.file, f.instruction, f.hint, f.text);
        let numbers = (f.line, f.pc, f.workgroup, f.wave, f.lane, f.address, f.count);
        Ok((slf.getattr("_restore")?.unbind(), (words, numbers)))
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        let line = self.line.map_or_else(|| format!("pc=0x{:x}", self.pc), |line| format!("line={line}"));
        format!("<Finding {} {line}: {}>", self.check, self.message)
    }
}

/// Result of an exploration.
#[pyclass(frozen, get_all, module = "wavesim")]
pub struct Exploration {
    /// Number of schedules that have run.
    schedules: u64,
    /// Each outcome, in one line, with the number of schedules that had it; that of the first run comes first.
    outcomes: Vec<(String, u64)>,
    /// The number of the first schedule whose results differ, from 1; `None` if none do.
    found: Option<u64>,
    /// What differs in it, and why; empty if nothing does.
    difference: String,
    /// The least probability that a bug of the depth would have been found.
    probability: f64,
    /// Steps of the first run.
    steps: u64,
    /// Waves of the launch.
    waves: u32,
}

impl Exploration {
    pub fn new(explored: Explored, options: &ExploreOptions) -> Exploration {
        let probability = explored.bound(options);
        let Explored { schedules, steps, waves, outcomes, found, difference, .. } = explored;
        Exploration { schedules, outcomes, found, difference, probability, steps, waves }
    }
}

#[pymethods]
impl Exploration {
    /// Whether every schedule has the results of the first run.
    fn __bool__(&self) -> bool {
        self.found.is_none()
    }

    fn __repr__(&self) -> String {
        match self.found {
            None => format!("<Exploration: {} schedules, no difference>", self.schedules),
            Some(number) => format!("<Exploration: schedule {number} differs>"),
        }
    }
}

/// Result of a launch that ended without a fault.
#[pyclass(frozen, module = "wavesim")]
pub struct Outcome {
    stats: RunStats,
    #[pyo3(get)]
    findings: Vec<Py<Finding>>,
    /// The report of all findings.
    #[pyo3(get)]
    report: String,
    /// The profile as JSON and as HTML.
    profile: Option<(String, String)>,
}

impl Outcome {
    pub fn new(
        py: Python<'_>,
        stats: RunStats,
        findings: Vec<check::Finding>,
        report: String,
        profile: Option<Profiled>,
    ) -> PyResult<Outcome> {
        let findings =
            findings.into_iter().map(|f| Py::new(py, Finding::from(f))).collect::<PyResult<_>>()?;
        let profile = profile.map(|Profiled { json, html }| (json, html));
        Ok(Outcome { stats, findings, report, profile })
    }
}

/// What restores an outcome: instructions, waves, findings, their report, the profile.
type Pickled = (u64, u64, Vec<Py<Finding>>, String, Option<(String, String)>);

#[pymethods]
impl Outcome {
    /// Wave-instructions executed.
    #[getter]
    fn instructions(&self) -> u64 {
        self.stats.instructions
    }

    /// Waves executed.
    #[getter]
    fn waves(&self) -> u64 {
        self.stats.waves
    }

    /// The predicted profile, a `wavesim.Profile`; `None` if the launch did not ask for it.
    #[getter]
    fn profile<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((json, html)) = &self.profile else { return Ok(None) };
        py.import("wavesim._text")?.getattr("Profile")?.call1((json, html)).map(Some)
    }

    /// Restores an outcome; for `pickle`.
    #[staticmethod]
    fn _restore(
        instructions: u64,
        waves: u64,
        findings: Vec<Py<Finding>>,
        report: String,
        profile: Option<(String, String)>,
    ) -> Outcome {
        Outcome { stats: RunStats { instructions, waves }, findings, report, profile }
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, Pickled)> {
        let outcome = slf.get();
        let RunStats { instructions, waves } = outcome.stats;
        let findings = outcome.findings.iter().map(|f| f.clone_ref(slf.py())).collect();
        let (report, profile) = (outcome.report.clone(), outcome.profile.clone());
        Ok((slf.getattr("_restore")?.unbind(), (instructions, waves, findings, report, profile)))
    }

    fn __repr__(&self) -> String {
        let RunStats { instructions, waves } = self.stats;
        match self.findings.len() {
            0 => format!("<Outcome: {instructions} instructions in {waves} waves>"),
            n => format!("<Outcome: {instructions} instructions in {waves} waves, {n} findings>"),
        }
    }
}
