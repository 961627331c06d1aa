//! `.amdhsa_kernel` blocks: builds the 64-byte kernel descriptor (LLVM AMDGPUUsage, *Kernel Descriptor*).

use wavesim_asm::error::{AsmError, Span, suggest};
use wavesim_asm::expr::Expr;
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::facts::Facts;
use wavesim_isa::descriptor::{self, *};

/// Byte offset of `kernel_code_entry_byte_offset` in a descriptor (LLVM AMDGPUUsage, *Kernel Descriptor*).
pub const ENTRY_OFFSET: u64 = 16;

/// A directive: its name, what it sets, its default, and which architectures have it.
#[derive(Debug)]
struct Item {
    name: &'static str,
    storage: Storage,
    default: u32,
    exists: fn(&Facts) -> bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// A field of the descriptor.
    Field(Field),
    /// A field for kernel arguments preloaded to SGPRs, ignored where they are not.
    Preload(Field),
    /// The number of user SGPRs, counted from the other directives by default.
    UserSgprs,
    /// A register count with this many bits, which is converted to granules.
    Vgprs(u32),
    /// Accepted but ignored by these processors; the value has this many bits.
    Ignored(u32),
}

const fn item(name: &'static str, storage: Storage, default: u32) -> Item {
    Item { name, storage, default, exists: |_| true }
}

impl Item {
    /// Limits the directive to some architectures (LLVM AMDGPUUsage, *AMDHSA Kernel Assembler Directives*).
    const fn when(mut self, exists: fn(&Facts) -> bool) -> Item {
        self.exists = exists;
        self
    }

    /// Returns whether an architecture has the directive.
    fn is_on(&self, arch: Arch) -> bool {
        (self.exists)(arch.facts())
    }
}

static ITEMS: [Item; 46] = [
    item("group_segment_fixed_size", Storage::Field(GROUP_SEGMENT_FIXED_SIZE), 0),
    item("private_segment_fixed_size", Storage::Field(PRIVATE_SEGMENT_FIXED_SIZE), 0),
    item("kernarg_size", Storage::Field(KERNARG_SIZE), 0),
    item("next_free_vgpr", Storage::Vgprs(32), 0),
    item("next_free_sgpr", Storage::Ignored(32), 0),
    item("reserve_vcc", Storage::Ignored(1), 1),
    item("reserve_xnack_mask", Storage::Ignored(1), 0),
    item("user_sgpr_count", Storage::UserSgprs, 0),
    item("user_sgpr_dispatch_ptr", Storage::Field(DISPATCH_PTR), 0),
    item("user_sgpr_queue_ptr", Storage::Field(QUEUE_PTR), 0),
    item("user_sgpr_kernarg_segment_ptr", Storage::Field(KERNARG_SEGMENT_PTR), 0),
    item("user_sgpr_dispatch_id", Storage::Field(DISPATCH_ID), 0),
    item("user_sgpr_private_segment_size", Storage::Field(PRIVATE_SEGMENT_SIZE), 0),
    item("user_sgpr_kernarg_preload_length", Storage::Preload(KERNARG_PRELOAD_LENGTH), 0),
    item("user_sgpr_kernarg_preload_offset", Storage::Preload(KERNARG_PRELOAD_OFFSET), 0),
    item("wavefront_size32", Storage::Field(WAVEFRONT_SIZE32), 1).when(|f| f.gfx >= 10),
    item("uses_dynamic_stack", Storage::Field(DYNAMIC_STACK), 0),
    item("enable_private_segment", Storage::Field(RSRC2.part(0, 1)), 0),
    item("system_sgpr_workgroup_id_x", Storage::Field(WORKGROUP_IDS[0]), 1),
    item("system_sgpr_workgroup_id_y", Storage::Field(WORKGROUP_IDS[1]), 0),
    item("system_sgpr_workgroup_id_z", Storage::Field(WORKGROUP_IDS[2]), 0),
    item("system_sgpr_workgroup_info", Storage::Field(RSRC2.part(10, 1)), 0),
    item("system_vgpr_workitem_id", Storage::Field(WORKITEM_ID), 0),
    item("exception_fp_ieee_invalid_op", Storage::Field(RSRC2.part(24, 1)), 0),
    item("exception_fp_denorm_src", Storage::Field(RSRC2.part(25, 1)), 0),
    item("exception_fp_ieee_div_zero", Storage::Field(RSRC2.part(26, 1)), 0),
    item("exception_fp_ieee_overflow", Storage::Field(RSRC2.part(27, 1)), 0),
    item("exception_fp_ieee_underflow", Storage::Field(RSRC2.part(28, 1)), 0),
    item("exception_fp_ieee_inexact", Storage::Field(RSRC2.part(29, 1)), 0),
    item("exception_int_div_zero", Storage::Field(RSRC2.part(30, 1)), 0),
    item("float_round_mode_32", Storage::Field(RSRC1.part(12, 2)), 0),
    item("float_round_mode_16_64", Storage::Field(RSRC1.part(14, 2)), 0),
    item("float_denorm_mode_32", Storage::Field(RSRC1.part(16, 2)), 0),
    item("float_denorm_mode_16_64", Storage::Field(RSRC1.part(18, 2)), 3),
    item("round_robin_scheduling", Storage::Field(RSRC1.part(21, 1)), 0).when(|f| f.gfx >= 12),
    item("dx10_clamp", Storage::Field(DX10_CLAMP), 1).when(|f| f.float.mode_has_ieee),
    item("ieee_mode", Storage::Field(IEEE_MODE), 1).when(|f| f.float.mode_has_ieee),
    item("fp16_overflow", Storage::Field(RSRC1.part(26, 1)), 0),
    item("workgroup_processor_mode", Storage::Field(WGP_MODE), 1).when(|f| f.lds_per_processor == 2),
    item("memory_ordered", Storage::Field(RSRC1.part(30, 1)), 1).when(|f| f.gfx >= 10),
    item("forward_progress", Storage::Field(RSRC1.part(31, 1)), 0).when(|f| f.gfx >= 10),
    item("shared_vgpr_count", Storage::Field(RSRC3.part(0, 4)), 0).when(|f| (10..=11).contains(&f.gfx)),
    item("inst_pref_size", Storage::Field(RSRC3.part(4, 8)), 0).when(|f| f.gfx >= 10),
    item("named_barrier_count", Storage::Field(NAMED_BARRIERS), 0).when(|f| f.descriptor.named_barriers),
    item("accum_offset", Storage::Vgprs(9), 0).when(|f| f.descriptor.accum_offset),
    item("tg_split", Storage::Field(RSRC3.part(16, 1)), 0).when(|f| f.descriptor.accum_offset),
];

/// An `.amdhsa_kernel` block.
#[derive(Debug, Clone)]
pub struct Descriptor {
    /// Name of the kernel; the descriptor's symbol appends `.kd`.
    pub kernel: String,
    arch: Arch,
    /// The directives with their values, which may depend on symbols.
    given: Vec<(&'static Item, Expr, Span)>,
}

impl Descriptor {
    /// Creates a block without directives.
    pub fn new(kernel: &str, arch: Arch) -> Descriptor {
        Descriptor { kernel: kernel.to_string(), arch, given: Vec::new() }
    }

    /// Handles `.amdhsa_NAME VALUE`; `name` is without prefix. Constant values are checked immediately.
    pub fn set(&mut self, name: &str, value: Expr, span: Span) -> Result<(), AsmError> {
        let found = ITEMS.iter().find(|i| i.name == name && i.is_on(self.arch));
        let Some(item) = found else {
            let known = ITEMS.iter().filter(|i| i.is_on(self.arch)).map(|i| i.name);
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
            item.check(self.arch, value, span)?;
        }
        self.given.push((item, value, span));
        Ok(())
    }

    /// The wave size, if it is given as a number; otherwise the default.
    pub fn wave(&self) -> u32 {
        if let [only] = self.arch.wave_sizes() {
            return *only;
        }
        let given = self.given.iter().rev().find(|g| g.0.name == "wavefront_size32");
        if given.is_some_and(|g| g.1 == Expr::Int(0)) { 64 } else { 32 }
    }

    /// The requested numbers of VGPRs and SGPRs, before they are rounded to granules.
    pub fn registers(&self, eval: impl Fn(&Expr) -> Option<i64>) -> [Option<u32>; 2] {
        ["next_free_vgpr", "next_free_sgpr"].map(|name| {
            let (item, expr, span) = self.given.iter().rev().find(|g| g.0.name == name)?;
            item.check(self.arch, eval(expr)?, *span).ok()
        })
    }

    /// Builds the descriptor. `entry` is the code's address relative to the descriptor; `eval` evaluates
    /// expressions.
    pub fn finish(
        &self,
        entry: i64,
        eval: &dyn Fn(&Expr) -> Result<i64, AsmError>,
    ) -> Result<[u8; 64], AsmError> {
        let mut values: Vec<(&str, u32)> = Vec::new();
        for (item, expr, span) in &self.given {
            values.push((item.name, item.check(self.arch, eval(expr)?, *span)?));
        }
        let given = |name: &str| values.iter().rev().find(|g| g.0 == name).map(|g| g.1);
        let mut d = descriptor::Descriptor::ZERO;
        let rules = &self.arch.facts().descriptor;
        for item in &ITEMS {
            let default = if item.is_on(self.arch) { item.default } else { 0 };
            let value = given(item.name).unwrap_or(default);
            match item.storage {
                // Some directives share bits.
                Storage::Field(field) => d.set(field, d.get(field) | value),
                Storage::Preload(field) if rules.preloads_kernarg => d.set(field, value),
                Storage::Vgprs(_) | Storage::Preload(_) | Storage::UserSgprs | Storage::Ignored(_) => {}
            }
        }
        let wave64 = given("wavefront_size32") == Some(0);
        let granule = rules.vgpr_granule[usize::from(wave64)];
        let vgprs = given("next_free_vgpr").unwrap_or(0).max(1);
        d.set(VGPR_GRANULES, vgprs.div_ceil(granule) - 1);
        if let Some([granule, more]) = rules.sgpr_granule {
            let sgprs = given("next_free_sgpr").unwrap_or(0).saturating_add(more);
            d.set(SGPR_GRANULES, sgprs.div_ceil(granule) - 1);
        }
        if rules.accum_offset {
            d.set(ACCUM_OFFSET, self.accum_offset(given("accum_offset"), vgprs)?);
        }
        let pairs = [DISPATCH_PTR, QUEUE_PTR, KERNARG_SEGMENT_PTR, DISPATCH_ID].map(|pair| 2 * d.get(pair));
        let counted = pairs.iter().sum::<u32>() + d.get(PRIVATE_SEGMENT_SIZE) + d.get(KERNARG_PRELOAD_LENGTH);
        d.set(rules.user_sgpr_count, given("user_sgpr_count").unwrap_or(counted));
        d.set_entry_offset(entry);
        Ok(*d.bytes())
    }
}

impl Descriptor {
    /// ACCUM_OFFSET: the number of VGPRs before the accumulation VGPRs in units of four (AMDGPUUsage,
    /// *compute_pgm_rsrc3 for GFX90A*).
    fn accum_offset(&self, given: Option<u32>, vgprs: u32) -> Result<u32, AsmError> {
        let own = self.given.iter().rev().find(|g| g.0.name == "accum_offset");
        let wrong = |what: &str| {
            let span = own.map_or(Span::default(), |g| g.2);
            Err(AsmError::new(span, format!("`.amdhsa_accum_offset` {what}")))
        };
        match given {
            None => wrong("is missing: it says where accumulation VGPRs begin"),
            Some(offset) if !(4..=256).contains(&offset) || offset % 4 != 0 => {
                wrong("must be a multiple of 4 from 4 to 256")
            }
            Some(offset) if offset > vgprs.next_multiple_of(4) => {
                wrong("is beyond the VGPRs that the kernel has")
            }
            Some(offset) => Ok(offset / 4 - 1),
        }
    }
}

impl Item {
    fn check(&self, arch: Arch, value: i64, span: Span) -> Result<u32, AsmError> {
        let max = match self.storage {
            Storage::UserSgprs => arch.facts().descriptor.user_sgpr_count.max(),
            Storage::Field(field) | Storage::Preload(field) => field.max(),
            Storage::Vgprs(bits) | Storage::Ignored(bits) => u32::MAX >> (32 - bits),
        } as i64;
        if !(0..=max).contains(&value) {
            return Err(AsmError::new(
                span,
                format!("`.amdhsa_{}` is from 0 to {max}, not {value}", self.name),
            ));
        }
        Ok(value as u32)
    }
}
