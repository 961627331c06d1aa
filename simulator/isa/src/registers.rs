//! The numbers of registers: indices in the SGPR file, which are operand codes, and in the VGPR file.

/// Number of the first accumulation VGPR; they follow the other VGPRs in a wave's file.
pub const ACC: usize = 256;
/// SGPR file indices by operand code (RDNA manuals, *Scalar Source Operands*).
pub const VCC_LO: usize = 106;
/// VCC of lanes 32..63.
pub const VCC_HI: usize = 107;
/// The trap handler's registers.
pub const TTMP: std::ops::Range<usize> = 108..124;
/// Reads as zero; writes are ignored.
pub const NULL: usize = 124;
/// The M0 register.
pub const M0: usize = 125;
/// EXEC of lanes 0..31.
pub const EXEC_LO: usize = 126;
/// EXEC of lanes 32..63.
pub const EXEC_HI: usize = 127;
