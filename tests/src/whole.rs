//! Random programs with straight-line computation, in-bounds memory accesses, branches, terminating loops,
//! and divergence.
//!
//! SGPRs from [`RESERVED`] on are reserved for the generator: addresses, loop counters, saved EXEC. Random
//! instructions never write them.

use crate::random::{self, GLOBAL_BASE, Rng};
use isa_spec::pcode::ir::{Shape, State};
use isa_spec::tables::{EntryId, Role};
use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::asm::{self, NoSymbols, Options};
use wavesim::conform::run::semantics;
use wavesim::exec::program::Program;
use wavesim::inst::Inst;

/// First reserved SGPR. Random operands end below it: a base at s88 extends up to s91, or further if the
/// generator chooses it.
const RESERVED: u32 = 92;
/// First of four SGPRs for a base address or a buffer descriptor.
const ADDRESS: u32 = RESERVED;
const OFFSET: u32 = 96;
/// First loop counter; one SGPR per nesting depth.
const COUNTER: u32 = 98;
/// First saved EXEC; one pair of SGPRs per nesting depth.
const SAVED: u32 = 102;
/// Maximum nesting depth of loops and divergent regions.
const DEPTH: u32 = 2;

/// Features of the generated programs.
#[derive(Debug, Clone, Copy)]
pub struct Features {
    pub arch: Arch,
    pub size: u32,
    /// Float arithmetic, rounding and conversions.
    pub floats: bool,
    /// Instructions that write MODE.
    pub mode: bool,
    /// Accesses to memory other than LDS, with addresses computed by the program.
    pub memory: bool,
}

/// Table entries to choose instructions from.
pub struct Entries {
    straight: Vec<EntryId>,
    memory: Vec<EntryId>,
}

impl Entries {
    pub fn new(kind: Features) -> Entries {
        let table = kind.arch.table();
        let (mut straight, mut memory) = (Vec::new(), Vec::new());
        let none = BTreeMap::new();
        let mut rng = Rng(1);
        for id in 0..table.entries.len() as EntryId {
            let instruction = &table.instructions[table.entries[id as usize].inst as usize];
            let Some(inst) = random::instruction(&mut rng, kind.arch, id) else { continue };
            let Some((sem, _)) = semantics(kind.arch, &inst, &none) else { continue };
            let uses = &sem.uses;
            let scalar = instruction.group() == "SALU";
            let writes_mode = uses.state_writes.contains(&State::Mode) || uses.control && scalar;
            // Scalar semantics that assign registers by number can write the reserved ones.
            let writes_any_sgpr = uses.indexed.contains(&Role::D0) && sem.shape == Shape::Scalar;
            let pc = instruction.flags().branch
                || instruction.flags().indirect_branch
                || uses.state_reads.contains(&State::Pc)
                || uses.state_writes.contains(&State::Pc);
            let stops = uses.control && !scalar;
            if pc
                || stops
                || writes_any_sgpr
                || !kind.floats && !uses.float.is_empty()
                || !kind.mode && writes_mode
            {
                continue;
            }
            match instruction.group() {
                // Reads clocks, so it is not deterministic.
                "SALU" if instruction.name == "S_GETREG_B32" => {}
                "VALU" | "SALU" | "LDS" => straight.push(id),
                "VMEM"
                    if !instruction.name.starts_with("IMAGE") && (uses.memory_read || uses.memory_write) =>
                {
                    memory.push(id);
                }
                "SMEM" if uses.memory_read => memory.push(id),
                _ => {}
            }
        }
        Entries { straight, memory }
    }
}

/// Generates a program of about `length` instructions.
pub fn program(rng: &mut Rng, kind: Features, entries: &Entries, length: usize) -> Program {
    let mut generator = Generator { rng, kind, entries, insts: Vec::new(), bytes: 0 };
    generator.block(length, 0);
    generator.text("s_endpgm");
    let insts = generator.insts.into_iter().map(|inst| (inst, 0)).collect();
    Program::new(kind.arch, insts).expect("a program of moderate size")
}

struct Generator<'a> {
    rng: &'a mut Rng,
    kind: Features,
    entries: &'a Entries,
    insts: Vec<Inst>,
    bytes: u64,
}

impl Generator<'_> {
    fn push(&mut self, inst: Inst) -> usize {
        self.bytes += inst.size as u64;
        self.insts.push(inst);
        self.insts.len() - 1
    }

    fn text(&mut self, text: &str) -> usize {
        let options = Options::new(self.kind.arch).wave(self.kind.size);
        let parsed = asm::parse(text, &options, &NoSymbols).unwrap_or_else(|e| panic!("{text}: {e}"));
        self.push(parsed.inst)
    }

    /// Sets the field that has one of the names.
    fn set(&mut self, index: usize, names: &[&str], value: u32) {
        let table = self.kind.arch.table();
        let inst = &mut self.insts[index];
        let field =
            inst.encoding(table).fields.iter().position(|f| names.contains(&f.name)).expect("a field");
        inst.fields[field] = value;
    }

    /// Returns the operands for a lane mask: `exec_lo` and `s2` in wave32, `exec` and `s[2:3]` in wave64.
    fn mask_operands(&self, name: &str, at: u32) -> (String, String) {
        match self.kind.size {
            32 => (format!("{name}_lo"), format!("s{at}")),
            _ => (name.to_string(), format!("s[{at}:{}]", at + 1)),
        }
    }

    fn block(&mut self, length: usize, depth: u32) {
        let end = self.insts.len() + length;
        while self.insts.len() < end {
            let inner = 1 + self.rng.below(24.min(1 + length as u64 / 2)) as usize;
            match self.rng.below(40) {
                0 | 1 => self.branch(inner, depth),
                2 if depth < DEPTH && length > 8 => self.repeat(inner, depth),
                3 if depth < DEPTH && length > 8 => self.diverge(inner, depth),
                4 if depth == 0 => self.far_jump(inner),
                5 => self.set_exec(depth),
                6..=11 if self.kind.memory => self.memory(),
                _ => self.straight(),
            }
        }
    }

    fn any(&mut self, entries: &[EntryId]) -> Inst {
        loop {
            let entry = self.rng.pick(entries);
            let Some(inst) = random::instruction(self.rng, self.kind.arch, entry) else { continue };
            // Also checks the second half of a dual instruction.
            let none = BTreeMap::new();
            let Some((_, second)) = semantics(self.kind.arch, &inst, &none) else { continue };
            if self.kind.floats || second.is_none_or(|sem| sem.uses.float.is_empty()) {
                return inst;
            }
        }
    }

    fn straight(&mut self) {
        let inst = self.any(&self.entries.straight);
        self.push(inst);
    }

    /// Emits a conditional forward branch.
    fn branch(&mut self, inner: usize, depth: u32) {
        let on = self.rng.pick(&["scc0", "scc1", "vccz", "vccnz", "execz", "execnz"]);
        let at = self.text(&format!("s_cbranch_{on} 0"));
        let next = self.bytes;
        self.block(inner, depth);
        let distance = (self.bytes - next) / 4;
        self.set(at, &["SIMM16"], distance as u32);
    }

    fn repeat(&mut self, inner: usize, depth: u32) {
        let (counter, count) = (COUNTER + depth, 1 + self.rng.below(3));
        self.text(&format!("s_mov_b32 s{counter}, {count}"));
        let top = self.bytes;
        self.block(inner, depth + 1);
        self.text(&format!("s_sub_u32 s{counter}, s{counter}, 1"));
        self.text(&format!("s_cmp_lg_u32 s{counter}, 0"));
        let at = self.text("s_cbranch_scc1 0");
        let distance = (self.bytes - top) / 4;
        self.set(at, &["SIMM16"], (distance as u32).wrapping_neg() & 0xffff);
    }

    /// Emits a divergent region: disables some lanes, then restores EXEC.
    fn diverge(&mut self, inner: usize, depth: u32) {
        let bits = self.kind.size;
        let saved = SAVED + 2 * depth;
        let ((exec, saved), (vcc, _)) = (self.mask_operands("exec", saved), self.mask_operands("vcc", 0));
        let (a, b) = (self.rng.below(8), self.rng.below(8));
        self.text(&format!("v_cmp_lt_u32_e32 {vcc}, v{a}, v{b}"));
        self.text(&format!("s_and_saveexec_b{bits} {saved}, {vcc}"));
        self.block(inner, depth + 1);
        self.text(&format!("s_mov_b{bits} {exec}, {saved}"));
    }

    /// Emits a jump over a block, to an address computed from the PC.
    fn far_jump(&mut self, inner: usize) {
        let [low, high] = [OFFSET, OFFSET + 1];
        self.text(&format!("s_getpc_b64 s[{low}:{high}]"));
        let from = self.bytes;
        let at = self.text(&format!("s_add_u32 s{low}, s{low}, 0x12345678"));
        self.text(&format!("s_addc_u32 s{high}, s{high}, 0"));
        self.text(&format!("s_setpc_b64 s[{low}:{high}]"));
        self.block(inner, DEPTH);
        let distance = self.bytes - from;
        self.set(at, &["LITERAL", "SIMM32"], distance as u32);
    }

    /// Occasionally re-enables lanes, because random instructions write EXEC.
    fn set_exec(&mut self, depth: u32) {
        if depth == 0 || self.rng.chance(4) {
            let lanes = random::lanes(self.rng);
            self.text(&format!("s_mov_b32 exec_lo, 0x{:x}", lanes as u32));
            if self.kind.size == 64 {
                self.text(&format!("s_mov_b32 exec_hi, 0x{:x}", (lanes >> 32) as u32));
            }
        }
    }

    /// Emits a memory access after code that computes an in-bounds address.
    fn memory(&mut self) {
        let table = self.kind.arch.table();
        let mut inst = self.any(&self.entries.memory);
        let name = inst.instruction(table).name;
        let encoding = inst.encoding(table);
        let signature = table.signatures[inst.entry(table).sig as usize];
        let role = |role: Role| {
            let operand = signature.iter().find(|o| o.role == role)?;
            Some((operand.field? as usize, operand.size_bits))
        };
        let field = |name: &str| encoding.fields.iter().position(|f| f.name == name);
        let scalar_load = name.starts_with("S_");
        let none = BTreeMap::new();
        let lanewise =
            semantics(self.kind.arch, &inst, &none).is_some_and(|(sem, _)| sem.shape == Shape::Lane);
        if !lanewise && !scalar_load {
            // The access reads the addresses of all lanes, so all lanes need a masked address.
            self.text("s_mov_b32 exec_lo, -1");
            self.text("s_mov_b32 exec_hi, -1");
        }
        let atomic = name.contains("ATOMIC");
        let align = if atomic { !7 } else { !self.rng.below(4) as u32 };
        for offset in ["OFFSET", "IOFFSET"].into_iter().filter_map(field) {
            inst.fields[offset] &= align & 63;
        }
        let vector = self.rng.below(8) as u32;
        let buffer = name.contains("BUFFER_");
        let scratch = name.starts_with("SCRATCH_");
        let mask = |bits: u32| format!("v_and_b32_e32 v{vector}, 0x{:x}, v{vector}", bits & align);
        let without_vaddr = role(Role::VAddr).is_none();
        let with_scalar = buffer
            || scalar_load
            || without_vaddr
            || (name.starts_with("GLOBAL_") || scratch) && self.rng.chance(2);
        if let Some((at, _)) = role(Role::SAddr) {
            inst.fields[at] = if with_scalar { ADDRESS } else { 124 };
        }
        if let Some((at, _)) = role(Role::SOffset) {
            inst.fields[at] = OFFSET;
            let offset = self.rng.below(64) as u32 & align;
            self.text(&format!("s_mov_b32 s{OFFSET}, {offset}"));
        }
        if scalar_load && let Some((at, _)) = role(Role::D0) {
            inst.fields[at] = 16 * self.rng.below(5) as u32;
        }
        if let Some((at, _)) = role(Role::VAddr) {
            inst.fields[at] = vector;
        }
        if buffer {
            let stride = self.rng.pick(&[0u32, 4, 16, 64]);
            let format = self.rng.bits() as u32 & 0x300e_0000 | (self.rng.below(64) as u32) << 12;
            // STRIDE_SCALE multiplies by 1, 4, 8 or 32: a larger stride than 64 leads out of the buffer.
            let scale = [0, 2, 3, 5][(format >> 18 & 3) as usize];
            let stride = if stride << scale > 64 { 0 } else { stride };
            let words = [GLOBAL_BASE as u32, stride << 16, self.rng.below(128) as u32, format];
            for (word, register) in words.into_iter().zip(ADDRESS..) {
                self.text(&format!("s_mov_b32 s{register}, 0x{word:x}"));
            }
            if role(Role::VAddr).is_some() {
                let next = vector + 1;
                self.text(&mask(0x3f));
                self.text(&format!("v_and_b32_e32 v{next}, 0x{:x}, v{next}", 0x3f & align));
            }
        } else if scratch {
            let base = self.rng.below(32) as u32 & align;
            self.text(&format!("s_mov_b32 s{ADDRESS}, {base}"));
            self.text(&mask(0x3f));
        } else {
            if with_scalar {
                self.text(&format!("s_mov_b32 s{ADDRESS}, 0x{GLOBAL_BASE:x}"));
                self.text(&format!("s_mov_b32 s{}, 0", ADDRESS + 1));
            }
            if role(Role::VAddr).is_some() {
                self.text(&mask(0xfff));
                if !with_scalar {
                    self.text(&format!("v_or_b32_e32 v{vector}, 0x{GLOBAL_BASE:x}, v{vector}"));
                    self.text(&format!("v_mov_b32_e32 v{}, 0", vector + 1));
                }
            }
        }
        self.push(inst);
    }
}
