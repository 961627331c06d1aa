//! Properties that hold for all operands: packed operations equal two half operations, identity DPP has no
//! effect, wave64 equals two wave32 halves, dual issue reads before it writes; and float arithmetic equals
//! that of `rustc_apfloat` in every rounding mode.

use isa_spec::pcode::ir::{Role, Shape, State};
use isa_spec::tables::{EntryId, Role as Operand};
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};
use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::conform::run::semantics;
use wavesim::exec::reference;
use wavesim::inst::Inst;
use wavesim::state::Wave;
use wavesim::state::wave::{SGPRS, VGPRS};
use wavesim_tests::machine::differing_vgpr;
use wavesim_tests::random::{self, Rng};
use wavesim_tests::{inst, with_context};

/// Runs one instruction that does not access memory.
fn step(arch: Arch, inst: &Inst, wave: &mut Wave) {
    with_context(None, &mut [], (&mut [], 0), |cx| wavesim::exec::step(arch, inst, wave, cx))
        .unwrap()
        .unwrap();
}

/// Returns `name` in VOP3 or VOP3P with the sources v0, v2 and v4 (register pairs) and the destination v6.
fn vop3(arch: Arch, name: &str, encoding: &str) -> Inst {
    let sources = [("VDST", 6), ("SRC0", 256), ("SRC1", 258), ("SRC2", 260)];
    let known: Vec<_> = sources.into_iter().filter(|s| inst(arch, name, encoding, &[*s]).is_some()).collect();
    inst(arch, name, encoding, &known).unwrap_or_else(|| panic!("{}: no {name} in {encoding}", arch.name()))
}

#[test]
fn packed_operations_equal_two_half_operations() {
    let mut rng = Rng(11);
    let pairs = [
        ("V_PK_ADD_F16", "V_ADD_F16", 2),
        ("V_PK_MUL_F16", "V_MUL_F16", 2),
        ("V_PK_FMA_F16", "V_FMA_F16", 3),
        ("V_PK_ADD_U16", "V_ADD_NC_U16", 2),
        ("V_PK_SUB_U16", "V_SUB_NC_U16", 2),
        ("V_PK_ADD_I16", "V_ADD_NC_I16", 2),
        ("V_PK_SUB_I16", "V_SUB_NC_I16", 2),
        ("V_PK_MUL_LO_U16", "V_MUL_LO_U16", 2),
        ("V_PK_MAX_I16", "V_MAX_I16", 2),
        ("V_PK_MIN_I16", "V_MIN_I16", 2),
        ("V_PK_MAX_U16", "V_MAX_U16", 2),
        ("V_PK_MIN_U16", "V_MIN_U16", 2),
        ("V_PK_LSHLREV_B16", "V_LSHLREV_B16", 2),
        ("V_PK_LSHRREV_B16", "V_LSHRREV_B16", 2),
        ("V_PK_ASHRREV_I16", "V_ASHRREV_I16", 2),
        ("V_PK_MAD_U16", "V_MAD_U16", 3),
        ("V_PK_MAD_I16", "V_MAD_I16", 3),
    ];
    for arch in Arch::RDNA {
        for (packed, single, sources) in pairs {
            let hi = (1 << sources) - 1;
            let mut packed_inst = vop3(arch, packed, "ENC_VOP3P");
            let set = |inst: &mut Inst, name: &str, value: u32| {
                let fields = inst.encoding(arch.table()).fields;
                if let Some(at) = fields.iter().position(|f| f.name == name) {
                    inst.fields[at] = value;
                }
            };
            set(&mut packed_inst, "OP_SEL_HI", hi & 3);
            set(&mut packed_inst, "OP_SEL_HI_2", hi >> 2);
            for _ in 0..40 {
                let clamp = rng.below(2) as u32;
                let mut wave = random::wave(&mut rng, 32);
                let before = wave.clone();
                set(&mut packed_inst, "CLAMP", clamp);
                set(&mut packed_inst, "CM", clamp);
                let mut halves = wave.clone();
                step(arch, &packed_inst, &mut wave);
                for op_sel in [0, 0xf] {
                    let mut half = vop3(arch, single, "ENC_VOP3");
                    set(&mut half, "OP_SEL", op_sel);
                    set(&mut half, "CLAMP", clamp);
                    set(&mut half, "CM", clamp);
                    step(arch, &half, &mut halves);
                }
                for lane in 0..32 {
                    let sources = [0, 2, 4].map(|reg| before.vgpr(lane, reg));
                    assert_eq!(
                        wave.vgpr(lane, 6),
                        halves.vgpr(lane, 6),
                        "{} {packed} clamp {clamp} mode {:x} of {sources:x?}",
                        arch.name(),
                        wave.mode
                    );
                }
            }
        }
    }
}

/// The identity quad permutation 0 1 2 3 with all rows and banks enabled.
#[test]
fn identity_dpp_has_no_effect() {
    let mut rng = Rng(12);
    for arch in Arch::RDNA {
        let table = arch.table();
        let mut checked = 0;
        for id in 0..table.entries.len() as EntryId {
            let entry = &table.entries[id as usize];
            let encoding = &table.encodings[entry.enc as usize];
            let fields = encoding.fields;
            let find = |name: &str| fields.iter().position(|f| f.name == name);
            let Some(ctrl) = find("DPP_CTRL") else { continue };
            let name = table.instructions[entry.inst as usize].name;
            // The encoding without DPP has the same leading fields.
            let plain = table.entries_of(&table.instructions[entry.inst as usize]).iter().find_map(|e| {
                let other = table.encodings[e.enc as usize].name;
                (other.starts_with("ENC_") && encoding.name.contains(&other[4..]) && !other.contains("DPP"))
                    .then_some(other)
            });
            let Some(plain) = plain else { continue };
            for _ in 0..4 {
                let Some(mut moved) = random::instruction(&mut rng, arch, id) else { break };
                let mut set = |name: &str, value: u32| {
                    if let Some(at) = find(name) {
                        moved.fields[at] = value;
                    }
                };
                set("ROW_MASK", 15);
                set("BANK_MASK", 15);
                set("BOUND_CTRL", 1);
                set("FI", 1);
                for modifier in ["SRC0_ABS", "SRC0_NEG", "SRC1_ABS", "SRC1_NEG"] {
                    set(modifier, 0);
                }
                moved.fields[ctrl] = 0xe4;
                if semantics(arch, &moved, &BTreeMap::new()).is_none() {
                    break;
                }
                let values: Vec<(&str, u32)> = fields
                    .iter()
                    .zip(moved.fields)
                    .filter(|(f, _)| f.fixed.is_none())
                    .filter(|(f, _)| inst(arch, name, plain, &[(f.name, 0)]).is_some())
                    .map(|(f, value)| (f.name, value))
                    .collect();
                let Some(mut still) = inst(arch, name, plain, &values) else { break };
                // The first source is `VSRC0` with DPP, and an operand code without.
                let source = still.encoding(table).fields.iter().position(|f| f.name == "SRC0");
                if let (Some(to), Some(from)) = (source, find("VSRC0").or(find("SRC0"))) {
                    still.fields[to] = 256 | moved.fields[from] & 0xff;
                }
                let start = random::wave(&mut rng, 32);
                let (mut a, mut b) = (start.clone(), start.clone());
                step(arch, &moved, &mut a);
                step(arch, &still, &mut b);
                let differs = differing_vgpr((&a, 0), (&b, 0));
                assert_eq!(differs, None, "{} {name} {}", arch.name(), encoding.name);
                assert_eq!(a.sgprs[..SGPRS], b.sgprs[..SGPRS], "{} {name} {}", arch.name(), encoding.name);
                checked += 1;
            }
        }
        assert!(checked > 500, "{}: {checked}", arch.name());
    }
}

/// Vector operations with independent lanes have the same results in wave64 and in two wave32 halves.
#[test]
fn wave64_equals_two_wave32_halves() {
    let mut rng = Rng(13);
    let none = BTreeMap::new();
    for arch in Arch::RDNA {
        let table = arch.table();
        let mut checked = 0;
        for id in 0..table.entries.len() as EntryId {
            let entry = &table.entries[id as usize];
            let name = table.instructions[entry.inst as usize].name;
            // Lane masks, including carries and conditions, have different widths.
            let masks = table.signatures[entry.sig as usize].iter().any(|o| o.role == Operand::Vcc);
            if !name.starts_with("V_") || name.starts_with("V_CMP") || masks {
                continue;
            }
            for _ in 0..3 {
                let Some(mut inst) = random::instruction(&mut rng, arch, id) else { break };
                // The row mask of DPP covers four rows in wave64.
                if let Some(at) = inst.encoding(table).fields.iter().position(|f| f.name == "ROW_MASK") {
                    inst.fields[at] = 15;
                }
                let Some((x, y)) = semantics(arch, &inst, &none) else { break };
                let independent = [Some(x), y].into_iter().flatten().all(|sem| {
                    sem.shape == Shape::Lane
                        && !sem.uses.reads.contains(&Role::Vcc)
                        && !sem.uses.state_reads.contains(&State::LaneId)
                });
                if !independent {
                    continue;
                }
                let mut whole = random::wave(&mut rng, 64);
                let half = |at: usize| {
                    let mut wave = Wave::new(32);
                    (0..VGPRS).for_each(|reg| wave.set_lane_vec(0, reg, *whole.lane_vec(at, reg)));
                    wave.sgprs = whole.sgprs;
                    wave.scc = whole.scc;
                    wave.mode = whole.mode;
                    wave.set_exec(whole.exec() >> (32 * at));
                    wave
                };
                // EXEC as a source differs in the halves, also as the upper half of a pair that begins with
                // M0.
                if inst.fields.iter().any(|f| (125..128).contains(f)) {
                    continue;
                }
                let mut halves = [half(0), half(1)];
                step(arch, &inst, &mut whole);
                for (at, wave) in halves.iter_mut().enumerate() {
                    step(arch, &inst, wave);
                    let differs = differing_vgpr((wave, 0), (&whole, at));
                    assert_eq!(differs, None, "{} {name}", arch.name());
                }
                checked += 1;
            }
        }
        assert!(checked > 800, "{}: {checked}", arch.name());
    }
}

/// Scalar float instructions (RDNA 3.5 and later) have the same results as their vector counterparts.
#[test]
fn scalar_floats_equal_vector_floats() {
    let mut rng = Rng(16);
    let mut pairs: Vec<(String, String, &str, u32)> = Vec::new();
    for (width, ty) in [(32, "F32"), (16, "F16")] {
        for op in ["ADD", "SUB", "MUL", "MIN", "MAX", "MIN_NUM", "MAX_NUM", "MINIMUM", "MAXIMUM"] {
            pairs.push((format!("S_{op}_{ty}"), format!("V_{op}_{ty}"), "ENC_SOP2", width));
        }
        for op in ["CEIL", "FLOOR", "TRUNC", "RNDNE"] {
            pairs.push((format!("S_{op}_{ty}"), format!("V_{op}_{ty}"), "ENC_SOP1", width));
        }
    }
    for (op, width) in
        [("F32_I32", 32), ("F32_U32", 32), ("I32_F32", 32), ("U32_F32", 32), ("F16_F32", 16), ("F32_F16", 32)]
    {
        pairs.push((format!("S_CVT_{op}"), format!("V_CVT_{op}"), "ENC_SOP1", width));
    }
    pairs.push(("S_CVT_PK_RTZ_F16_F32".into(), "V_CVT_PK_RTZ_F16_F32".into(), "ENC_SOP2", 32));
    for arch in [Arch::Rdna35, Arch::Rdna4] {
        let mut checked = 0;
        for (scalar, vector, encoding, width) in &pairs {
            let one = [("SDST", 6), ("SSRC0", 4)];
            let two = [("SDST", 6), ("SSRC0", 4), ("SSRC1", 5)];
            let Some(scalar_inst) =
                inst(arch, scalar, encoding, &two).or_else(|| inst(arch, scalar, encoding, &one))
            else {
                continue;
            };
            let sources = [("VDST", 6), ("SRC0", 256), ("SRC1", 257)];
            let vector_inst = inst(arch, vector, "ENC_VOP3", &sources)
                .unwrap_or_else(|| panic!("{}: no {vector}", arch.name()));
            checked += 1;
            for _ in 0..400 {
                let mut wave = random::wave(&mut rng, 32);
                wave.set_exec(1);
                let sources = [rng.dword(), rng.dword()];
                for (at, source) in (0..).zip(sources) {
                    wave.set_sgpr(4 + at, source);
                    wave.set_vgpr(0, at, source);
                }
                step(arch, &scalar_inst, &mut wave);
                step(arch, &vector_inst, &mut wave);
                let mask = if *width == 16 { 0xffff } else { u32::MAX };
                let (s, v) = (wave.sgpr(6) & mask, wave.vgpr(0, 6) & mask);
                assert!(
                    s == v,
                    "{} {scalar} mode {:x} of {sources:x?}: {s:x}, vector {v:x}",
                    arch.name(),
                    wave.mode
                );
            }
        }
        assert!(checked >= 24, "{}: {checked}", arch.name());
        let compares = "LT EQ LE GT LG GE O U NGE NLG NGT NLE NEQ NLT";
        for (op, ty) in compares.split(' ').flat_map(|op| ["F32", "F16"].map(|ty| (op, ty))) {
            let scalar =
                inst(arch, &format!("S_CMP_{op}_{ty}"), "ENC_SOPC", &[("SSRC0", 4), ("SSRC1", 5)]).unwrap();
            let sources = [("VDST", 10), ("SRC0", 4), ("SRC1", 5)];
            let vector = inst(arch, &format!("V_CMP_{op}_{ty}"), "ENC_VOP3", &sources).unwrap();
            for _ in 0..200 {
                let mut wave = random::wave(&mut rng, 32);
                wave.set_exec(1);
                for code in [4, 5] {
                    let value = rng.dword();
                    wave.set_sgpr(code, value);
                }
                step(arch, &scalar, &mut wave);
                step(arch, &vector, &mut wave);
                assert_eq!(wave.scc, wave.sgpr(10), "{} S_CMP_{op}_{ty} mode {:x}", arch.name(), wave.mode);
            }
        }
    }
}

/// Both halves of a dual-issue instruction read the original register values.
#[test]
fn dual_issue_reads_before_it_writes() {
    let mut rng = Rng(14);
    for arch in Arch::RDNA.into_iter().chain([Arch::Cdna5]) {
        let table = arch.table();
        let vopd: Vec<EntryId> = (0..table.entries.len() as EntryId)
            .filter(|&id| table.encodings[table.entries[id as usize].enc as usize].name.starts_with("VOPD"))
            .collect();
        for _ in 0..2000 {
            let id = rng.pick(&vopd);
            let Some(both) = random::instruction(&mut rng, arch, id) else { continue };
            let start = random::wave(&mut rng, 32);
            let mut dual = start.clone();
            step(arch, &both, &mut dual);
            // Each half alone: the semantics of the other half are replaced by an empty body.
            let fields = both.encoding(table).fields;
            let at = |name: &str| fields.iter().position(|f| f.name == name).unwrap();
            let (x, y) = (both.fields[at("VDSTX")] as usize, both.fields[at("VDSTY")] as usize);
            let none = BTreeMap::new();
            let (sem_x, sem_y) = semantics(arch, &both, &none).unwrap();
            let half_alone = |first: bool| {
                let mut wave = start.clone();
                let nothing = isa_spec::pcode::ir::Semantics { body: Vec::new(), ..sem_x.clone() };
                let (a, b) = if first { (sem_x, &nothing) } else { (&nothing, sem_y.unwrap()) };
                with_context(None, &mut [], (&mut [], 0), |cx| {
                    reference::step(arch, &both, a, Some(b), &mut wave, cx).unwrap();
                });
                wave
            };
            let name = both.instruction(table).name;
            let (first, second) = (half_alone(true), half_alone(false));
            // The first half of VOPD3 may write a pair.
            let table = arch.table();
            let sig = table.signatures[both.entry(table).sig as usize];
            let last = x as u32 + sig.iter().find(|o| o.output).map_or(1, |o| o.size_bits as u32 / 32) - 1;
            let same = |lane: u32| (x as u32..=last).all(|v| dual.vgpr(lane, v) == first.vgpr(lane, v));
            assert!((0..32).all(same), "{} {name}: first half", arch.name());
            let same = |lane: u32| dual.vgpr(lane, y as u32) == second.vgpr(lane, y as u32);
            assert!((0..32).all(same), "{} {name}: second half", arch.name());
        }
    }
}

const ROUNDS: [Round; 4] =
    [Round::NearestTiesToEven, Round::TowardPositive, Round::TowardNegative, Round::TowardZero];

/// Compares the handler with `expect` in each rounding mode, with denormals enabled.
fn compare_with(name: &str, width: u32, expect: fn([u64; 3], Round) -> u64) {
    let mut rng = Rng(15);
    let arch = Arch::Rdna4;
    let inst = vop3(arch, name, "ENC_VOP3");
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    for round in 0..4 {
        for _ in 0..60 {
            let mut wave = random::wave(&mut rng, 32);
            wave.set_exec(u64::MAX);
            wave.mode = 0xf0 | round | round << 2;
            let before = wave.clone();
            step(arch, &inst, &mut wave);
            for lane in 0..32 {
                let read =
                    |wave: &Wave, reg| wave.vgpr(lane, reg) as u64 | (wave.vgpr(lane, reg + 1) as u64) << 32;
                let sources = [0, 2, 4].map(|reg| read(&before, reg));
                let (got, expected) = (read(&wave, 6) & mask, expect(sources, ROUNDS[round as usize]) & mask);
                assert!(
                    got == expected,
                    "{name} {:?} of {sources:x?}: {got:x}, apfloat {expected:x}",
                    ROUNDS[round as usize]
                );
            }
        }
    }
}

fn of<F: Float>(bits: u64) -> F {
    F::from_bits(bits as u128 & if F::BITS == 64 { u64::MAX as u128 } else { (1 << F::BITS) - 1 })
}

fn bits<F: Float>(x: F) -> u64 {
    x.to_bits() as u64
}

/// Returns a result of an operation on `operands`. A NaN is the first of the operands, made quiet, or else the
/// negative default NaN (RDNA 4 manual, *NaN Handling*).
fn result<F: Float>(operands: &[u64], result: F) -> u64 {
    let quiet = 1 << (F::PRECISION - 2);
    match operands.iter().find(|x| of::<F>(**x).is_nan()) {
        Some(nan) => bits(of::<F>(*nan)) | quiet,
        None if result.is_nan() => bits(F::INFINITY) | quiet | 1 << (F::BITS - 1),
        None => bits(result),
    }
}

macro_rules! like_apfloat {
    ($($test:ident $t:ty, $width:literal, $add:literal $mul:literal $fma:literal;)*) => { $(
        #[test]
        fn $test() {
            compare_with($add, $width, |s, r| result(&s[..2], of::<$t>(s[0]).add_r(of(s[1]), r).value));
            compare_with($mul, $width, |s, r| result(&s[..2], of::<$t>(s[0]).mul_r(of(s[1]), r).value));
            compare_with($fma, $width, |s, r| {
                result(&s, of::<$t>(s[0]).mul_add_r(of(s[1]), of(s[2]), r).value)
            });
        }
    )* };
}

like_apfloat! {
    f16_arithmetic_is_apfloats Half, 16, "V_ADD_F16" "V_MUL_F16" "V_FMA_F16";
    f32_arithmetic_is_apfloats Single, 32, "V_ADD_F32" "V_MUL_F32" "V_FMA_F32";
    f64_arithmetic_is_apfloats Double, 64, "V_ADD_F64" "V_MUL_F64" "V_FMA_F64";
}

#[test]
fn conversions_are_apfloats() {
    fn narrow<A: Float + FloatConvert<B>, B: Float>(s: [u64; 3], r: Round) -> u64 {
        bits(of::<A>(s[0]).convert_r(r, &mut false).value)
    }
    compare_with("V_CVT_F32_F16", 32, narrow::<Half, Single>);
    compare_with("V_CVT_F16_F32", 16, narrow::<Single, Half>);
    compare_with("V_CVT_F64_F32", 64, narrow::<Single, Double>);
    compare_with("V_CVT_F32_F64", 32, narrow::<Double, Single>);
    compare_with("V_CVT_F32_I32", 32, |s, r| bits(Single::from_i128_r(s[0] as u32 as i32 as i128, r).value));
    compare_with("V_CVT_F32_U32", 32, |s, r| bits(Single::from_u128_r(s[0] as u32 as u128, r).value));
    compare_with("V_CVT_F64_I32", 64, |s, r| bits(Double::from_i128_r(s[0] as u32 as i32 as i128, r).value));
    // Conversions to integers truncate and saturate in every rounding mode.
    compare_with("V_CVT_I32_F32", 32, |s, _| f32::from_bits(s[0] as u32) as i32 as u32 as u64);
    compare_with("V_CVT_U32_F64", 32, |s, _| f64::from_bits(s[0]) as u32 as u64);
    compare_with("V_CVT_I32_F64", 32, |s, _| f64::from_bits(s[0]) as i32 as u32 as u64);
}
