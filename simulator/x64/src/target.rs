//! What register allocation and its check must know of a host.

/// An architecture of hosts that functions are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Architecture {
    X64,
    A64,
}

/// The register file of a host, as far as values are in it. Registers are identified by numbers below 32.
#[derive(Debug)]
pub(crate) struct Target {
    pub architecture: Architecture,
    /// General registers that hold values, in the order of preference.
    pub ints: &'static [u8],
    /// Those of them that calls preserve.
    pub callee_saved: &'static [u8],
    /// The others.
    pub caller_saved: &'static [u8],
    /// The general registers of arguments.
    pub arguments: &'static [u8],
    /// Vector registers that hold values, in the order of preference. All are caller-saved.
    pub vecs: &'static [u8],
    /// A vector's result is better not in the register of an operand whose live range ends there.
    pub separates_results: bool,
    /// The name of a general register.
    pub int_name: fn(u8) -> String,
    /// The name of a vector register.
    pub vec_name: fn(u8) -> String,
    /// The name of the scratch register of vectors that are loaded once for several instructions.
    pub shared_name: &'static str,
}

/// The registers of a class are numbered below this.
pub(crate) const REGISTERS: usize = 32;
