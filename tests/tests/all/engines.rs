//! Compares the handlers with the reference evaluator: every instruction in every encoding, with random
//! operands, modifiers, registers, EXEC and MODE, in wave32 and wave64, on a small memory. Registers, masks,
//! memory, PC and faults must be equal.
//!
//! `WAVESIM_CASES` sets the number of cases per entry, and `WAVESIM_SEED` the seed. `WAVESIM_OP` selects
//! instructions by a substring of the name.

use isa_spec::tables::EntryId;
use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::conform::run::semantics;
use wavesim::exec::machine_ops::Event;
use wavesim::exec::overrides::Overrides;
use wavesim::exec::program::Program;
use wavesim::exec::reference;
use wavesim::inst::Inst;
use wavesim::operand::unlisted_code;
use wavesim_tests::machine::{Engine, Machine, compare};
use wavesim_tests::random::{self, GLOBAL, GLOBAL_BASE, LDS, Rng, SCRATCH};
use wavesim_tests::with_context;

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Returns the difference between the engines after `inst`, or `None` if there is none or the instruction has
/// no semantics.
fn differs(rng: &mut Rng, arch: Arch, inst: &Inst) -> Option<String> {
    let size = rng.pick(arch.wave_sizes());
    let mut wave = random::wave(rng, size);
    if arch.is_cdna() {
        random::accumulators(rng, &mut wave);
    }
    random::set_addresses(rng, arch, inst, &mut wave);
    let mut bytes = |n: u64| random::bytes(rng, n);
    let scratch = SCRATCH as u64 * size as u64;
    let start = Machine { wave, global: bytes(GLOBAL), lds: bytes(LDS), scratch: bytes(scratch) };
    let mut compiled = start.clone();
    let mut reference = start.clone();
    let engine = rng.pick(&[Engine::Handlers, Engine::Handlers, Engine::Avx2, Engine::Portable]);
    let a = compiled.step(arch, inst, engine);
    let b = reference.step(arch, inst, Engine::Evaluator);
    let mode = start.wave.mode;
    let at = |what: String| {
        Some(format!("{engine:?} wave{size} mode {mode:x} exec {:x}: {what}", start.wave.exec()))
    };
    if a != b {
        return at(format!("handler {a:?}, evaluator {b:?}"));
    }
    // A fault ends the run, so partial effects before it are not compared.
    if matches!(a, None | Some(Err(Event::Fault(_)))) {
        return None;
    }
    at(compare(&start, &compiled, &reference)?)
}

fn handlers_equal_evaluator(arch: Arch) {
    let (cases, seed) = (env("WAVESIM_CASES", 6), env("WAVESIM_SEED", 1));
    let only = std::env::var("WAVESIM_OP").unwrap_or_default().to_uppercase();
    let table = arch.table();
    let mut failures = Vec::new();
    for id in 0..table.entries.len() as EntryId {
        let entry = &table.entries[id as usize];
        let name = table.instructions[entry.inst as usize].name;
        if !name.contains(&only) {
            continue;
        }
        for case in 0..cases {
            let mut rng = Rng(seed << 40 ^ (id as u64) << 20 ^ case);
            let Some(inst) = random::any_instruction(&mut rng, arch, id) else { break };
            if let Some(what) = differs(&mut rng, arch, &inst) {
                let encoding = table.encodings[entry.enc as usize].name;
                let fields: Vec<String> = inst
                    .encoding(table)
                    .fields
                    .iter()
                    .zip(inst.fields)
                    .filter(|(f, value)| f.fixed.is_none() && *value != 0)
                    .map(|(f, value)| format!("{}={value:x}", f.name))
                    .collect();
                failures.push(format!("{name} {encoding} case {case}: {what}\n    {}", fields.join(" ")));
                break;
            }
        }
    }
    let shown = env("WAVESIM_SHOW", 40) as usize;
    let first = failures[..failures.len().min(shown)].join("\n");
    assert!(
        failures.is_empty(),
        "{}: {} of {} entries:\n{first}",
        arch.name(),
        failures.len(),
        table.entries.len()
    );
}

#[test]
fn rdna3() {
    handlers_equal_evaluator(Arch::Rdna3);
}

#[test]
fn rdna35() {
    handlers_equal_evaluator(Arch::Rdna35);
}

#[test]
fn rdna4() {
    handlers_equal_evaluator(Arch::Rdna4);
}

#[test]
fn cdna3() {
    handlers_equal_evaluator(Arch::Cdna3);
}

#[test]
fn cdna4() {
    handlers_equal_evaluator(Arch::Cdna4);
}

#[test]
fn cdna5() {
    handlers_equal_evaluator(Arch::Cdna5);
}

/// The fifth source, a scale, may be any source of the others.
#[test]
fn a_fifth_source_has_every_code() {
    let table = Arch::Cdna4.table();
    let entries = 0..table.entries.len() as EntryId;
    let scaled = |id: &EntryId| {
        let entry = &table.entries[*id as usize];
        table.instructions[entry.inst as usize].name == "V_MFMA_SCALE_F32_16X16X128_F8F6F4"
    };
    let id = entries.into_iter().find(scaled).expect("a product with scales");
    let mut rng = Rng(1);
    let mut tested = 0;
    // Scalars and constants, and a sixteenth of the VGPRs.
    for code in (0..256).chain((256..512).step_by(16)) {
        let Some(mut inst) = random::any_instruction(&mut rng, Arch::Cdna4, id) else { continue };
        let at =
            inst.encoding(table).fields.iter().position(|field| field.name == "SCALE_SRC1").expect("a field");
        inst.fields[at] = code;
        if unlisted_code(Arch::Cdna4, &inst).is_none() {
            tested += 1;
            assert_eq!(differs(&mut rng, Arch::Cdna4, &inst), None, "SCALE_SRC1={code:x}");
        }
    }
    assert!(tested > 160, "{tested} codes");
}

/// Compares programs of random vector, scalar and LDS instructions: state that the interpreter caches between
/// instructions must not affect results. Every prefix of a program is run from the start and compared.
fn programs_equal_evaluator(arch: Arch) {
    let (programs, seed) = (env("WAVESIM_CASES", 6) * 60, env("WAVESIM_SEED", 1));
    let table = arch.table();
    let none = BTreeMap::new();
    let entries: Vec<EntryId> = (0..table.entries.len() as EntryId)
        .filter(|&id| {
            let inst = &table.instructions[table.entries[id as usize].inst as usize];
            let straight =
                !inst.flags().branch && !inst.flags().indirect_branch && !inst.name.contains("PC_B64");
            straight
                && matches!(inst.group(), "VALU" | "SALU" | "LDS")
                && !["S_CALL_B64", "S_GETREG_B32", "S_GET_SHADER_CYCLES_U64"].contains(&inst.name)
        })
        .collect();
    let end = wavesim_tests::inst(arch, "S_ENDPGM", "ENC_SOPP", &[]).unwrap();
    for case in 0..programs {
        let mut rng = Rng(seed << 40 ^ case << 8 ^ arch as u64);
        let mut insts = Vec::new();
        while insts.len() < 10 {
            let id = rng.pick(&entries);
            let Some(inst) = random::instruction(&mut rng, arch, id) else { continue };
            if semantics(arch, &inst, &none).is_some() {
                insts.push(inst);
            }
        }
        let size = rng.pick(&[32, 32, 64]);
        let size = if arch.wave_sizes().contains(&size) { size } else { arch.wave_sizes()[0] };
        let mut wave = random::wave(&mut rng, size);
        if rng.chance(2) {
            // The mode that flushes denormals.
            wave.mode = 0x3c0;
            wave.set_exec(u64::MAX);
        }
        let start = Machine {
            wave,
            global: vec![0; GLOBAL as usize],
            lds: (0..LDS).map(|n| n as u8).collect(),
            scratch: vec![0; SCRATCH as usize * size as usize],
        };
        let mut reference = start.clone();
        for count in 1..=insts.len() {
            let last = &insts[count - 1];
            if !matches!(reference.step(arch, last, Engine::Evaluator), Some(Ok(()))) {
                break;
            }
            let list = insts[..count].iter().chain([&end]).map(|inst| (*inst, 0)).collect();
            let mut compiled = start.clone();
            let result = compiled.run(&Program::new(arch, list).expect("a small program"), 1000);
            let names: Vec<&str> = insts[..count].iter().map(|inst| inst.instruction(table).name).collect();
            assert_eq!(result, Err(Event::EndPgm), "{} case {case}: {names:?}", arch.name());
            compiled.wave.pc = reference.wave.pc;
            if let Some(what) = compare(&start, &compiled, &reference) {
                let mode = start.wave.mode;
                panic!("{} case {case} wave{size} mode {mode:x}: {names:?}: {what}", arch.name());
            }
        }
    }
}

#[test]
fn programs_rdna3() {
    programs_equal_evaluator(Arch::Rdna3);
}

#[test]
fn programs_rdna4() {
    programs_equal_evaluator(Arch::Rdna4);
}

#[test]
fn programs_cdna4() {
    programs_equal_evaluator(Arch::Cdna4);
}

#[test]
fn programs_cdna5() {
    programs_equal_evaluator(Arch::Cdna5);
}

/// Semantics in the manuals' statement order: each reads a destination that it has written, or a source after
/// a write.
const SEQUENTIAL: &str = "
instruction S_AND_SAVEEXEC_B32 {
  saveexec = EXEC.u32;
  D0.u32 = saveexec.u32;
  EXEC.u32 = (S0.u32 & saveexec.u32);
  SCC = EXEC.u32 != 0U;
}

instruction S_OR_SAVEEXEC_B64 {
  saveexec = EXEC.u64;
  D0.u64 = saveexec.u64;
  EXEC.u64 = (S0.u64 | saveexec.u64);
  SCC = EXEC.u64 != 0ULL;
}

instruction S_ABSDIFF_I32 {
  D0.i32 = S0.i32 - S1.i32;
  if D0.i32 < 0 then
    D0.i32 = -D0.i32;
  endif;
  SCC = D0.i32 != 0;
}

instruction S_MAX_I32 {
  SCC = S0.i32 >= S1.i32;
  D0.i32 = SCC ? S0.i32 : S1.i32;
}

instruction S_ADD_U32, S_ADD_CO_U32 {
  D0.u32 = S0.u32 + S1.u32;
  SCC = 64'U(S0.u32) + 64'U(S1.u32) >= 0x100000000ULL ? 1'1U : 1'0U;
}

instruction S_CMOV_B64 {
  if SCC then
    SGPR[SDST.u32].b64 = S0.b64;
  endif;
}

instruction V_ADD_CO_CI_U32 {
  low = 64'I(S0.u32) + 64'I(S1.u32) + 64'I(VCC.u64[laneId]);
  VCC.u64[laneId] = low >= 0x100000000LL;
  low = low & 0xffffffffLL;
  D0.u32 = clamp_u32(VCC.u64[laneId] ? low + 0x100000000LL : low);
}

instruction S_AND_B32 {
  D0.u32 = S0.u32 & S1.u32;
  SCC = D0.u32 != 0U;
}

instruction S_AND_B64 {
  D0.u64 = S0.u64 & S1.u64;
  SCC = D0.u64 != 0ULL;
}

instruction S_OR_B64 {
  D0.u64 = S0.u64 | S1.u64;
  D0.u32 = S0.u32 | S1.u32;
  SCC = D0.u64 != 0ULL;
}

instruction S_XOR_B32 {
  { SCC, D0.u32 } = { 1'1U, S0.u32 ^ S1.u32 };
  SCC = D0.u32 != 0U;
}

instruction V_CVT_PK_U16_U32 {
  D0[15 : 0].u16 = u32_to_u16(S0.u32);
  D0[31 : 16].u16 = u32_to_u16(S1.u32);
}

instruction V_CVT_PK_I16_I32 {
  D0[15 : 0].i16 = i32_to_i16(S0.i32);
  D0[31 : 16].i16 = i32_to_i16(S1.i32);
}

instruction DS_LOAD_B32 {
  RETURN_DATA.u32 = MEM[ADDR + OFFSET.u32].u32;
}

instruction DS_LOAD_2ADDR_B32 {
  first = CalcDsAddr(vgpr_a.b32, 0x0);
  RETURN_DATA[31 : 0] = MEM[first + OFFSET0.u32 * 4U].b32;
  RETURN_DATA[63 : 32] = MEM[first + OFFSET1.u32 * 4U].b32;
}

instruction BUFFER_STORE_D16_FORMAT_XY {
  MEM[TADDR.X] = ConvertToFormat(32'B(DATA[15 : 0].b16));
  MEM[TADDR.Y] = ConvertToFormat(32'B(DATA[31 : 16].b16));
}

instruction BUFFER_LOAD_U8 {
  VDATA.u32 = 32'U(MEM[ADDR].u8);
}

instruction BUFFER_LOAD_B64 {
  addr = CalcBufferAddr(vgpr_a.b64, sgpr_o.b64);
  VDATA[31 : 0] = MEM[addr].b32;
  VDATA[63 : 32] = MEM[addr + 4U].b32;
}

instruction V_INTERP_P2_F32 {
  D0.f32 = fma(VGPR[laneId / 4U * 4U + 2U][SRC0.u32].f32, S1.f32, S2.f32);
}

instruction V_NOT_B32 {
  D0.u32 = ~VGPR[laneId][SRC0.u32].u32;
}

instruction BUFFER_STORE_B16 {
  MEM[(ADDR) + 0U].b16 = VDATA[15 : 0].b16;
}
";

/// Compares the evaluator on the semantics in [`SEQUENTIAL`], some of them in the manuals' notation, with the
/// handlers.
#[test]
fn semantics_that_read_their_results() {
    let (own, warnings) = Overrides::parse("sequential.pcode".to_string(), SEQUENTIAL.to_string()).unwrap();
    assert_eq!(warnings, None);
    let mut rng = Rng(env("WAVESIM_SEED", 7));
    let names = [
        "S_AND_SAVEEXEC_B32",
        "S_OR_SAVEEXEC_B64",
        "S_ABSDIFF_I32",
        "S_MAX_I32",
        "S_ADD_U32",
        "S_CMOV_B64",
        "S_AND_B32",
        "S_AND_B64",
        "S_OR_B64",
        "S_XOR_B32",
        "V_ADD_CO_CI_U32",
        "V_CVT_PK_U16_U32",
        "V_CVT_PK_I16_I32",
        "DS_LOAD_B32",
        "DS_LOAD_2ADDR_B32",
        "BUFFER_STORE_D16_FORMAT_XY",
        "V_INTERP_P2_F32",
        "V_NOT_B32",
        "BUFFER_LOAD_U8",
        "BUFFER_LOAD_B64",
        "BUFFER_STORE_B16",
    ];
    let arch = Arch::Rdna3;
    for name in names {
        let sem = own.get(arch, name).unwrap_or_else(|| panic!("{name}"));
        let of_arch = arch.table().instruction(name).unwrap().entries;
        let mut ran = 0;
        for case in 0..400 {
            let id = of_arch.0 + case % of_arch.1;
            let Some(inst) = random::instruction(&mut rng, arch, id) else { continue };
            // A register pair addressed by number is invalid if one of its words is null (124).
            if name == "S_CMOV_B64" && inst.fields.iter().any(|field| matches!(field, 123 | 124)) {
                continue;
            }
            // 64-bit lane masks require wave64.
            let size = if name.ends_with("B64") { 64 } else { 32 };
            let mut wave = random::wave(&mut rng, size);
            random::set_addresses(&mut rng, arch, &inst, &mut wave);
            let mut bytes = |n: u64| random::bytes(&mut rng, n);
            let start = Machine { wave, global: bytes(GLOBAL), lds: bytes(LDS), scratch: Vec::new() };
            let (mut compiled, mut reference) = (start.clone(), start.clone());
            let a = compiled.step(arch, &inst, Engine::Handlers);
            let Machine { wave, global, lds, .. } = &mut reference;
            let b = with_context(Some((GLOBAL_BASE, global)), lds, (&mut [], 0), |cx| {
                reference::step(arch, &inst, sem, None, wave, cx)
            });
            if let (Some(Err(Event::Fault(_))), Err(Event::Fault(_))) = (&a, &b) {
                continue;
            }
            assert_eq!(a, Some(b), "{name} case {case}");
            assert_eq!(compare(&start, &compiled, &reference), None, "{name} case {case}: {inst:?}");
            ran += 1;
        }
        assert!(ran > 100, "{name}: {ran} cases");
    }
}
