//! What a launch has to report.

use crate::memory::Freed;
use std::fmt;
use wavesim::check::Finding;
use wavesim::fault::Fault;

/// The fault and the findings of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the kernel; empty for raw code.
    pub kernel: String,
    /// Number of the launch on its device, from 1.
    pub launch: u64,
    /// What ended the launch, if it did not end by itself.
    pub fault: Option<Box<Fault>>,
    /// What checks found.
    pub findings: Vec<Finding>,
    /// Memory that had been freed and was accessed, of the fault and of the findings in order.
    pub freed: Vec<Freed>,
}

impl Report {
    /// Whether there is nothing to report.
    pub fn is_clean(&self) -> bool {
        self.fault.is_none() && self.findings.is_empty()
    }

    fn write_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            self.write_place(f)?;
            separator = "\n\n";
        }
        if let Some(fault) = &self.fault {
            write!(f, "{separator}{fault}")?;
            self.write_place(f)?;
        }
        for freed in &self.freed {
            write!(f, "\n  {freed}")?;
        }
        Ok(())
    }
}
