//! `.amdhsa_kernel` blocks: the 64 bytes of a kernel descriptor (LLVM AMDGPUUsage, *Kernel Descriptor*).

use super::error::{AsmError, Span, suggest};
use super::expr::Expr;
use wavesim_isa::arch::Arch;

/// A directive: name, first bit, bits, in which word, value where it is not given.
#[derive(Debug)]
struct Item {
    name: &'static str,
    at: Place,
    first: u32,
    bits: u32,
    default: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// COMPUTE_PGM_RSRC1 at byte 48, RSRC2 at 52, RSRC3 at 44.
    Rsrc1,
    Rsrc2,
    Rsrc3,
    /// Kernel code properties, byte 56.
    Properties,
    /// A word of its own at this byte.
    Word(usize),
    /// Kernel arguments in SGPRs (CDNA), at byte 58.
    Preload,
    /// Register counts, of which granules are made.
    Vgprs,
    /// Accepted; these processors take nothing from it.
    Nothing,
}

const fn item(name: &'static str, at: Place, first: u32, bits: u32, default: u32) -> Item {
    Item { name, at, first, bits, default }
}

static ITEMS: [Item; 48] = [
    item("group_segment_fixed_size", Place::Word(0), 0, 32, 0),
    item("private_segment_fixed_size", Place::Word(4), 0, 32, 0),
    item("kernarg_size", Place::Word(8), 0, 32, 0),
    item("next_free_vgpr", Place::Vgprs, 0, 32, 0),
    item("next_free_sgpr", Place::Nothing, 0, 32, 0),
    item("reserve_vcc", Place::Nothing, 0, 1, 1),
    item("reserve_xnack_mask", Place::Nothing, 0, 1, 0),
    item("user_sgpr_count", Place::Nothing, 0, 5, 0),
    item("user_sgpr_private_segment_buffer", Place::Properties, 0, 1, 0),
    item("user_sgpr_dispatch_ptr", Place::Properties, 1, 1, 0),
    item("user_sgpr_queue_ptr", Place::Properties, 2, 1, 0),
    item("user_sgpr_kernarg_segment_ptr", Place::Properties, 3, 1, 0),
    item("user_sgpr_dispatch_id", Place::Properties, 4, 1, 0),
    item("user_sgpr_flat_scratch_init", Place::Properties, 5, 1, 0),
    item("user_sgpr_private_segment_size", Place::Properties, 6, 1, 0),
    item("user_sgpr_kernarg_preload_length", Place::Preload, 0, 7, 0),
    item("user_sgpr_kernarg_preload_offset", Place::Preload, 7, 9, 0),
    item("wavefront_size32", Place::Properties, 10, 1, 1),
    item("uses_dynamic_stack", Place::Properties, 11, 1, 0),
    item("enable_private_segment", Place::Rsrc2, 0, 1, 0),
    item("system_sgpr_private_segment_wavefront_offset", Place::Rsrc2, 0, 1, 0),
    item("system_sgpr_workgroup_id_x", Place::Rsrc2, 7, 1, 1),
    item("system_sgpr_workgroup_id_y", Place::Rsrc2, 8, 1, 0),
    item("system_sgpr_workgroup_id_z", Place::Rsrc2, 9, 1, 0),
    item("system_sgpr_workgroup_info", Place::Rsrc2, 10, 1, 0),
    item("system_vgpr_workitem_id", Place::Rsrc2, 11, 2, 0),
    item("exception_fp_ieee_invalid_op", Place::Rsrc2, 24, 1, 0),
    item("exception_fp_denorm_src", Place::Rsrc2, 25, 1, 0),
    item("exception_fp_ieee_div_zero", Place::Rsrc2, 26, 1, 0),
    item("exception_fp_ieee_overflow", Place::Rsrc2, 27, 1, 0),
    item("exception_fp_ieee_underflow", Place::Rsrc2, 28, 1, 0),
    item("exception_fp_ieee_inexact", Place::Rsrc2, 29, 1, 0),
    item("exception_int_div_zero", Place::Rsrc2, 30, 1, 0),
    item("float_round_mode_32", Place::Rsrc1, 12, 2, 0),
    item("float_round_mode_16_64", Place::Rsrc1, 14, 2, 0),
    item("float_denorm_mode_32", Place::Rsrc1, 16, 2, 0),
    item("float_denorm_mode_16_64", Place::Rsrc1, 18, 2, 3),
    item("round_robin_scheduling", Place::Rsrc1, 21, 1, 0),
    item("dx10_clamp", Place::Rsrc1, 21, 1, 1),
    item("ieee_mode", Place::Rsrc1, 23, 1, 1),
    item("fp16_overflow", Place::Rsrc1, 26, 1, 0),
    item("workgroup_processor_mode", Place::Rsrc1, 29, 1, 1),
    item("memory_ordered", Place::Rsrc1, 30, 1, 1),
    item("forward_progress", Place::Rsrc1, 31, 1, 0),
    item("shared_vgpr_count", Place::Rsrc3, 0, 4, 0),
    item("inst_pref_size", Place::Rsrc3, 4, 8, 0),
    item("accum_offset", Place::Vgprs, 0, 9, 0),
    item("tg_split", Place::Rsrc3, 16, 1, 0),
];

/// An `.amdhsa_kernel` block.
#[derive(Debug, Clone)]
pub struct Descriptor {
    /// Name of the kernel; the descriptor's symbol adds `.kd`.
    pub kernel: String,
    arch: Arch,
    /// Directives with their values, which may wait for symbols.
    given: Vec<(&'static Item, Expr, Span)>,
}

/// Which directives an architecture does not have.
fn has(arch: Arch, name: &str) -> bool {
    match name {
        "accum_offset" | "tg_split" => arch.is_cdna(),
        "wavefront_size32"
        | "workgroup_processor_mode"
        | "memory_ordered"
        | "forward_progress"
        | "shared_vgpr_count"
        | "inst_pref_size"
            if arch.is_cdna() =>
        {
            false
        }
        "dx10_clamp" | "ieee_mode" | "shared_vgpr_count" => arch != Arch::Rdna4,
        "round_robin_scheduling" => arch == Arch::Rdna4,
        "user_sgpr_private_segment_buffer"
        | "user_sgpr_flat_scratch_init"
        | "system_sgpr_private_segment_wavefront_offset" => false,
        _ => true,
    }
}

impl Descriptor {
    /// A block without directives.
    pub fn new(kernel: &str, arch: Arch) -> Descriptor {
        Descriptor { kernel: kernel.to_string(), arch, given: Vec::new() }
    }

    /// `.amdhsa_NAME VALUE`, the name without its prefix. A value that is not symbolic is checked at once.
    pub fn set(&mut self, name: &str, value: Expr, span: Span) -> Result<(), AsmError> {
        let found = ITEMS.iter().find(|i| i.name == name && has(self.arch, name));
        let Some(item) = found else {
            let known = ITEMS.iter().map(|i| i.name).filter(|n| has(self.arch, n));
            let error = AsmError::new(
                span,
                format!("there is no directive `.amdhsa_{name}` for {}", self.arch.name()),
            );
            return Err(match suggest(name, known) {
                Some(help) => error.help(help.replace("mean `", "mean `.amdhsa_")),
                None => error,
            });
        };
        if let Expr::Int(value) = value {
            item.check(value, span)?;
        }
        self.given.push((item, value, span));
        Ok(())
    }

    /// Lanes of a wave, if a number gives them.
    pub fn wave(&self) -> u32 {
        if self.arch.is_cdna() {
            return 64;
        }
        let given = self.given.iter().rev().find(|g| g.0.name == "wavefront_size32");
        if given.is_some_and(|g| g.1 == Expr::Int(0)) { 64 } else { 32 }
    }

    /// VGPRs and SGPRs that the directives request, not rounded to granules as in the descriptor.
    pub fn registers(&self, eval: impl Fn(&Expr) -> Option<i64>) -> [Option<u32>; 2] {
        ["next_free_vgpr", "next_free_sgpr"].map(|name| {
            let (item, expr, span) = self.given.iter().rev().find(|g| g.0.name == name)?;
            item.check(eval(expr)?, *span).ok()
        })
    }

    /// The descriptor's bytes. `entry` is the code's address less the descriptor's; `eval` gives expressions
    /// their values.
    pub fn finish(
        &self,
        entry: i64,
        eval: &dyn Fn(&Expr) -> Result<i64, AsmError>,
    ) -> Result<[u8; 64], AsmError> {
        let mut values: Vec<(&str, u32)> = Vec::new();
        for (item, expr, span) in &self.given {
            values.push((item.name, item.check(eval(expr)?, *span)?));
        }
        let given = |name: &str| values.iter().rev().find(|g| g.0 == name).map(|g| g.1);
        let mut bytes = [0; 64];
        let (mut rsrc1, mut rsrc2, mut rsrc3, mut properties, mut preload) = (0u32, 0u32, 0u32, 0u32, 0u32);
        for item in &ITEMS {
            let default = if has(self.arch, item.name) { item.default } else { 0 };
            let value = given(item.name).unwrap_or(default);
            match item.at {
                Place::Rsrc1 => rsrc1 |= value << item.first,
                Place::Rsrc2 => rsrc2 |= value << item.first,
                Place::Rsrc3 => rsrc3 |= value << item.first,
                Place::Properties => properties |= value << item.first,
                Place::Preload if self.arch.is_cdna() => preload |= value << item.first,
                Place::Word(at) => put(&mut bytes, at, value),
                Place::Vgprs | Place::Preload | Place::Nothing => {}
            }
        }
        let wave32 = given("wavefront_size32").unwrap_or(1) != 0;
        let cdna = self.arch.is_cdna();
        let granule = if wave32 || cdna { 8 } else { 4 };
        let vgprs = given("next_free_vgpr").unwrap_or(0).max(1);
        rsrc1 |= (vgprs.div_ceil(granule) - 1) & 63;
        if cdna {
            // With VCC, XNACK_MASK and FLAT_SCRATCH.
            let sgprs = given("next_free_sgpr").unwrap_or(0).saturating_add(6);
            rsrc1 |= (sgprs.div_ceil(8) - 1 & 15) << 6;
            rsrc3 |= self.accum_offset(given("accum_offset"), vgprs)?;
        }
        let pair = |bit: u32| 2 * (properties >> bit & 1);
        let counted = pair(1) + pair(2) + pair(3) + pair(4) + (properties >> 6 & 1) + (preload & 0x7f);
        rsrc2 |= (given("user_sgpr_count").unwrap_or(counted) & 31) << 1;
        bytes[16..24].copy_from_slice(&entry.to_le_bytes());
        put(&mut bytes, 44, rsrc3);
        put(&mut bytes, 48, rsrc1);
        put(&mut bytes, 52, rsrc2);
        put(&mut bytes, 56, properties | preload << 16);
        Ok(bytes)
    }
}

impl Descriptor {
    /// ACCUM_OFFSET: the VGPRs before the accumulation VGPRs, in fours (AMDGPUUsage, *compute_pgm_rsrc3 for GFX90A*).
    fn accum_offset(&self, given: Option<u32>, vgprs: u32) -> Result<u32, AsmError> {
        let own = self.given.iter().rev().find(|g| g.0.name == "accum_offset");
        let wrong = |what: &str| {
            let span = own.map_or(Span::default(), |g| g.2);
            Err(AsmError::new(span, format!("`.amdhsa_accum_offset` {what}")))
        };
        match given {
            None => wrong("is missing: it says where accumulation VGPRs begin"),
            Some(offset) if !(4..=256).contains(&offset) || offset % 4 != 0 => {
                wrong("is a multiple of 4 from 4 to 256")
            }
            Some(offset) if offset > vgprs.next_multiple_of(4) => {
                wrong("is beyond the VGPRs that the kernel has")
            }
            Some(offset) => Ok(offset / 4 - 1),
        }
    }
}

fn put(bytes: &mut [u8; 64], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

impl Item {
    fn check(&self, value: i64, span: Span) -> Result<u32, AsmError> {
        let max = if self.bits >= 32 { u32::MAX as i64 } else { (1i64 << self.bits) - 1 };
        if !(0..=max).contains(&value) {
            return Err(AsmError::new(
                span,
                format!("`.amdhsa_{}` is from 0 to {max}, not {value}", self.name),
            ));
        }
        Ok(value as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::NoSymbols;

    /// Bytes that llvm-mc 19 makes of the same directives.
    #[test]
    fn as_llvm_has_it() {
        let mut d = Descriptor::new("k", Arch::Rdna3);
        for (name, value) in [
            ("next_free_vgpr", 10),
            ("next_free_sgpr", 20),
            ("user_sgpr_kernarg_segment_ptr", 1),
            ("kernarg_size", 24),
            ("wavefront_size32", 1),
        ] {
            d.set(name, Expr::Int(value), Span::default()).unwrap();
        }
        let bytes = d.finish(0x1040, &|e| e.eval(&NoSymbols)).unwrap();
        assert_eq!(bytes[8], 24);
        assert_eq!(bytes[16..18], [0x40, 0x10]);
        assert_eq!(bytes[48..58], [0x01, 0x00, 0xac, 0x60, 0x84, 0, 0, 0, 0x08, 0x04]);
        // Those of gfx942.
        let mut d = Descriptor::new("k", Arch::Cdna3);
        assert!(d.finish(0, &|e| e.eval(&NoSymbols)).is_err(), "no accum_offset");
        for (name, value) in [
            ("next_free_vgpr", 10),
            ("next_free_sgpr", 20),
            ("accum_offset", 12),
            ("user_sgpr_kernarg_segment_ptr", 1),
            ("user_sgpr_kernarg_preload_length", 3),
            ("user_sgpr_kernarg_preload_offset", 1),
            ("tg_split", 1),
        ] {
            d.set(name, Expr::Int(value), Span::default()).unwrap();
        }
        let bytes = d.finish(0, &|e| e.eval(&NoSymbols)).unwrap();
        assert_eq!(bytes[44..60], [2, 0, 1, 0, 0xc1, 0, 0xac, 0, 0x8a, 0, 0, 0, 8, 0, 0x83, 0]);
        assert!(
            Descriptor::new("k", Arch::Cdna3).set("wavefront_size32", Expr::Int(1), Span::default()).is_err()
        );
        assert!(Descriptor::new("k", Arch::Rdna4).set("ieee_mode", Expr::Int(1), Span::default()).is_err());
    }
}
