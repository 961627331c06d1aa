//! Random legal instructions of every entry in the tables, for the assembler tests.

mod cdna;

use isa_spec::tables::{EntryId, MAX_FIELDS, OperandSig};
use wavesim::arch::Arch;
use wavesim::asm::form::{Constant, SlotKind};
use wavesim::asm::{self, Options, image};
use wavesim::codec::decode;
use wavesim::inst::Inst;

/// A linear congruential generator, so that a failure can be reproduced from its seed.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32
    }

    pub fn below(&mut self, n: u32) -> u32 {
        self.bits() % n
    }
}

/// Fields that modify how operands are read. Mostly 0, so that an illegal one is not masked by another.
const RARE: [&str; 49] = [
    "SC0",
    "SC1",
    "NT",
    "LDS",
    "ACC",
    "ACC_CD",
    "CBSZ",
    "ABID",
    "BLGP",
    "S0",
    "S1",
    "SD",
    "SRC0_SEXT",
    "SRC1_SEXT",
    "SOFFSET_EN",
    "CLAMP",
    "OMOD",
    "NEG",
    "ABS",
    "NEG_HI",
    "GLC",
    "SLC",
    "DLC",
    "TFE",
    "LWE",
    "UNORM",
    "R128",
    "A16",
    "D16",
    "OFFEN",
    "IDXEN",
    "DONE",
    "ROW_EN",
    "BOUND_CTRL",
    "FI",
    "GDS",
    "SVE",
    "SCOPE",
    "TH",
    "SRC0_NEG",
    "SRC0_ABS",
    "SRC1_NEG",
    "SRC1_ABS",
    "OP_SEL",
    "OP_SEL_HI",
    "OP_SEL_HI_2",
    "WAIT_EXP",
    "WAIT_VDST",
    "NSA",
];

/// Fields with arbitrary numeric values.
const FREE: [&str; 37] = [
    "LITERAL64",
    "LITERAL64_HI",
    "IMM",
    "DFMT",
    "NFMT",
    "DST_SEL",
    "DST_UNUSED",
    "SRC0_SEL",
    "SRC1_SEL",
    "VADDR1",
    "VADDR2",
    "VADDR3",
    "VADDR4",
    "OFFSET",
    "IOFFSET",
    "OFFSET0",
    "OFFSET1",
    "SIMM16",
    "SIMM32",
    "LITERAL",
    "ROW_MASK",
    "BANK_MASK",
    "DMASK",
    "DIM",
    "EN",
    "LANE_SEL_0",
    "LANE_SEL_1",
    "LANE_SEL_2",
    "LANE_SEL_3",
    "LANE_SEL_4",
    "LANE_SEL_5",
    "LANE_SEL_6",
    "LANE_SEL_7",
    "ATTR",
    "ATTR_CHAN",
    "WAIT_VA_VDST",
    "WAIT_VM_VSRC",
];

/// Returns an instruction of `entry` with random operands that satisfy its operand types and the hardware's
/// limits. Returns `None` if the fields encode another instruction, or if no legal instruction was found.
pub fn random_inst(options: &Options, entry: EntryId, random: &mut Random) -> Option<Inst> {
    (0..30).find_map(|_| {
        let inst = any_inst(options.arch, entry, random)?;
        asm::legal::check_decoded(&inst, options).is_ok().then_some(inst)
    })
}

fn any_inst(arch: Arch, entry: EntryId, random: &mut Random) -> Option<Inst> {
    let table = arch.table();
    let e = &table.entries[entry as usize];
    let encoding = &table.encodings[e.enc as usize];
    let name = table.instructions[e.inst as usize].name;
    let mut fields = [0u32; MAX_FIELDS];
    let signed = matches!(encoding.name, "VOP3_SDST_ENC") || encoding.name.contains("VOP3");
    for (at, field) in encoding.fields.iter().enumerate() {
        let mask = if field.width() >= 32 { u32::MAX } else { (1 << field.width()) - 1 };
        if RARE.contains(&field.name) && random.below(4) == 0 && field.name != "NSA" {
            fields[at] = random.bits() & mask;
        }
        if FREE.contains(&field.name) {
            fields[at] = random.bits() & mask;
        }
    }
    let set = |fields: &mut [u32; MAX_FIELDS], name: &str, value: u32| {
        if let Some(at) = encoding.fields.iter().position(|f| f.name == name) {
            fields[at] = value;
        }
    };
    let get = |fields: &[u32; MAX_FIELDS], name: &str| {
        encoding.fields.iter().position(|f| f.name == name).map_or(0, |at| fields[at])
    };
    let form = asm::form::forms(arch).get(entry);
    for (at, field) in encoding.fields.iter().enumerate().filter(|(at, _)| form.initial_fields[*at] != 0) {
        // SDWA selectors have nonzero defaults and may also have any other value.
        if !field.name.ends_with("_SEL") && !matches!(field.name, "DST_UNUSED" | "IMM") {
            fields[at] = form.initial_fields[at];
        }
    }
    let mut literal = false;
    for (n, operand) in table.signatures[e.sig as usize].iter().enumerate() {
        let Some(field) = operand.field else { continue };
        let ty = &table.operand_types[operand.ty as usize];
        let registers = operand.size_bits.div_ceil(32).max(1) as u32;
        let names: Vec<&(&str, u32)> = ty.values.iter().filter(|v| !v.0.starts_with("src_literal")).collect();
        let wide = form.literal_hi.is_some();
        let literal_name = if wide { "src_literal64" } else { "src_literal" };
        let wants_literal = ty.values.iter().any(|v| v.0 == literal_name)
            && form.literal.is_some()
            && !form.has_literal_operand
            && (!wide || registers == 2);
        fields[field as usize] = if wants_literal
            && !literal
            && (random.below(2) == 0 || n + 1 == table.signatures[e.sig as usize].len())
        {
            literal = true;
            ty.values.iter().find(|v| v.0 == literal_name).map_or(0, |v| v.1)
        } else if names.is_empty() {
            fields[field as usize]
        } else {
            let (name, value) = *names[random.below(names.len() as u32) as usize];
            // Register ranges must end within the register file and be aligned.
            let number = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u32>();
            let step = match registers {
                1 => 1,
                2 => 2,
                _ => 4,
            };
            match (name.chars().next(), number) {
                (Some('v'), Ok(n)) if registers > 1 => value - n + n.min(255 - registers),
                (Some('s'), Ok(n)) => value - n + n.min(104 - registers.min(104)) / step * step,
                (Some('t'), Ok(n)) if registers <= 8 => value - n + n.min(16 - registers) / step * step,
                (Some('v' | 'e' | 'm' | 't'), _) if registers > 1 => 0,
                // The upper half of an aperture is no value of 64 bits.
                _ if registers > 1 && name.ends_with("_base_hi") => value - 1,
                _ => value,
            }
        };
        // 16-bit operands in the short encodings are limited to v127; bit 7 selects the half of the register.
    }
    // Fields that LLVM's syntax cannot express must be clear.
    let packed = encoding.name.contains("VOP3P");
    let sources = form.sources as u32;
    if signed || packed {
        for name in ["NEG", "ABS", "NEG_HI"] {
            let value = get(&fields, name) & ((1 << sources) - 1);
            set(&mut fields, name, value);
        }
    }
    restrict(name, encoding.name, form, &mut fields, &set, &get, random);
    if arch.is_cdna() {
        cdna::restrict(name, encoding, form, &mut fields, &set, &get, random);
    } else if matches!(name, "V_CVT_F32_FP8" | "V_CVT_F32_BF8") {
        // RDNA's conversions of bytes have no output modifiers.
        set(&mut fields, "CLAMP", 0);
        set(&mut fields, "OMOD", 0);
    }
    if arch == Arch::Cdna5 {
        for (modifier, field) in [("clamp", "CLAMP"), ("mul", "OMOD")] {
            if !form.mods.iter().any(|m| m.name() == modifier) {
                set(&mut fields, field, 0);
            }
        }
    }
    for name in ["SBASE", "SRSRC", "SSAMP"] {
        let names = |o: &OperandSig| o.field.is_some_and(|f| encoding.fields[f as usize].name == name);
        if !table.signatures[e.sig as usize].iter().any(names) {
            set(&mut fields, name, 0);
        }
    }
    float_modifiers(form, &mut fields, &set, &get);
    image_modifiers(arch, entry, form, &mut fields, &set, &get, random);
    let mut bits = 0u128;
    for (at, field) in encoding.fields.iter().enumerate() {
        let mut value = fields[at];
        if let Some(fixed) = field.fixed {
            value = fixed;
        }
        if encoding.op_field == Some(at as u8) {
            value = e.opcode as u32;
        }
        bits = field.insert(bits, value);
    }
    // The second half of a dual instruction is the same operation, if it is allowed there.
    if encoding.name.starts_with("VOPD") {
        let at = encoding.fields.iter().position(|f| f.name == "OPY")?;
        bits = encoding.fields[at].insert(bits, e.opcode as u32);
    }
    let words: Vec<u32> = (0..encoding.bits as usize / 32).map(|at| (bits >> (32 * at)) as u32).collect();
    let inst = decode(arch, &words).ok()?;
    (inst.entry == entry && (!encoding.name.starts_with("VOPD") || inst.entry_y == entry)).then_some(inst)
}

type Set<'a> = &'a dyn Fn(&mut [u32; MAX_FIELDS], &str, u32);
type Get<'a> = &'a dyn Fn(&[u32; MAX_FIELDS], &str) -> u32;

/// Clears negation, absolute value, output modifiers and clamping on operands that are not floats.
fn float_modifiers(form: &asm::form::Form, fields: &mut [u32; MAX_FIELDS], set: Set, get: Get) {
    use Constant::{Bf16, F16, F32, F64, Mixed, PackedBf16, PackedF16};
    let floats = |constants: &[Constant]| {
        let of = |n| form.slots.iter().find(|s| s.source == Some(n) && s.kind == SlotKind::Value);
        let float = |n| of(n).is_some_and(|s| constants.contains(&s.constant) && (s.signed || n == 3));
        (0..4).map(|n| u32::from(float(n)) << n).sum::<u32>()
    };
    let signed = floats(&[F16, F32, F64, Bf16, Mixed, PackedF16, PackedBf16]);
    for (name, bits) in [("NEG", signed), ("ABS", signed), ("NEG_HI", signed)] {
        set(fields, name, get(fields, name) & bits & 7);
    }
    if floats(&[F16, F32, F64]) & 8 == 0 {
        set(fields, "OMOD", 0);
        set(fields, "CLAMP", 0);
    }
}

/// Sets dimensions and masks that the kind of image instruction permits (ISA manuals, *Image Instructions*).
fn image_modifiers(
    arch: Arch,
    entry: EntryId,
    form: &asm::form::Form,
    fields: &mut [u32; MAX_FIELDS],
    set: Set,
    get: Get,
    random: &mut Random,
) {
    let inst = |fields: &[u32; MAX_FIELDS]| Inst { entry, entry_y: EntryId::MAX, size: 0, fields: *fields };
    let name = inst(fields).instruction(arch.table()).name;
    if !name.starts_with("IMAGE_") {
        return;
    }
    if let Some(ray) = image::ray_addresses(&inst(fields), arch) {
        return addresses(ray.len(), fields, set, get);
    }
    if name.contains("_ATOMIC_") || name.contains("_PCK") || name.contains("_GET_") {
        set(fields, "D16", 0);
    }
    // 1D, 2D, 3D, cube, 1D array, 2D array; 6 and 7 are multisampled.
    let dims: &[u32] = match name {
        n if n.contains("MSAA") => &[6, 7],
        n if n.contains("GATHER4") => &[1, 3, 5],
        n if n.contains("SAMPLE") || n.contains("_MIP") || n.contains("GET_LOD") => &[0, 1, 2, 3, 4, 5],
        _ => &[0, 1, 2, 3, 4, 5, 6, 7],
    };
    set(fields, "DIM", dims[random.below(dims.len() as u32) as usize]);
    let one = 1 << random.below(4);
    let wide = form.slots.first().is_some_and(|s| s.size.registers(32) > 1);
    let mask = match name {
        n if n.contains("GATHER4") || n.contains("MSAA") => one,
        n if n.contains("_ATOMIC_") && n.contains("CMPSWAP") => 3,
        n if n.contains("_ATOMIC_") => {
            if wide {
                3
            } else {
                1
            }
        }
        _ => get(fields, "DMASK").max(1),
    };
    set(fields, "DMASK", mask);
    let used = image::address_registers(&inst(fields), arch);
    addresses(used as usize, fields, set, get);
}

/// Limits used address fields so that a range of registers fits, and clears unused ones.
fn addresses(used: usize, fields: &mut [u32; MAX_FIELDS], set: Set, get: Get) {
    for n in 1..5 {
        let field = format!("VADDR{n}");
        let value = get(fields, &field) % 240;
        set(fields, &field, if n < used { value } else { 0 });
    }
}

/// Removes combinations of fields that are meaningless or redundant.
fn restrict(
    name: &str,
    encoding: &str,
    form: &asm::form::Form,
    fields: &mut [u32; MAX_FIELDS],
    set: Set,
    get: Get,
    random: &mut Random,
) {
    let sources = form.sources;
    // Halves that LLVM 19 has no modifier for select the low half; `v1.h` has separate tests.
    let listed = |what: &str| {
        form.mods
            .iter()
            .any(|m| m.name() == what && !matches!(m, asm::modifier::Mod::Bits { printed: false, .. }))
    };
    let clear = |fields: &mut [u32; MAX_FIELDS], names: &[&str]| {
        for n in names {
            set(fields, n, 0);
        }
    };
    // OP_SEL has a bit for each source in use that the modifier selects, and for the destination.
    let selects = form.mods.iter().find_map(|m| match m {
        asm::modifier::Mod::Bits { name: "op_sel", sources, .. } => Some(*sources as u32),
        _ => None,
    });
    let used = ((1u32 << sources) - 1) & selects.unwrap_or(u32::MAX);
    let dest = if encoding.contains("VOP3P") { 0 } else { 8 };
    let op_sel = get(fields, "OP_SEL") & if listed("op_sel") { used | dest } else { 0 };
    set(fields, "OP_SEL", op_sel);
    if name.contains("PERMLANE") {
        set(fields, "OP_SEL", op_sel & 3);
    }
    if encoding.contains("VOP3P") && !form.mixed && sources < 3 {
        set(fields, "OP_SEL_HI_2", 1);
    }
    if encoding.contains("DPP16") {
        set(fields, "SRC0", 250);
        set(
            fields,
            "DPP_CTRL",
            [0xe4, 0x101, 0x112, 0x121, 0x140, 0x141, 0x155, 0x163][random.below(8) as usize],
        );
        clear(fields, &["SRC0_NEG", "SRC0_ABS", "SRC1_NEG", "SRC1_ABS"]);
    }
    if encoding.contains("DPP8") {
        set(fields, "SRC0", 233 + random.below(2));
    }
    if form.mods.is_empty() {
        clear(fields, &["GLC", "SLC", "DLC", "TH", "SCOPE", "OFFSET", "IOFFSET", "SOFFSET"]);
        clear(fields, &["OFFEN", "IDXEN"]);
    }
    if !name.contains("_ATOMIC_") && get(fields, "TH") == 7 {
        set(fields, "TH", 0);
    }
    if get(fields, "TH") == 3 && !name.contains("_ATOMIC_") {
        set(fields, "SCOPE", 3);
    }
    // Cascaded atomics have a scope wider than a shader engine. Returning non-temporal atomics cannot have
    // system scope.
    if name.contains("_ATOMIC_") && get(fields, "TH") & 4 != 0 {
        set(fields, "SCOPE", 2);
    } else if name.contains("_ATOMIC_") && get(fields, "TH") == 3 {
        set(fields, "SCOPE", 1);
    }
    // Only loads can report missing pages.
    let loads = name.starts_with("BUFFER_LOAD_") && !name.contains("_LDS_") && !name.contains("D16");
    if !(loads || name.starts_with("IMAGE_LOAD") || name.starts_with("IMAGE_SAMPLE")) {
        clear(fields, &["TFE"]);
    }
    if !encoding.contains("SCRATCH") {
        clear(fields, &["SVE"]);
    }
    if name.contains("PERMUTE_B32") || name.contains("SWIZZLE") {
        clear(fields, &["GDS"]);
    }
    // Matrix and byte products do not select halves.
    if name.contains("WMMA")
        || name.contains("DOT4_")
        || name.starts_with("V_INTERP_") && !name.contains("F16")
    {
        clear(fields, &["OP_SEL", "CLAMP"]);
    }
    if name.starts_with("DS_GWS_") || name.contains("_GS_REG_") {
        set(fields, "GDS", 1);
    }
    if form.slots.is_empty() {
        clear(fields, &["CLAMP", "OMOD", "NEG", "ABS", "OP_SEL"]);
    }
    // Offsets of buffer loads are unsigned.
    if name.starts_with("S_BUFFER_") || name == "S_ATC_PROBE_BUFFER" {
        for field in ["OFFSET", "IOFFSET"] {
            set(fields, field, get(fields, field) & 0xfffff);
        }
    }
    // Offsets that are not negative lack the highest bit.
    for m in &form.mods {
        if let asm::modifier::Mod::Number { field, style: asm::modifier::Style::Positive, .. } = m
            && encoding == "ENC_VBUFFER"
        {
            fields[*field as usize] &= 0x7f_ffff;
        }
    }
    if form.traits.has(asm::dialect::Trait::TensorGroups) {
        for name in ["DMASK", "DIM", "VADDR4"] {
            set(fields, name, get(&form.initial_fields, name));
        }
        clear(fields, &["R128", "A16", "D16", "TFE", "VDATA"]);
        // Both of the optional groups are absent, or none.
        let null = get(&form.initial_fields, "VADDR2");
        if random.below(4) == 0 || get(fields, "VADDR2") == null || get(fields, "VADDR3") == null {
            set(fields, "VADDR2", null);
            set(fields, "VADDR3", null);
        }
    }
    if encoding == "ENC_FLAT" {
        let offset = get(fields, "OFFSET") & 0xfff;
        set(fields, "OFFSET", offset);
    }
    if encoding.contains("SCRATCH") && get(fields, "SVE") == 0 {
        clear(fields, &["VADDR", "ADDR"]);
    }
    if form.returns.is_some_and(|f| fields[f as usize] & 1 == 0) {
        clear(fields, &["VDST"]);
    }
    if encoding.contains("BUF") && get(fields, "IDXEN") + get(fields, "OFFEN") == 0 {
        clear(fields, &["VADDR"]);
    }
    if encoding.ends_with("EXP") || encoding.ends_with("EXPORT") {
        for n in 0..4 {
            if get(fields, "EN") >> n & 1 == 0 {
                set(fields, &format!("VSRC{n}"), 0);
            }
        }
    }
    if encoding.contains("MIMG") || encoding.contains("VIMAGE") || encoding.contains("VSAMPLE") {
        set(fields, "NSA", u32::from(encoding.ends_with("NSA")));
        if name.starts_with("IMAGE_BVH") {
            set(fields, "DIM", 0);
            clear(fields, &["D16", "TFE", "LWE", "GLC", "SLC", "DLC"]);
        }
    }
    if name == "S_ENDPGM" || !form.slots.iter().any(|s| s.field.is_some()) && encoding == "ENC_SOPP" {
        set(fields, "SIMM16", 0);
    }
    if name.starts_with("S_SENDMSG") {
        set(fields, "SIMM16", 1);
    }
    if encoding == "ENC_SMEM" && get(fields, "SOFFSET") == 124 && form.slots.is_empty() {
        clear(fields, &["SOFFSET"]);
    }
    if name.starts_with("S_PREFETCH") || name.starts_with("S_BUFFER_PREFETCH") || name.starts_with("S_ATC") {
        clear(fields, &["TH", "SCOPE"]);
        let length = get(fields, "SDATA") & 31;
        set(fields, "SDATA", length);
    }
    if name.starts_with("S_SUBVECTOR")
        || name.starts_with("S_DELAY")
        || name.contains("DEPCTR")
        || name == "S_WAIT_ALU"
    {
        let value = get(fields, "SIMM16") & if name.starts_with("S_DELAY") { 0x1b3 } else { 0xff9f };
        set(fields, "SIMM16", value);
    }
    if name == "S_WAITCNT" {
        // Bit 3 does not belong to a counter.
        let value = get(fields, "SIMM16") & !8;
        set(fields, "SIMM16", value);
    }
    let format = get(fields, "FORMAT");
    set(fields, "FORMAT", if name.starts_with("TBUFFER") { format } else { format.min(1) });
    set(fields, "NV", 0);
    // The machine code counts these in pairs and groups of four of the 106 SGPRs.
    set(fields, "SBASE", 2 * random.below(12));
    set(fields, "SRSRC", random.below(24));
    set(fields, "SSAMP", random.below(24));
    // The text of a cascaded atomic does not express whether it returns.
    if name.contains("_ATOMIC_") && get(fields, "TH") & 4 != 0 {
        set(fields, "TH", get(fields, "TH") & !1);
    }
    // 16-bit operands: a 16-bit literal that is not an inline constant, and no float constant for an integer
    // operand, which would be a literal in text.
    let sixteen = |c: Constant| matches!(c, Constant::Int16 | Constant::F16 | Constant::Bf16);
    if form.slots.iter().any(|s| sixteen(s.constant)) {
        for literal in ["LITERAL", "SIMM32"] {
            set(fields, literal, get(fields, literal) & 0xfff | 0x1000);
        }
    }
    for slot in form.slots.iter().filter(|s| s.constant == Constant::Int16 && s.kind == SlotKind::Value) {
        if let Some(field) = slot.field
            && (240..=248).contains(&fields[field as usize])
            && slot.source.is_some_and(|s| s < 3)
        {
            fields[field as usize] = 129;
        }
    }
}
