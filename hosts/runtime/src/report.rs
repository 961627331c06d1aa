//! Reports: the fault and the check findings of a launch.

use crate::memory::Freed;
use std::fmt;
use wavesim::check::Finding;
use wavesim::fault::Fault;

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
}

impl Report {
    /// Returns true if there is neither a fault nor a finding.
    pub fn is_clean(&self) -> bool {
        self.fault.is_none() && self.findings.is_empty()
    }

    fn write_launch(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kernel.as_str() {
            "" => Ok(()),
            kernel => write!(f, "\n  kernel `{kernel}`, launch {}", self.launch),
        }
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
        Ok(())
    }
}
