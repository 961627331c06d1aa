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
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kernel, launch) = (&self.kernel, self.launch);
        let name = if kernel.is_empty() { String::new() } else { format!("kernel `{kernel}`, ") };
        let mut separator = "";
        for finding in &self.findings {
            write!(f, "{separator}{name}launch {launch}: {finding}")?;
            separator = "\n\n";
        }
        if let Some(fault) = &self.fault {
            write!(f, "{separator}{name}launch {launch}: {fault}")?;
        }
        for freed in &self.freed {
            write!(f, "\n  {freed}")?;
        }
        Ok(())
    }
}
