//! Reports: the fault and the check findings of a launch.

use crate::Foreign;
use crate::memory::Freed;
use crate::message;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use wavesim::check::{Finding, fault_as_finding};
use wavesim::fault::Fault;
use wavesim::loader::kernel_name::demangled;

/// The fault and the findings of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the kernel; empty for raw code.
    pub kernel: String,
    /// Number of the launch on its device, starting at 1.
    pub launch: u64,
    /// The fault that ended the launch, if any.
    pub fault: Option<Box<Fault>>,
    /// Findings of the checks.
    pub findings: Vec<Finding>,
    /// Freed allocations that were accessed: those of the findings in order, then that of the fault.
    pub freed: Vec<Freed>,
    /// Memory of other devices that was accessed without access to it.
    pub foreign: Vec<Foreign>,
}

impl Report {
    /// Returns true if there is neither a fault nor a finding.
    pub fn is_clean(&self) -> bool {
        self.fault.is_none() && self.findings.is_empty()
    }

    /// Appends the findings and the fault to a file ([`append`]).
    pub(crate) fn append_to(&self, file: &Path) {
        let findings = self.findings.iter().map(|finding| (finding.json(), finding.to_string()));
        let fault = self.fault.iter().map(|fault| (fault_as_finding(fault), fault.to_string()));
        append(file, &self.kernel, self.launch, findings.chain(fault));
    }

    fn write_launch(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kernel.as_str() {
            "" => Ok(()),
            kernel => write!(f, "\n  kernel `{}`, launch {}", demangled(kernel), self.launch),
        }
    }
}

/// Appends findings to the file of WAVESIM_REPORT, a line of JSON each: a finding's machine output, with the kernel, the
/// launch and the text of the report. Several processes may append to one file. What fails is a message.
pub(crate) fn append(
    file: &Path,
    kernel: &str,
    launch: u64,
    findings: impl IntoIterator<Item = (Value, String)>,
) {
    let mut lines = String::new();
    for (mut line, text) in findings {
        line["kernel"] = kernel.into();
        line["launch"] = launch.into();
        line["report"] = text.into();
        lines += &format!("{line}\n");
    }
    if !lines.is_empty()
        && let Err(e) = wavesim::files::append(file, lines.as_bytes())
    {
        message::report(&format!("WAVESIM_REPORT={}: {e}", file.display()));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for finding in &self.findings {
            write!(f, "{separator}{finding}")?;
            self.write_launch(f)?;
            separator = "\n\n";
        }
        if let Some(fault) = &self.fault {
            write!(f, "{separator}{fault}")?;
            self.write_launch(f)?;
        }
        for freed in &self.freed {
            write!(f, "\n  {freed}")?;
        }
        for foreign in &self.foreign {
            write!(f, "\n  {foreign}")?;
        }
        Ok(())
    }
}
