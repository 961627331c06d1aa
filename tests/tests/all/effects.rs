//! Compares the effects computed by `exec::effects` with the observed behaviour of the reference executor, on
//! random instructions of every entry and architecture, with random registers, in wave32 and wave64.
//!
//! - Everything that an instruction accesses is in its effects, including memory.
//! - Effects marked *always* occur in every case. All others occur in some case, except for [`NEVER_SEEN`].
//! - Registers and bits outside the effects do not influence an instruction and are not changed by it.
//!
//! `WAVESIM_CASES` sets the number of cases per entry. `WAVESIM_OP` selects instructions by a substring of
//! the name.

use isa_spec::facts::Facts;
use isa_spec::pcode::ir::Semantics;
use isa_spec::tables::{EntryId, Role};
use std::collections::{BTreeMap, BTreeSet};
use wavesim::arch::Arch;
use wavesim::conform::run::semantics;
use wavesim::exec::effects::{self, Effects, File, Lanes, Relative, Use};
use wavesim::exec::machine_ops::Event;
use wavesim::exec::overrides::Overrides;
use wavesim::exec::reference::{self, AccessSet, Observe};
use wavesim::inst::Inst;
use wavesim::operand;
use wavesim::state::{VGPRS, Wave};
use wavesim_tests::machine::Machine;
use wavesim_tests::random::{self, GLOBAL, GLOBAL_BASE, LDS, Rng, SCRATCH};
use wavesim_tests::{wavesim, with_context};

/// Instructions with effects that random cases do not reach, and the reasons.
const NEVER_SEEN: [(&str, &str); 7] = [
    ("LB", MISSES),
    ("LH", MISSES),
    ("LW", MISSES),
    ("S_LB", MISSES),
    ("S_LH", MISSES),
    ("S_LW", MISSES),
    ("IMAGE_BVH_DUAL_INTERSECT_RAY", "random cases meet no instance that a ray enters; those of `rays` do"),
];
const MISSES: &str = "random addresses miss the memory of words, and the load faults before it writes";

/// Operand code of M0.
const M0: u32 = 125;

fn cases() -> u64 {
    std::env::var("WAVESIM_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(4)
}

struct Case {
    arch: Arch,
    inst: Inst,
    start: Machine,
    effects: Effects,
    /// Semantics that replace the project's.
    own: BTreeMap<String, Semantics>,
}

/// Calls `f` with random cases of every entry that has semantics. Runs [`cases`] cases per entry, and further
/// ones while `more` returns a reason. Reports the first failure of each entry.
fn each_entry<T: Default>(
    arch: Arch,
    mut f: impl FnMut(&mut Rng, &Case, &mut T) -> Result<(), String>,
    more: impl Fn(&T) -> Option<String>,
) {
    const MAX_CASES: u64 = 600;
    let only = std::env::var("WAVESIM_OP").unwrap_or_default().to_uppercase();
    let table = arch.table();
    let mut failures = Vec::new();
    for id in 0..table.entries.len() as EntryId {
        let entry = &table.entries[id as usize];
        let name = table.instructions[entry.inst as usize].name;
        if !name.contains(&only) {
            continue;
        }
        let mut rng = Rng(0xeffec7 ^ (id as u64) << 20);
        let (mut state, mut count) = (T::default(), 0);
        let result = loop {
            let missing = more(&state).filter(|_| !NEVER_SEEN.iter().any(|(excused, _)| *excused == name));
            match missing {
                Some(what) if count >= MAX_CASES => break Err(what),
                None if count >= cases() => break Ok(()),
                _ => count += 1,
            }
            let Some(inst) = random::instruction(&mut rng, arch, id) else { break Ok(()) };
            if semantics(arch, &inst, &BTreeMap::new()).is_none() {
                if inst.entry_y == EntryId::MAX {
                    break Ok(());
                }
                continue;
            }
            if let Err(what) = {
                let facts = |entry, size| wavesim::isa::facts(arch, entry, size);
                let case = Case::new(&mut rng, arch, inst, BTreeMap::new(), facts);
                f(&mut rng, &case, &mut state)
            } {
                break Err(what);
            }
        };
        if let Err(what) = result {
            failures.push(format!("{name} {}: {what}", table.encodings[entry.enc as usize].name));
        }
    }
    let shown = failures[..failures.len().min(60)].join("\n");
    assert!(failures.is_empty(), "{}: {} entries:\n{shown}", arch.name(), failures.len());
}

impl Case {
    fn new<'f>(
        rng: &mut Rng,
        arch: Arch,
        inst: Inst,
        own: BTreeMap<String, Semantics>,
        facts: impl Fn(EntryId, u32) -> Option<&'f Facts>,
    ) -> Case {
        let size = rng.pick(&[32, 64]);
        let mut wave = random::wave(rng, size);
        random::set_addresses(rng, arch, &inst, &mut wave);
        let mut bytes = |n: u64| random::bytes(rng, n);
        let start = Machine {
            wave,
            global: bytes(GLOBAL),
            lds: bytes(LDS),
            scratch: bytes(SCRATCH as u64 * size as u64),
        };
        let effects = effects::effects(arch, &inst, size, |entry| facts(entry, size));
        Case { arch, inst, start, effects, own }
    }

    fn run(&self, machine: &mut Machine) -> (Result<(), Event>, AccessSet) {
        let (sem, sem_y) = semantics(self.arch, &self.inst, &self.own).expect("it has semantics");
        let global = Some((GLOBAL_BASE, &mut machine.global[..]));
        with_context(global, &mut machine.lds, (&mut machine.scratch, SCRATCH), |cx| {
            let mut touched = AccessSet::default();
            let observe = Observe::AccessSet(&mut touched);
            let wave = &mut machine.wave;
            let result = reference::step_observed(self.arch, &self.inst, sem, sem_y, wave, cx, observe);
            (result, touched)
        })
    }

    fn wave(&self) -> &Wave {
        &self.start.wave
    }

    fn text(&self) -> String {
        let encoding = self.inst.encoding(self.arch.table());
        let fields =
            encoding.fields.iter().zip(self.inst.fields).filter(|(f, v)| f.fixed.is_none() && *v != 0);
        let fields: Vec<String> = fields.map(|(f, value)| format!("{}={value:x}", f.name)).collect();
        format!("wave{} exec {:x} {}", self.wave().size(), self.wave().exec(), fields.join(" "))
    }
}

/// Returns the lanes that a use may access.
fn possible_lanes(used: &Use, wave: &Wave) -> u64 {
    match used.lanes {
        Lanes::Data => wave.full_mask(),
        _ => used.lane_mask(wave),
    }
}

fn covers(list: &[Use], wave: &Wave, write: bool, (file, register, lane): (File, u16, u8)) -> bool {
    list.iter().any(|used| {
        used.file == file
            && used.registers(wave, write).contains(&register)
            && (file != File::Vgpr || possible_lanes(used, wave).wrapping_shr(lane.into()) & 1 == 1)
    })
}

/// Identity of a use, independent of field values: write, second half, role, whether it is of a VGPR, whether
/// it has fixed lanes or an index, and the number of registers.
type Key = (bool, bool, Role, bool, bool, u16);

fn key(used: &Use, write: bool) -> Key {
    let special = used.lanes == Lanes::All || used.relative.is_some();
    let vector = used.file == File::Vgpr;
    (write, used.second, used.role, vector, vector && special, if vector { used.count } else { 1 })
}

/// The uses that were listed, and those that occurred in some case.
#[derive(Default)]
struct Coverage {
    listed: BTreeSet<Key>,
    seen: BTreeSet<Key>,
}

fn touched_is_listed(arch: Arch) {
    let missing = |coverage: &Coverage| {
        coverage.listed.difference(&coverage.seen).next().map(|never| format!("never touched: {never:?}"))
    };
    each_entry(arch, |_, case, coverage: &mut Coverage| check_case(arch, case, coverage), missing);
}

/// The VGPRs of an address that the semantics read are those that the fields of the instruction give it.
#[test]
fn addresses_have_the_size_that_fields_give() {
    for arch in [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4, Arch::Cdna3, Arch::Cdna4] {
        each_entry(arch, |_, case, _: &mut ()| check_address(arch, case), |_| None);
    }
}

fn check_address(arch: Arch, case: &Case) -> Result<(), String> {
    let Some(expected) = operand::address_registers(arch, &case.inst) else { return Ok(()) };
    let address = |used: &&Use| used.role == Role::VAddr && used.file == File::Vgpr;
    let read = case.effects.reads.iter().filter(address);
    let read: BTreeSet<u16> = read.flat_map(|used| used.first..used.first + used.count).collect();
    match read.len() == expected as usize {
        true => Ok(()),
        false => Err(format!("reads {read:?}, not {expected} registers; {}", case.text())),
    }
}

fn check_case(arch: Arch, case: &Case, coverage: &mut Coverage) -> Result<(), String> {
    let (wave, mut after) = (case.wave(), case.start.clone());
    let (result, touched) = case.run(&mut after);
    for (write, registers, uses) in
        [(false, &touched.reads, &case.effects.reads), (true, &touched.writes, &case.effects.writes)]
    {
        if let Some(missed) = registers.iter().find(|r| !covers(uses, wave, write, **r)) {
            let verb = if write { "writes" } else { "reads" };
            return Err(format!("{verb} {missed:?}, {}\n  listed: {uses:?}", case.text()));
        }
        for used in uses {
            coverage.listed.insert(key(used, write));
            let of = |r: &&(File, u16, u8)| covers(std::slice::from_ref(used), wave, write, **r);
            let found = registers.iter().filter(of).count();
            if found != 0 {
                coverage.seen.insert(key(used, write));
            }
            // DPP and faults disable lanes.
            let dpp = wavesim::operand::binding(arch, case.inst.entry).has_dpp();
            if !used.always || dpp || result.is_err() || used.lanes == Lanes::Data {
                continue;
            }
            let lanes = if used.file == File::Vgpr { used.lane_mask(wave).count_ones() } else { 1 };
            // Excludes null and codes outside the scalar register file.
            let exists = |r: &u16| used.file != File::Sgpr || *r < 128 && *r != 124;
            let expected = used.registers(wave, write).filter(exists).count() * lanes as usize;
            // `Lanes::All` is an over-approximation: accesses to some of the lanes suffice.
            let all = used.lanes == Lanes::All && used.file == File::Vgpr;
            let enough = if all { found != 0 } else { found >= expected };
            let idle = wave.exec() == 0 && found == 0;
            if !enough && !idle {
                return Err(format!(
                    "{found} of {expected} touched of {used:?} (write: {write}), {}",
                    case.text()
                ));
            }
        }
    }
    let listed = |(space, bytes, write): &(_, u32, bool)| {
        case.effects.memory.iter().any(|m| (m.space, m.bytes, m.write) == (*space, *bytes, *write))
    };
    match touched.memory.iter().find(|m| !listed(m)) {
        Some(missed) => Err(format!("accesses {missed:?}, {}: {:?}", case.text(), case.effects.memory)),
        None => Ok(()),
    }
}

/// Bit masks of used register bits, by VGPR number and lane and by SGPR code, and whether SCC is used.
struct Bits {
    vgprs: Vec<u32>,
    sgprs: [u32; 128],
    scc: bool,
}

impl Bits {
    fn of(list: &[Use], wave: &Wave, write: bool) -> Bits {
        let mut out = Bits { vgprs: vec![0; VGPRS * 64], sgprs: [0; 128], scc: false };
        for used in list {
            let bits = if matches!(used.relative, Some(Relative::Any)) { u32::MAX } else { used.bits };
            for register in used.registers(wave, write) {
                match used.file {
                    File::Scc => out.scc = true,
                    File::Sgpr if register < 128 => out.sgprs[register as usize] |= bits,
                    File::Sgpr => {}
                    File::Vgpr if (register as usize) < VGPRS => {
                        let lanes = possible_lanes(used, wave);
                        for lane in (0..64).filter(|lane| lanes >> lane & 1 == 1) {
                            out.vgprs[register as usize * 64 + lane] |= bits;
                        }
                    }
                    File::Vgpr => {}
                }
            }
        }
        out
    }
}

/// Returns all pairs of a VGPR and a half of the wave.
fn vgpr_halves(wave: &Wave) -> impl Iterator<Item = (usize, usize)> {
    let halves = wave.size() as usize / 32;
    (0..VGPRS).flat_map(move |reg| (0..halves).map(move |half| (reg, half)))
}

fn unlisted_has_no_influence(arch: Arch) {
    const EXEC: [usize; 2] = [126, 127];
    let run = |rng: &mut Rng, case: &Case, _: &mut ()| {
        let wave = case.wave();
        let (reads, writes) =
            (Bits::of(&case.effects.reads, wave, false), Bits::of(&case.effects.writes, wave, true));
        let mut other = case.start.clone();
        for (reg, half) in vgpr_halves(wave) {
            let mut row = *wave.lane_vec(half, reg);
            for (value, keep) in row.0.iter_mut().zip(&reads.vgprs[reg * 64 + half * 32..]) {
                if *keep != u32::MAX {
                    *value = *value & keep | rng.bits() as u32 & !keep;
                }
            }
            other.wave.set_lane_vec(half, reg, row);
        }
        for code in (0..128).filter(|c| !EXEC.contains(c) && *c != 124) {
            let keep = reads.sgprs[code];
            let value = wave.sgpr(code as u32) & keep | rng.bits() as u32 & !keep;
            other.wave.set_sgpr(code as u32, value);
        }
        if !reads.scc {
            other.wave.scc ^= 1;
        }
        let noise = other.wave.clone();
        let mut plain = case.start.clone();
        let (a, _) = case.run(&mut plain);
        let (b, _) = case.run(&mut other);
        if a != b {
            return Err(format!("{a:?} and {b:?}, {}", case.text()));
        }
        if a.is_err() {
            return Ok(());
        }
        let differs = |what: String| Err(format!("{what}, {}\n  {:?}", case.text(), case.effects.reads));
        // Written bits must be equal, unless neither run changed the register. Other bits must be unchanged.
        let violates = |bits: u32, before: (u32, u32), after: (u32, u32)| {
            let written = (after.0 ^ after.1) & bits;
            let kept = before.0 == after.0 && before.1 == after.1;
            let outside = ((before.0 ^ after.0) | (before.1 ^ after.1)) & !bits;
            written != 0 && !kept || outside != 0
        };
        for (reg, half) in vgpr_halves(wave) {
            let kept = |before: &Wave, after: &Wave| before.lane_vec(half, reg) == after.lane_vec(half, reg);
            if kept(wave, &plain.wave) && kept(&noise, &other.wave) {
                continue;
            }
            for lane in 32 * half..32 * half + 32 {
                let of = |w: &Wave| w.vgpr(lane as u32, reg as u32);
                let bits = writes.vgprs[reg * 64 + lane];
                let (before, after) = ((of(wave), of(&noise)), (of(&plain.wave), of(&other.wave)));
                if violates(bits, before, after) {
                    return differs(format!("v{reg} lane {lane} bits {bits:x}: {before:x?} to {after:x?}"));
                }
            }
        }
        for code in 0..128 {
            let of = |w: &Wave| w.sgpr(code as u32);
            let (before, after) = ((of(wave), of(&noise)), (of(&plain.wave), of(&other.wave)));
            if violates(writes.sgprs[code], before, after) {
                return differs(format!("s{code}: {before:x?} to {after:x?}"));
            }
        }
        let bits = if writes.scc { 1 } else { 0 };
        if violates(bits, (wave.scc, noise.scc), (plain.wave.scc, other.wave.scc)) {
            return differs("SCC".to_string());
        }
        if (plain.wave.pc, plain.wave.mode) != (other.wave.pc, other.wave.mode) {
            return differs("PC or MODE".to_string());
        }
        if (&plain.global, &plain.lds, &plain.scratch) != (&other.global, &other.lds, &other.scratch) {
            return differs("memory".to_string());
        }
        Ok(())
    };
    each_entry(arch, run, |()| None);
}

#[test]
fn rdna3_touches_what_is_listed() {
    touched_is_listed(Arch::Rdna3);
}

#[test]
fn rdna35_touches_what_is_listed() {
    touched_is_listed(Arch::Rdna35);
}

#[test]
fn rdna4_touches_what_is_listed() {
    touched_is_listed(Arch::Rdna4);
}

#[test]
fn riscv_gpu_touches_what_is_listed() {
    touched_is_listed(Arch::RiscvGpu);
}

#[test]
fn rdna3_depends_on_nothing_else() {
    unlisted_has_no_influence(Arch::Rdna3);
}

#[test]
fn rdna4_depends_on_nothing_else() {
    unlisted_has_no_influence(Arch::Rdna4);
}

/// Semantics unlike any in the project: conditional register numbers, changes of M0 and EXEC, early exits
/// from loops.
const GIVEN: &[(&str, &str)] = &[
    ("S_MOV_B32", "SGPR[SCC ? 5U : SDST] = S0.b32;"),
    ("S_MOV_B32", "SGPR[SCC ? 5U : (M0 & 31U) + 2U] = S0.b32;"),
    ("S_MOV_B32", "D0.b32 = SGPR[SCC ? 5U : SRC0 + (M0 & 7U)];"),
    ("S_MOV_B32", "r = SDST & 63U; SGPR[r == 3U ? 70U : r + 1U] = S0.b32;"),
    ("S_MOV_B32", "if SCC then M0 = 3U; endif SGPR[M0[3 : 0].u32] = S0.b32;"),
    ("S_MOV_B32", "D0.b32 = S0.b32; SGPR[M0 > 90U ? 0U : M0] = 1U;"),
    ("S_MOV_B32", "SCC = EXECZ; EXEC_LO = S0.u32; D0.b32 = EXEC_HI;"),
    ("S_MOV_B32", "while SCC do if S0.u32[0] then return; endif SCC = 1'0U; endwhile D0.u32 = M0;"),
    ("S_MOV_B32", "for i in 0 : 32'I(SCC) do if S0.u32[i] then return; endif endfor D0.u32 = M0;"),
    ("S_MOV_B32", "if 32'I(SRC0.u8) == 5 then D0.u32 = VCC_LO; endif"),
    ("S_MOVK_I32", "if 32'I(SIMM16.i16) < 0 then D0.u32 = M0; else SCC = 1'1U; endif"),
    ("S_MOVK_I32", "if 32'I(SIMM16.i8) == -1 then D0.u32 = M0; else SCC = 1'1U; endif"),
    ("S_MOVK_I32", "if 32'I(SIMM16.i8) == 0xffU then D0.u32 = M0; else SCC = 1'1U; endif"),
    ("V_MOV_B32", "lane = SCC ? 0U : 32'U(count_trailing_zeros(EXEC.u64)) & 31U; VGPR[lane][VDST] = S0.b32;"),
    ("V_MOV_B32", "lane = SCC ? 0U : 32'U(count_trailing_zeros(EXEC.u64)); VGPR[lane][VDST] = SGPR[7];"),
    (
        "V_MOV_B32",
        "EXEC_LO = 0xf0U; lane = 32'U(count_trailing_zeros(EXEC.u64)); VGPR[lane][VDST] = SGPR[7];",
    ),
    ("V_MOV_B32", "for i in 0 : 3 do VGPR[i][SCC ? VDST : SRC0] = SGPR[7]; endfor"),
    ("V_MOV_B32", "for i in 0 : 31 do if EXEC.u64[i] then VGPR[i][SCC ? 9U : VDST + M0] = 1U; endif endfor"),
    ("V_MOV_B32", "lane = 32'U(count_trailing_zeros(EXEC.u32)) & 31U; VGPR[lane][VDST] = SGPR[7];"),
    ("V_MOV_B32", "D0.b32 = VGPR[laneId][300];"),
];

#[test]
fn supplied_semantics_touch_what_is_listed() {
    let arch = Arch::Rdna3;
    let mut failures = String::new();
    for (at, (name, body)) in GIVEN.iter().enumerate() {
        let text = format!("instruction {name} {{ {body} }}");
        let own = match Overrides::parse("given.pcode".to_string(), text) {
            Ok((own, _)) => own,
            Err(e) => panic!("{body}: {e}"),
        };
        let sem = own.get(arch, name).expect("given");
        let mut rng = Rng(0x91e4 + at as u64);
        let entries = arch.table().instruction(name).unwrap().entries;
        for case in 0..400 {
            // The plain encoding.
            let Some(inst) = random::instruction(&mut rng, arch, entries.0 as EntryId) else { continue };
            let bodies = BTreeMap::from([(name.to_string(), sem.clone())]);
            let mut case_of = Case::new(&mut rng, arch, inst, bodies, |_, size| own.facts(arch, name, size));
            if case % 2 == 0 {
                // The supplied semantics often test M0, so it is varied systematically.
                case_of.start.wave.set_sgpr(M0, (case / 2) & 127);
            }
            if let Err(what) = check_case(arch, &case_of, &mut Coverage::default()) {
                failures += &format!("{name} {{ {body} }}, case {case}: {what}\n");
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Checks use the effects of user-supplied semantics.
#[test]
fn checks_use_effects_of_supplied_semantics() {
    let kernel = crate::temporary(module_path!(), "kernel.rdna");
    let header = "---\nlocal = 32, 1, 1\nglobal = 1, 1, 1\nwave = 32\n---\n";
    // Branches that depend on the results of the moves.
    let body = "  v_mov_b32 v1, v0\n  s_mov_b32 s8, 2\n  s_cmp_lg_u32 s8, 0\n  s_cbranch_scc0 over\n  \
                v_cmp_ne_u32 vcc_lo, 0, v1\n  s_cbranch_vccnz over\n  s_nop 0\nover:\n  s_endpgm\n";
    std::fs::write(&kernel, format!("{header}{body}")).unwrap();
    let check = |pcode: Option<&str>| {
        let mut args = vec!["check".to_string(), kernel.display().to_string(), "-q".to_string()];
        if let Some(text) = pcode {
            let file = crate::temporary(module_path!(), "own.pcode");
            std::fs::write(&file, text).unwrap();
            args.extend(["--semantics".to_string(), file.display().to_string()]);
        }
        wavesim(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(check(None).0, 0);
    let (code, text) = check(Some(
        "instruction V_MOV_B32 {
           for lane in 0 : WAVE_SIZE - 1 do
             if EXEC.u64[lane] then
               VGPR[lane][VDST] = operandLane(S0, lane, 0).u32 ^ VGPR[lane][5].u32;
             endif
           endfor
         }",
    ));
    assert!(code == 1 && text.contains("v5 is read in lane 0, but was never written"), "{code}: {text}");
    let (code, text) = check(Some("instruction S_MOV_B32 { D0.u32 = SCC ? S0.u32 : 0U; }"));
    assert!(code == 1 && text.contains("scc is read, but was never written"), "{code}: {text}");
}
