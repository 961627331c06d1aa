//! Tests of the RISC-V GPU's instructions: handlers are compared with the evaluator and with an independent
//! model of RV32I, and encoding and text are tested in round trips. Whole programs are tested with files
//! (`tests/filetests/riscv_gpu`).

use isa_spec::tables::{EntryId, MAX_FIELDS};
use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::asm::{self, NoSymbols, Options, print};
use wavesim::codec::{decode, encode};
use wavesim::conform::run::semantics;
use wavesim::exec::Context;
use wavesim::exec::machine_ops::Event;
use wavesim::exec::reference;
use wavesim::inst::Inst;
use wavesim::memory::{Memory, word_address};
use wavesim::state::wave::{EXEC_LO, NULL, SGPRS};
use wavesim::state::{Wave, Workgroup};
use wavesim_tests::random::Rng;

const ARCH: Arch = Arch::RiscvGpu;
/// Size in words of the memory for random instructions.
const WORDS: u32 = 0x400;
/// Number of registers in a register file.
const REGISTERS: u32 = 32;

fn entries() -> impl Iterator<Item = EntryId> {
    0..ARCH.table().entries.len() as EntryId
}

/// Returns an instruction with random registers and immediates.
fn random_inst(rng: &mut Rng, entry: EntryId) -> Inst {
    let table = ARCH.table();
    let encoding = &table.encodings[table.entries[entry as usize].enc as usize];
    let mut fields = [0; MAX_FIELDS];
    for (value, field) in fields.iter_mut().zip(encoding.fields) {
        let any = rng.bits() as u32 & ((1u64 << field.width()) - 1) as u32;
        // Prefers a few registers, so that operands often coincide and include the special ones.
        let few = if rng.chance(2) { any & 7 } else { any };
        // Small numbers of either sign hit memory.
        let small = (rng.below(16) as u32).wrapping_sub(8) & ((1u64 << field.width()) - 1) as u32;
        *value = match field.name {
            "IMM" if rng.chance(2) => small,
            "IMM" | "SHAMT" => any,
            _ => few,
        };
        *value = field.fixed.unwrap_or(*value);
    }
    if let Some(op) = encoding.op_field {
        fields[op as usize] = table.entries[entry as usize].opcode as u32;
    }
    Inst { entry, entry_y: EntryId::MAX, size: 4, fields }
}

fn interesting(rng: &mut Rng) -> u32 {
    match rng.below(5) {
        0 => rng.pick(&[0, 1, u32::MAX, 0x8000_0000, 0x7fff_ffff]),
        1 | 2 => rng.below(WORDS as u64) as u32,
        3 => (rng.below(70) as u32).wrapping_sub(35),
        _ => rng.bits() as u32,
    }
}

/// Returns a wave with random registers, except x0 to x3, which have their initial values.
fn random_wave(rng: &mut Rng) -> Wave {
    let mut wave = Wave::new(32);
    for lane in 0..32 {
        for reg in 4..REGISTERS {
            let value = interesting(rng);
            wave.set_vgpr(lane, reg, value);
        }
        for (reg, value) in [0, 64 + lane, 5, 128].into_iter().enumerate() {
            wave.set_vgpr(lane, reg as u32, value);
        }
    }
    for reg in 2..REGISTERS {
        let value = interesting(rng);
        wave.set_sgpr(reg, value);
    }
    wave.set_exec(rng.pick(&[u64::MAX, rng.0, rng.0 >> 16, 1, 0]) & 0xffff_ffff);
    wave.pc = 4 * (100 + rng.below(100));
    wave
}

/// Returns random contents of the memory for a number of cases.
fn random_contents(cases: u64) -> Vec<Vec<u8>> {
    let contents = |seed| {
        let mut rng = Rng(seed);
        (0..WORDS).flat_map(|_| interesting(&mut rng).to_le_bytes()).collect()
    };
    (0..cases).map(contents).collect()
}

fn memory(contents: &[u8]) -> Memory {
    let memory = Memory::word_addressed(WORDS as u64).unwrap();
    memory.write(word_address(0), contents).unwrap();
    memory
}

/// Executes one instruction with the handlers or with the evaluator.
fn step(inst: &Inst, wave: &mut Wave, memory: &Memory, compiled: bool) -> Result<(), Event> {
    let mut workgroup = Workgroup::new(1);
    let mut context = Context::new(memory, &mut [], &mut workgroup);
    if compiled {
        return wavesim::exec::step(ARCH, inst, wave, &mut context).expect("every instruction has semantics");
    }
    let none = BTreeMap::new();
    let (sem, second) = semantics(ARCH, inst, &none).expect("every instruction has semantics");
    reference::step(ARCH, inst, sem, second, wave, &mut context)
}

fn text(inst: &Inst) -> String {
    print::instruction(inst, &Options::new(ARCH))
}

#[test]
fn handlers_equal_the_evaluator() {
    let mut rng = Rng(1);
    let contents = random_contents(300);
    for entry in entries() {
        for contents in &contents {
            let inst = random_inst(&mut rng, entry);
            let start = random_wave(&mut rng);
            let (mut a, mut b) = (start.clone(), start.clone());
            let (in_a, in_b) = (memory(contents), memory(contents));
            let (done_a, done_b) = (step(&inst, &mut a, &in_a, true), step(&inst, &mut b, &in_b, false));
            let what = text(&inst);
            assert_eq!(done_a, done_b, "{what}");
            // A fault ends the run, so partial effects before it are not compared.
            if matches!(done_a, Err(Event::Fault(_))) {
                continue;
            }
            for reg in 0..REGISTERS as usize {
                assert_eq!(a.lane_vec(0, reg), b.lane_vec(0, reg), "{what}: x{reg}");
            }
            assert_eq!(a.sgprs[..SGPRS], b.sgprs[..SGPRS], "{what}");
            assert_eq!((a.pc, a.mask(0)), (b.pc, b.mask(0)), "{what}");
            assert_eq!(in_a.snapshot(), in_b.snapshot(), "{what}");
            assert!(in_a.touched().eq(in_b.touched()), "{what}: which words were stored to");
        }
    }
}

#[test]
fn words_and_text_round_trip() {
    let mut rng = Rng(2);
    for entry in entries() {
        for _ in 0..200 {
            let inst = random_inst(&mut rng, entry);
            let what = text(&inst);
            let words = encode(ARCH, &inst).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(decode(ARCH, &words), Ok(inst), "{what}");
            let parsed = asm::parse(&what, &Options::new(ARCH), &NoSymbols);
            assert_eq!(parsed.map(|p| p.inst), Ok(inst), "{what}");
        }
    }
}

/// Every word decodes to at most one instruction.
#[test]
fn encodings_do_not_overlap() {
    let table = ARCH.table();
    for (at, a) in table.encodings.iter().enumerate() {
        for b in &table.encodings[at + 1..] {
            for (x, y) in a.identifiers.iter().flat_map(|x| b.identifiers.iter().map(move |y| (x, y))) {
                assert_ne!(x & a.mask & b.mask, y & a.mask & b.mask, "{} and {}", a.name, b.name);
            }
        }
    }
}

/// Encodings from the tables of the RV32I manual. The vector form is that of RV32I; the scalar form has bit 6
/// set.
#[test]
fn encodings_match_rv32i() {
    for (text, word) in [
        ("addi x5, x6, -1", 0xfff3_0293),
        ("add x5, x6, x7", 0x0073_02b3),
        ("sub x5, x6, x7", 0x4073_02b3),
        ("srai x5, x6, 3", 0x4033_5293),
        ("lw x5, 8(x6)", 0x0083_2283),
        ("sw x5, -4(x6)", 0xfe53_2e23),
        ("lui x5, 0x12345", 0x1234_52b7),
        ("s.addi s5, s6, -1", 0xfff3_0293 | 0x40),
        ("s.sw s5, -4(s6)", 0xfe53_2e23 | 0x40),
        // Offsets count instructions, where RV32I counts units of two bytes.
        ("jal s1, 1", 0x0020_00ef),
        ("jal s1, -1", 0xffff_f0ef),
        ("jalr s0, 0(s1)", 0x0000_8067),
        ("beq s1, s2, 1", 0x0020_8163 | 0b1000),
        ("bge s1, s2, -1", 0xfe20_dfe3 | 0b1000),
        ("halt", 0x7f),
    ] {
        let inst =
            asm::parse(text, &Options::new(ARCH), &NoSymbols).unwrap_or_else(|e| panic!("{text}: {e}")).inst;
        let found = encode(ARCH, &inst).unwrap()[0];
        assert_eq!(found, word, "{text}: {found:08x}, not {word:08x}");
    }
}

/// Evaluates RV32I's integer computations (unprivileged manual, *Integer Computational Instructions*). `pc`
/// counts instructions.
fn rv32i(op: &str, a: u32, b: u32, pc: u32) -> Option<u32> {
    Some(match op {
        "ADD" | "ADDI" => a.wrapping_add(b),
        "SUB" => a.wrapping_sub(b),
        "SLT" | "SLTI" => ((a as i32) < (b as i32)) as u32,
        "XOR" | "XORI" => a ^ b,
        "OR" | "ORI" => a | b,
        "AND" | "ANDI" => a & b,
        "SLL" | "SLLI" => a << (b % 32),
        "SRL" | "SRLI" => a >> (b % 32),
        "SRA" | "SRAI" => ((a as i32) >> (b % 32)) as u32,
        "LUI" => a << 12,
        "AUIPC" => (a << 12).wrapping_add(pc),
        _ => return None,
    })
}

/// Fields of an instruction word, with the manual's bit numbering.
struct Word(u32);

impl Word {
    fn bits(&self, high: u32, low: u32) -> u32 {
        self.0 << (31 - high) >> (31 - high + low)
    }

    fn rd(&self) -> u32 {
        self.bits(11, 7)
    }

    fn rs1(&self) -> u32 {
        self.bits(19, 15)
    }

    fn rs2(&self) -> u32 {
        self.bits(24, 20)
    }

    fn imm_i(&self) -> u32 {
        (self.0 as i32 >> 20) as u32
    }

    fn imm_s(&self) -> u32 {
        (self.0 as i32 >> 25 << 5) as u32 | self.rd()
    }

    /// Branch offset: in units of two bytes in RV32I, in instructions here.
    fn imm_b(&self) -> u32 {
        (self.0 as i32 >> 31 << 11) as u32 | self.bits(7, 7) << 10 | self.bits(30, 25) << 4 | self.bits(11, 8)
    }

    fn imm_j(&self) -> u32 {
        (self.0 as i32 >> 31 << 19) as u32
            | self.bits(19, 12) << 11
            | self.bits(20, 20) << 10
            | self.bits(30, 21)
    }
}

/// The registers of a thread or of the warp, as used by the model.
trait Registers {
    fn get(&self, reg: u32) -> u32;
    fn put(&mut self, reg: u32, value: u32);
}

struct Thread<'w>(&'w mut Wave, u32);

impl Registers for Thread<'_> {
    fn get(&self, reg: u32) -> u32 {
        self.0.vgpr(self.1, reg)
    }

    fn put(&mut self, reg: u32, value: u32) {
        if reg > 3 {
            self.0.set_vgpr(self.1, reg, value);
        }
    }
}

/// The warp's registers. In the wave's SGPRs, s0 maps to null and s1 to EXEC.
struct Warp<'w>(&'w mut Wave);

impl Registers for Warp<'_> {
    fn get(&self, reg: u32) -> u32 {
        self.0.sgpr([NULL as u32, EXEC_LO as u32].get(reg as usize).copied().unwrap_or(reg))
    }

    fn put(&mut self, reg: u32, value: u32) {
        match reg {
            0 => {}
            1 => self.0.set_exec(value as u64),
            _ => self.0.set_sgpr(reg, value),
        }
    }
}

/// Executes an instruction that is common to threads and warps on one of them. Returns `None` for an address
/// outside memory.
fn model(op: &str, word: &Word, r: &mut dyn Registers, pc: u32, memory: &Memory) -> Option<()> {
    let (a, b) = (r.get(word.rs1()), r.get(word.rs2()));
    let load = |address: u32| Some(u32::from_le_bytes(memory.load(word_address(address as u64)).ok()?));
    match op {
        "LB" | "LH" | "LW" => {
            let value = load(a.wrapping_add(word.imm_i()))?;
            r.put(
                word.rd(),
                match op {
                    "LB" => value as i8 as u32,
                    "LH" => value as i16 as u32,
                    _ => value,
                },
            );
        }
        "SB" | "SH" | "SW" => {
            let address = a.wrapping_add(word.imm_s());
            let mask = [("SB", 0xff), ("SH", 0xffff), ("SW", u32::MAX)].into_iter().find(|m| m.0 == op)?.1;
            let value = load(address)? & !mask | b & mask;
            memory.write(word_address(address as u64), &value.to_le_bytes()).ok()?;
        }
        _ => {
            let (a, b) = match op {
                "LUI" | "AUIPC" => (word.bits(31, 12), 0),
                "SLLI" | "SRLI" | "SRAI" => (a, word.rs2()),
                _ if op.ends_with('I') => (a, word.imm_i()),
                _ => (a, b),
            };
            r.put(word.rd(), rv32i(op, a, b, pc).unwrap_or_else(|| panic!("no model of {op}")));
        }
    }
    Some(())
}

#[test]
fn instructions_match_the_rv32i_model() {
    let mut rng = Rng(3);
    let contents = random_contents(400);
    for entry in entries() {
        let (mut whole, mut faults) = (0, 0);
        for contents in &contents {
            let inst = random_inst(&mut rng, entry);
            let name = inst.instruction(ARCH.table()).name;
            let word = Word(encode(ARCH, &inst).unwrap()[0]);
            let start = random_wave(&mut rng);
            let (mut wave, mut expected) = (start.clone(), start.clone());
            let (memory_is, memory_expected) = (memory(contents), memory(contents));
            let done = step(&inst, &mut wave, &memory_is, true);
            let pc = (start.pc / 4) as u32;
            let mut next = pc.wrapping_add(1);
            let mut warp = Warp(&mut expected);
            let (a, b) = (warp.get(word.rs1()), warp.get(word.rs2()));
            let finished = match name {
                "HALT" => {
                    assert_eq!(done, Err(Event::EndPgm));
                    continue;
                }
                "JAL" => {
                    warp.put(word.rd(), next);
                    next = pc.wrapping_add(word.imm_j());
                    Some(())
                }
                "JALR" => {
                    warp.put(word.rd(), next);
                    next = a.wrapping_add(word.imm_i());
                    Some(())
                }
                "BEQ" | "BNE" | "BLT" | "BGE" => {
                    let taken = match name {
                        "BEQ" => a == b,
                        "BNE" => a != b,
                        "BLT" => (a as i32) < b as i32,
                        _ => a as i32 >= b as i32,
                    };
                    if taken {
                        next = pc.wrapping_add(word.imm_b());
                    }
                    Some(())
                }
                "SX_SLT" | "SX_SLTI" => {
                    let mut mask = warp.get(word.rd());
                    for lane in (0..32).filter(|l| start.exec() >> l & 1 == 1) {
                        let a = start.vgpr(lane, word.rs1());
                        let b = if name == "SX_SLT" { start.vgpr(lane, word.rs2()) } else { word.imm_i() };
                        mask = mask & !(1 << lane) | (((a as i32) < b as i32) as u32) << lane;
                    }
                    warp.put(word.rd(), mask);
                    Some(())
                }
                _ => match name.strip_prefix("S_") {
                    Some(op) => model(op, &word, &mut warp, pc, &memory_expected),
                    None => (0..32).filter(|l| start.exec() >> l & 1 == 1).try_for_each(|lane| {
                        model(name, &word, &mut Thread(&mut expected, lane), pc, &memory_expected)
                    }),
                },
            };
            let what = text(&inst);
            if finished.is_none() {
                assert!(matches!(done, Err(Event::Fault(_))), "{what}: {done:?}");
                faults += 1;
                continue;
            }
            assert_eq!(done, Ok(()), "{what}");
            whole += 1;
            for reg in 0..REGISTERS as usize {
                assert_eq!(wave.lane_vec(0, reg), expected.lane_vec(0, reg), "{what}: x{reg}");
            }
            assert_eq!(wave.sgprs[..SGPRS], expected.sgprs[..SGPRS], "{what}");
            // The program counter has 32 bits; the PC in bytes has 34.
            assert_eq!((wave.pc / 4) as u32, next, "{what}");
            assert_eq!(memory_is.snapshot(), memory_expected.snapshot(), "{what}");
        }
        let name = ARCH.table().instructions[ARCH.table().entries[entry as usize].inst as usize].name;
        assert!(whole > 20 || name == "HALT", "{name}: {whole} whole runs, {faults} faults");
    }
}

/// Any program or data file is either accepted, or each error points into the file.
#[test]
fn any_text_is_accepted_or_has_located_errors() {
    const PIECES: [&str; 40] = [
        "addi",
        "s.addi",
        "sx.slt",
        "lw",
        "sw",
        "jalr",
        "jal",
        "beq",
        "lui",
        "halt",
        "x0",
        "x5",
        "x31",
        "x32",
        "s1",
        "s5",
        "label",
        "label:",
        ":",
        ",",
        ",",
        "(",
        ")",
        "0",
        "-1",
        "2047",
        "2048",
        "0x",
        "0b12",
        "99999999999999999999",
        "-",
        "#",
        ".blocks",
        ".warps",
        "\t",
        "é",
        "\u{2028}",
        "$",
        "5(x1)",
        ".",
    ];
    let machine = ARCH.machine().expect("a machine of its own");
    let mut rng = Rng(4);
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..rng.below(24) {
            text.push_str(rng.pick(&PIECES));
            text.push_str(rng.pick(&[" ", " ", "", "\n"]));
        }
        let (_, errors) = wavesim::assembler::generic::read(&text, ARCH, machine);
        let data = wavesim::loader::generic::data(&text).err().unwrap_or_default();
        for e in errors.iter().chain(&data) {
            let line = text.lines().nth(e.line - 1).unwrap_or("");
            assert!(
                (1..=line.chars().count() + 1).contains(&e.column),
                "{text:?}: {}:{} {}",
                e.line,
                e.column,
                e.error
            );
        }
    }
}
