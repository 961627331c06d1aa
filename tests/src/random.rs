//! Random instructions and machine states, generated from the ISA tables: legal field values, registers with
//! interesting values, and addresses that mostly hit a small memory.

use isa_spec::tables::{ArchTable, Entry, EntryId, MAX_FIELDS, OperandSig, Role};
use std::sync::LazyLock;
use wavesim::arch::Arch;
use wavesim::exec::image::{self, Dimension, Filter, Image, MipFilter, Sampler, Wrap};
use wavesim::exec::record;
use wavesim::inst::Inst;
use wavesim::operand::unlisted_code;
use wavesim::state::{ALL_VGPRS, LaneVec, VGPRS, Wave};

/// SplitMix64. Deterministic, so that a failure can be reproduced from its seed.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    #[inline(always)]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.bits() % n }
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// Returns NaNs of either sign, quiet or signalling, with random payloads: an f32 or the high half of an f64, or
    /// two halves of which at least one is an f16 or a bf16.
    pub fn nan(&mut self) -> u32 {
        let bits = self.bits() as u32;
        match self.below(4) {
            0 | 1 => bits | 0x7f80_0000 | (bits & 0x7f_ffff == 0) as u32,
            2 => bits | 0x7ff0_0000,
            _ => {
                let half = |x: u32| (x | 0x7c00 | (x & 0x3ff == 0) as u32) & 0xffff;
                half(bits) | if self.chance(2) { half(bits >> 16) << 16 } else { bits & 0xffff_0000 }
            }
        }
    }

    /// Returns a random dword: edge cases of all number formats, small integers, or noise.
    pub fn dword(&mut self) -> u32 {
        const F32: [u32; 14] = [
            0,
            0x8000_0000,
            1,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x7f80_0001,
            0x3f80_0000,
            0xbf80_0000,
            0x4b00_0000,
        ];
        const F16: [u16; 14] = [
            0, 0x8000, 1, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x3c00, 0xbc00, 0x3555,
            0x6400,
        ];
        let half = |rng: &mut Rng| if rng.chance(3) { rng.bits() as u16 } else { rng.pick(&F16) } as u32;
        match self.below(8) {
            0 if self.chance(4) => self.nan(),
            0 | 1 => self.pick(&F32),
            2 | 3 => half(self) | half(self) << 16,
            4 => self.below(70) as u32,
            5 => (-(self.below(70) as i64)) as u32,
            // An f32 of moderate magnitude.
            6 => (self.bits() as u32 & 0x807f_ffff) | (110 + self.below(40) as u32) << 23,
            _ => self.bits() as u32,
        }
    }
}

/// Returns a random lane mask.
pub fn lanes(rng: &mut Rng) -> u64 {
    match rng.below(4) {
        0 => u64::MAX,
        1 => 1 << rng.below(64),
        2 if rng.chance(4) => 0,
        _ => rng.bits(),
    }
}

/// Sizes in bytes, and the base address, of the memories for random instructions.
pub const GLOBAL: u64 = 0x2000;
pub const GLOBAL_BASE: u64 = 0x10_0000;
pub const LDS: u64 = 0x800;
pub const SCRATCH: u32 = 0x100;

/// End of the VGPRs used as operands. The widest operand still fits in the register file.
const OPERAND_VGPRS: u32 = 200;

/// Returns a random instruction of an entry with operand codes that it accepts, or `None` if the entry cannot
/// stand alone (the second half of VOPD).
pub fn instruction(rng: &mut Rng, arch: Arch, id: EntryId) -> Option<Inst> {
    loop {
        let inst = with_listed_codes(rng, arch, id)?;
        if unlisted_code(arch, &inst).is_none() {
            return Some(inst);
        }
    }
}

/// Returns a random instruction of an entry, as [`instruction`] does. In one of eight, some operand has a code
/// that it does not accept.
pub fn any_instruction(rng: &mut Rng, arch: Arch, id: EntryId) -> Option<Inst> {
    let inst = instruction(rng, arch, id)?;
    if !rng.chance(8) {
        return Some(inst);
    }
    let table = arch.table();
    let encoding = inst.encoding(table);
    let operands = table.signatures[inst.entry(table).sig as usize];
    let fields: Vec<u8> = operands.iter().filter_map(|operand| operand.field).collect();
    let changed = (0..16).find_map(|_| {
        let field = *fields.get(rng.below(fields.len() as u64) as usize)?;
        let mut changed = inst;
        changed.fields[field as usize] =
            rng.below(1 << encoding.fields[field as usize].width().min(9)) as u32;
        unlisted_code(arch, &changed).map(|_| changed)
    });
    Some(changed.unwrap_or(inst))
}

/// Returns a random instruction of an entry, with codes that the XML lists for each operand's type. A literal
/// may lack its word, and scalar sources of SDWA have any code.
fn with_listed_codes(rng: &mut Rng, arch: Arch, id: EntryId) -> Option<Inst> {
    let table = arch.table();
    let entry = &table.entries[id as usize];
    let encoding = &table.encodings[entry.enc as usize];
    let mut fields = [0; MAX_FIELDS];
    for (value, field) in fields.iter_mut().zip(encoding.fields) {
        let width = field.width();
        let any = rng.bits() as u32 & if width >= 32 { u32::MAX } else { (1 << width) - 1 };
        *value = match field.name {
            _ if field.fixed.is_some() => field.fixed?,
            "LITERAL" | "SIMM32" => rng.dword(),
            // Each modifier is set on a quarter of the instructions.
            "NEG" | "ABS" | "OP_SEL" | "NEG_HI" | "OMOD" | "CLAMP" | "CM" if !rng.chance(4) => 0,
            "OP_SEL_HI" | "OP_SEL_HI_2" if !rng.chance(4) => any | ((1u64 << width) - 1) as u32,
            "OFFSET" | "IOFFSET" | "OFFSET0" | "OFFSET1" => rng.below(64) as u32,
            "ROW_MASK" | "BANK_MASK" if rng.chance(2) => 15,
            "DPP_CTRL" => dpp_ctrl(rng),
            "SWZ" | "TFE" | "NV" | "GDS" => 0,
            // Addresses of images, which signatures lack or have as one register; some are groups.
            "VADDR0" | "VADDR1" | "VADDR2" | "VADDR3" | "VADDR4" => any % OPERAND_VGPRS,
            _ => any,
        };
    }
    if let Some(op) = encoding.op_field {
        fields[op as usize] = entry.opcode as u32;
    }
    operands(rng, table, entry, &mut fields);
    let mut entry_y = EntryId::MAX;
    if encoding.name.starts_with("VOPD") {
        let find = |name: &str| encoding.fields.iter().position(|f| f.name == name);
        // Operations may be possible in one half only.
        let writes = |entry: &Entry, field: &str| {
            let own = |o: &OperandSig| o.field.map(usize::from) == find(field);
            table.signatures[entry.sig as usize].iter().any(own)
        };
        if !writes(entry, "VDSTX") {
            return None;
        }
        let second = |e: &Entry| e.enc == entry.enc && writes(e, "VDSTY");
        let seconds: Vec<EntryId> =
            (0..table.entries.len() as EntryId).filter(|&e| second(&table.entries[e as usize])).collect();
        entry_y = rng.pick(&seconds);
        fields[find("OPY")?] = table.entries[entry_y as usize].opcode as u32;
        operands(rng, table, &table.entries[entry_y as usize], &mut fields);
        // One destination must be even, the other odd. In VOPD3 they must not overlap: the first one may be a pair.
        let (x, y) = (find("VDSTX")?, find("VDSTY")?);
        if encoding.fields[y].width() < encoding.fields[x].width() {
            fields[y] = fields[y] & !1 | (fields[x] & 1 ^ 1);
        } else if matches!(fields[y].wrapping_sub(fields[x]), 0 | 1) {
            fields[y] = fields[x] + 2;
        }
    }
    Some(Inst { entry: id, entry_y, size: (encoding.bits / 8) as u8, fields })
}

fn dpp_ctrl(rng: &mut Rng) -> u32 {
    let n = rng.below(16) as u32;
    match rng.below(8) {
        0 => rng.below(256) as u32,
        1 => 0x100 + n.max(1),
        2 => 0x110 + n.max(1),
        3 => 0x120 + n.max(1),
        4 => 0x140,
        5 => 0x141,
        6 => 0x150 + n,
        _ => 0x160 + n,
    }
}

/// Fills operand fields with values that the XML lists for their types.
fn operands(rng: &mut Rng, table: &'static ArchTable, entry: &Entry, fields: &mut [u32; MAX_FIELDS]) {
    let encoding = &table.encodings[entry.enc as usize];
    for operand in table.signatures[entry.sig as usize] {
        let Some(at) = operand.field else { continue };
        let field = &encoding.fields[at as usize];
        if field.name.contains("LITERAL") || field.name.starts_with("SIMM") || field.fixed.is_some() {
            continue;
        }
        let ty = &table.operand_types[operand.ty as usize];
        let vgpr = rng.below(OPERAND_VGPRS as u64) as u32;
        // Prefers a few registers, so that operands often coincide.
        let vgpr = if rng.chance(2) { vgpr & 7 } else { vgpr };
        let half = |rng: &mut Rng, reg: u32| {
            let e32 = ["VOP1", "VOP2", "VOPC"].iter().any(|e| encoding.name.contains(e));
            if operand.size_bits == 16 && e32 { reg & 0x7f | rng.pick(&[0, 0x80]) } else { reg }
        };
        let is_register = matches!(ty.name, "OPR_VGPR" | "OPR_VGPR_OR_ACCVGPR" | "OPR_ACCVGPR");
        fields[at as usize] = if is_register {
            half(rng, vgpr)
        } else if ty.values.is_empty() {
            continue;
        } else {
            let has_vgprs = ty.values.iter().any(|v| v.1 >= 256);
            let scalar = rng.pick(ty.values).1;
            if has_vgprs && rng.chance(2) {
                256 + half(rng, vgpr)
            } else if scalar >= 256 {
                256 + half(rng, scalar & 0x7f)
            } else if (124..128).contains(&scalar) && operand.output && operand.size_bits == 64 {
                // A pair cannot begin at M0, and the destination of a compare that writes EXEC cannot be
                // EXEC.
                4
            } else if scalar < 106 {
                // Wide operands stay below VCC.
                scalar.min(90) & !3
            } else {
                scalar
            }
        };
    }
}

/// Returns random bytes. The count is rounded down to a multiple of eight.
pub fn bytes(rng: &mut Rng, count: u64) -> Vec<u8> {
    let mut out = vec![0; count as usize / 8 * 8];
    for word in out.as_chunks_mut().0 {
        *word = rng.bits().to_le_bytes();
    }
    out
}

/// Returns a wave with random registers, masks and MODE.
pub fn wave(rng: &mut Rng, size: u32) -> Wave {
    let mut wave = Wave::new(size);
    // Registers are random windows of a pool, because generating all values anew would dominate the run time.
    static POOL: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let mut rng = Rng(0);
        (0..1 << 16).map(|_| rng.dword()).collect()
    });
    // Half of these values are NaNs: most instructions have several NaN operands, with different payloads.
    static NANS: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let mut rng = Rng(0);
        (0..1 << 13).map(|_| if rng.chance(2) { rng.nan() } else { rng.dword() }).collect()
    });
    let nans = rng.chance(4);
    let pool = if nans { &*NANS } else { &*POOL };
    for half in 0..wave.halves() {
        for reg in 0..VGPRS {
            let at = rng.below(pool.len() as u64 - 32) as usize;
            let mut row = LaneVec([pool[at]; 32]);
            if !rng.chance(8) {
                row.0.copy_from_slice(&pool[at..at + 32]);
            }
            wave.set_lane_vec(half, reg, row);
        }
    }
    for code in 0..128 {
        let value = if nans && rng.chance(2) { rng.nan() } else { rng.dword() };
        wave.set_sgpr(code, value);
    }
    wave.scc = rng.below(2) as u32;
    // Rounding and denormal modes, mostly the usual ones, and DX10_CLAMP, IEEE, FP16_OVFL.
    let modes = match rng.below(4) {
        0 => 0xf0,
        1 => 0xc0,
        2 => 0xf0 | rng.below(16) as u32,
        _ => rng.below(256) as u32,
    };
    wave.mode = modes | (rng.below(4) as u32 * 0x100) | if rng.chance(8) { 1 << 23 } else { 0 };
    let m0 = if rng.chance(2) { rng.below(16) as u32 } else { rng.dword() };
    wave.set_sgpr(125, m0);
    wave.set_exec(lanes(rng));
    wave
}

/// Fills the accumulation VGPRs with random values.
pub fn accumulators(rng: &mut Rng, wave: &mut Wave) {
    for half in 0..wave.halves() {
        for reg in VGPRS..ALL_VGPRS {
            let first = rng.dword();
            let mut row = LaneVec([first; 32]);
            row.0.iter_mut().enumerate().for_each(|(lane, value)| *value = first.rotate_left(lane as u32));
            wave.set_lane_vec(half, reg, row);
        }
    }
}

/// Sets the address registers of `inst` to values that mostly hit the memories.
pub fn set_addresses(rng: &mut Rng, arch: Arch, inst: &Inst, wave: &mut Wave) {
    let table = arch.table();
    let encoding = inst.encoding(table);
    let name = inst.instruction(table).name;
    let operands = table.signatures[inst.entry(table).sig as usize];
    let value = |role: Role| {
        let operand = operands.iter().find(|o| o.role == role)?;
        Some((inst.fields[operand.field? as usize], operand.size_bits))
    };
    let buffer = name.contains("BUFFER_");
    let scalar = value(Role::SAddr).filter(|(code, _)| *code < 124);
    let (span, base) = if name.starts_with("DS_") || name.starts_with("LDS_") {
        (LDS + 64, 0)
    } else if name.starts_with("SCRATCH_") {
        (SCRATCH as u64 + if rng.chance(8) { 64 } else { 0 }, 0)
    } else if scalar.is_some() {
        (GLOBAL / 2, 0)
    } else if name.starts_with("FLAT_") && rng.chance(3) {
        (LDS, wavesim::memory::SHARED_BASE)
    } else {
        (GLOBAL - 128, GLOBAL_BASE)
    };
    if let Some((reg, bits)) = value(Role::VAddr) {
        for lane in 0..wave.size() {
            let offset = if buffer { rng.below(64) } else { rng.below(span) };
            let aligned = if rng.chance(4) { offset } else { offset & !15 };
            let address = base + aligned;
            wave.set_vgpr(lane, reg, address as u32);
            if bits > 32 || name.starts_with("GLOBAL") || name.starts_with("FLAT") {
                let high = if buffer { rng.below(64) as u32 } else { (address >> 32) as u32 };
                wave.set_vgpr(lane, reg + 1, high);
            }
        }
    }
    if let Some((reg, _)) = scalar {
        if buffer {
            let stride = rng.pick(&[0, 4, 16, 64]);
            let words = [
                GLOBAL_BASE as u32,
                stride << 16 | (rng.below(4) as u32) << 30,
                rng.below(128) as u32,
                // Format, index stride, add-thread-id, out-of-range rule.
                rng.bits() as u32 & 0x300e_0000 | (rng.below(64) as u32) << 12,
            ];
            for (at, word) in words.into_iter().enumerate() {
                wave.set_sgpr(reg + at as u32, word);
            }
        } else if name.starts_with("SCRATCH_") {
            wave.set_sgpr(reg, rng.below(32) as u32);
        } else {
            wave.set_sgpr(reg, GLOBAL_BASE as u32);
            wave.set_sgpr(reg + 1, 0);
        }
    }
    if let Some((code, _)) = value(Role::SOffset) {
        wave.set_sgpr(code, rng.below(64) as u32);
    }
    if name.starts_with("IMAGE_") {
        image(rng, arch, inst, wave);
    }
    let _ = encoding;
}

/// Sets the registers of an image instruction: a descriptor of a small image, a sampler, and coordinates that are
/// mostly inside.
fn image(rng: &mut Rng, arch: Arch, inst: &Inst, wave: &mut Wave) {
    let table = arch.table();
    let name = inst.instruction(table).name;
    let field = |names: &[&str]| names.iter().find_map(|name| inst.field(table, name)).unwrap_or(0);
    let resource = field(&["SRSRC", "RSRC"]);
    let sampled = name.contains("SAMPLE") || name.contains("GATHER") || name.contains("LOD");
    let small = |rng: &mut Rng, most: u64| 1 + rng.below(most) as u32;
    let dimension =
        rng.pick(&[Dimension::D1, Dimension::D2, Dimension::D3, Dimension::Cube, Dimension::D2Array]);
    let mut own = Image {
        dimension,
        format: rng.pick(&[1, 5, 13, 20, 22, 29, 36, 42, 46, 50, 57, 63, 66, 67, 68, 109, 115, 122]),
        size: [small(rng, 8), small(rng, 3), 1],
        layers: 1,
        levels: rng.pick(&[1, 1, 2]),
        pitch: None,
        swizzle: rng.pick(&[[0, 1, 2, 3], [2, 1, 0, 3], [0, 4, 4, 5]]),
        sw_mode: 0,
        samples: 1,
    };
    match dimension {
        Dimension::D1 | Dimension::D1Array => own.size[1] = 1,
        Dimension::D3 => own.size[2] = small(rng, 2),
        Dimension::Cube => (own.size, own.layers, own.levels) = ([2, 2, 1], 6, 1),
        Dimension::D2Array => own.layers = small(rng, 2),
        Dimension::D2 => {}
    }
    // Some are tiled, if there is such a layout.
    let tiled = Image { sw_mode: if rng.chance(3) { rng.below(32) as u32 } else { 0 }, ..own.clone() };
    let Ok(mut words) =
        image::descriptor(&tiled, arch, GLOBAL_BASE).or(image::descriptor(&own, arch, GLOBAL_BASE))
    else {
        return;
    };
    // A level of detail that LWE reports.
    if sampled
        && rng.chance(2)
        && let Some(layout) = record::layout(arch, "ImageDescriptor")
        && layout.set(&mut words, "min_lod_warn", rng.below(512)).is_err()
    {
        return;
    }
    words.into_iter().enumerate().for_each(|(at, word)| wave.set_sgpr(resource + at as u32, word));
    if sampled {
        let sampler = Sampler {
            wrap: [rng.pick(&[Wrap::Repeat, Wrap::Mirror, Wrap::ClampToEdge, Wrap::MirrorOnce, Wrap::Border]);
                3],
            mag: rng.pick(&[Filter::Nearest, Filter::Linear]),
            min: rng.pick(&[Filter::Nearest, Filter::Linear]),
            mip: rng.pick(&[MipFilter::None, MipFilter::Nearest, MipFilter::Linear]),
            anisotropy: rng.pick(&[1, 1, 4, 16]),
            truncates: rng.chance(2),
            compare: rng.below(8) as u8,
            ..Sampler::default()
        };
        let Ok(words) = image::sampler_descriptor(&sampler, arch) else { return };
        let first = field(&["SSAMP", "SAMP"]);
        words.into_iter().enumerate().for_each(|(at, word)| wave.set_sgpr(first + at as u32, word));
    }
    let first = field(&["VADDR0", "VADDR"]);
    let mut registers: Vec<u32> = (0..12).map(|k| first + k).collect();
    registers.extend((1..5).flat_map(|n| inst.field(table, &format!("VADDR{n}"))));
    for register in registers.into_iter().filter(|register| *register < 256) {
        for lane in 0..wave.size() {
            let value = match sampled {
                true => (rng.below(320) as f32 / 128.0 - 0.25).to_bits(),
                false => rng.below(9) as u32,
            };
            let packed = rng.below(4) as u32 | (rng.below(4) as u32) << 16;
            wave.set_vgpr(lane, register, if field(&["A16"]) != 0 { packed } else { value });
        }
    }
}
