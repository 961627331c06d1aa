//! Outcomes of launches, and findings of checks.

use pyo3::prelude::*;
use wavesim::check;
use wavesim::sched::dispatch::RunStats;

/// An error found by a check. `str()` returns the report.
#[pyclass(frozen, module = "wavesim")]
pub struct Finding(pub check::Finding);

#[pymethods]
impl Finding {
    /// Name of the check: mem, init, race, waits, barrier or hazard.
    #[getter]
    fn check(&self) -> &'static str {
        self.0.check.name()
    }

    /// Kind of the error.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    /// Source line of the instruction, if known.
    #[getter]
    fn line(&self) -> Option<u32> {
        (self.0.site.line != 0).then_some(self.0.site.line)
    }

    /// Source file, if debug information names one.
    #[getter]
    fn file(&self) -> Option<&str> {
        self.0.site.file.as_deref()
    }

    /// Byte offset of the instruction in the code.
    #[getter]
    fn pc(&self) -> u64 {
        self.0.site.pc
    }

    #[getter]
    fn instruction(&self) -> &str {
        &self.0.site.text
    }

    #[getter]
    fn workgroup(&self) -> (u32, u32, u32) {
        self.0.site.workgroup.into()
    }

    #[getter]
    fn wave(&self) -> u32 {
        self.0.site.wave
    }

    #[getter]
    fn lane(&self) -> Option<u32> {
        self.0.site.lane
    }

    #[getter]
    fn address(&self) -> Option<u64> {
        self.0.address
    }

    /// Suggested fix.
    #[getter]
    fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Number of occurrences.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let line = self.line().map_or_else(|| format!("pc=0x{:x}", self.pc()), |line| format!("line={line}"));
        format!("<Finding {} {line}: {}>", self.check(), self.0.message)
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
}

impl Outcome {
    pub fn new(
        py: Python<'_>,
        stats: RunStats,
        findings: Vec<check::Finding>,
        report: String,
    ) -> PyResult<Outcome> {
        let findings = findings.into_iter().map(|f| Py::new(py, Finding(f))).collect::<PyResult<_>>()?;
        Ok(Outcome { stats, findings, report })
    }
}

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

    fn __repr__(&self) -> String {
        let RunStats { instructions, waves } = self.stats;
        match self.findings.len() {
            0 => format!("<Outcome: {instructions} instructions in {waves} waves>"),
            n => format!("<Outcome: {instructions} instructions in {waves} waves, {n} findings>"),
        }
    }
}
