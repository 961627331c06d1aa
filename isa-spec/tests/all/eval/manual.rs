//! Notation of the manuals' bodies, and reads after writes.

use super::*;
use isa_spec::pcode::ast::Item;
use isa_spec::pcode::check::Library;
use isa_spec::pcode::parse::parse_file;

fn check_wave(body: &str, sig: InstrSig) -> Semantics {
    let mut sources = SourceMap::default();
    let file = sources.add("test.pcode", format!("instruction {} {{\n{body}\n}}\n", sig.name));
    let (tree, errors) = parse_file(&sources, file);
    assert!(errors.is_empty(), "{errors:?}");
    let Some(Item::Instruction(block)) = tree.items.first() else { panic!("no instruction in {body}") };
    check(&sources, &Library::default(), block, &sig, None).unwrap_or_else(|e| panic!("{e:?}")).0
}

#[test]
fn parts_give_a_local_its_width() {
    check_cases(&[
        ("t[31 : 16].u16 = S0.u16; t[15 : 0].u16 = S1.u16; D0.b32 = t;", &[0x1234, 0x5678], 0x1234_5678),
        ("t[95 : 64].u32 = S0.u32; t[31 : 0].u32 = 1U; D0.u32 = t[95 : 64].u32 + t[31 : 0].u32;", &[5], 6),
        ("for i in 0 : 3 do t[i * 8 + 7 : i * 8].u8 = S0.u8; endfor; D0.b32 = t;", &[0xab], 0xabab_abab),
        ("t[39 : 32].u8 = 1'1U.u8; D0.u32 = 32'U(count_leading_zeros(t));", &[], 7),
        // A narrow view of a local keeps the other bits, like that of a register.
        ("t = 32'0xffffffff; t.u16 = 16'0; D0.u32 = t;", &[], 0xffff_0000),
    ]);
}

#[test]
fn numbers_of_the_manual() {
    check_cases(&[
        // A product is extended before it can wrap; a hexadecimal number cast to a float denotes its bits; a
        // signed view keeps the sign.
        ("D0.i64 = signext(S0.i16 * 16'4);", &[0x7fff], 0x1fffc),
        ("D0.i64 = signext(S0.i16 * 16'4);", &[0xffff], 0xffff_ffff_ffff_fffc),
        ("D0.f32 = 32'F(0xffc00000);", &[], 0xffc0_0000),
        ("n = S0.i16; D0.u32 = 32'U(n.i <= 0);", &[0xfffb], 1),
        // Sums of slices do not wrap at the slice's width; slices of a signed number shift arithmetically.
        ("D0.u32 = 32'U((S0.u32[31 : 24] + S0.u32[23 : 16]) >> 1U << 24U);", &[0xffff_0000], 0xff00_0000),
        ("D0.u32 = 32'U((S0.i32[15 : 0] >> 4U) & 0xffffU);", &[0x8000], 0xf800),
        ("D0.f32 = -INF.f32;", &[], f32_bits(f32::NEG_INFINITY)),
        ("D0.f32 = MAX_FLOAT_F32;", &[], f32_bits(f32::MAX)),
        ("D0.f64 = OVERFLOW_F64;", &[], f64_bits(f64::INFINITY)),
        ("D0.f32 = UNDERFLOW_F32;", &[], 0),
        ("D0.u32 = 32'U(isNAN(NAN.f32));", &[], 1),
        ("D0.u32 = 32'U(S0.f32 == DENORM.f32);", &[1], 1),
        ("D0.u32 = 32'U(S0.f32 == DENORM.f32);", &[0x3f80_0000], 0),
        ("D0.u32 = 32'U(DENORM.f32 != S0.f32);", &[0], 1),
        ("D0.f32 = float32(1'1U, 127, 23'0x400000);", &[], f32_bits(-1.5)),
        // A quarter turn.
        ("D0.f32 = sin(S0.f32 * 32'F(PI * 2.0));", &[f32_bits(0.25)], f32_bits(1.0)),
        ("D0.f32 = 32'F(cos(64'F(S0.f32) * 2.0 * PI));", &[f32_bits(0.5)], f32_bits(-1.0)),
        ("D0.f32 = sin_turns(S0.f32);", &[f32_bits(0.75)], f32_bits(-1.0)),
        // 1 + 2^-11 is between two f16.
        ("D0.f16 = f32_to_f16(S0.f32 * 1.5F);", &[f32_bits(1.0 / 1.5 * 1.001)], 0x3c01),
        (
            "saved = ROUND_MODE; ROUND_MODE = ROUND_TOWARD_ZERO; D0.f16 = f32_to_f16(S0.f32); ROUND_MODE = saved;",
            &[f32_bits(1.999_99)],
            0x3fff,
        ),
        ("TRAPSTS.INVALID = 1; D0.u32 = 3U;", &[], 3),
    ]);
}

#[test]
fn the_sources_as_an_array() {
    let body = "declare S : 32'B[3]; sum = 0U; for i in 0 : 2 do sum += S[i].u32; endfor; D0.u32 = sum;";
    check_cases(&[(body, &[1, 20, 300], 321)]);
}

#[test]
fn several_registers_by_number() {
    let mut machine = Fake { mode: 0xf0, ..Fake::default() };
    machine.sgprs.extend([(4, 1), (5, 2)]);
    run("at = 4U; SGPR[8U].b64 = SGPR[at].b64;", &mut machine).unwrap();
    assert_eq!((machine.sgprs[&8], machine.sgprs[&9]), (1, 2));
    run("VGPR[0][7].u16 = 16'5;", &mut machine).unwrap();
    assert_eq!(machine.vgprs[&(0, 7)], 5);
}

/// One body for each resource that can be written.
#[test]
fn reads_observe_earlier_writes() {
    for (write, read, expected) in [
        ("EXEC.u64 = 5ULL;", "32'U(EXEC.u64)", 5),
        ("VCC.u64 = 6ULL;", "32'U(VCC.u64)", 6),
        ("SCC = 1'1U;", "32'U(SCC)", 1),
        ("M0.u32 = 7U;", "M0.u32", 7),
        ("SGPR[3U].u32 = 8U;", "SGPR[3U].u32", 8),
        ("D0.u32 = 9U;", "D0.u32", 9),
        ("MEM[64ULL].u32 = 10U;", "MEM[64ULL].u32", 10),
    ] {
        let sig = InstrSig { name: "S_TEST".to_string(), permissive: true, ..InstrSig::default() };
        let sem = check_wave(&format!("{write} SGPR[0U].u32 = {read};"), sig);
        let mut machine = Fake::default();
        eval(&sem, &mut machine, None).unwrap();
        assert_eq!(machine.sgprs[&0], expected, "{write} {read}");
    }
}

/// Sources have their initial values even if their register is written; a lane's bit of a mask has the value
/// just written.
#[test]
fn sources_are_read_first() {
    let sig = InstrSig { name: "S_TEST".to_string(), permissive: true, ..InstrSig::default() };
    let sem = check_wave("D0.u32 = 1U; SGPR[0U].u32 = S0.u32 + 32'U(S0.u16);", sig);
    // As if D0 and S0 were one register: the source is read before D0 is written.
    let Some(Stmt::Assign { value, .. }) = sem.body.first() else { panic!("{:?}", sem.body) };
    assert_eq!(value.kind, ExprKind::Operand(Role::S0));
    let mut machine = Fake::default();
    machine.operands.insert(Role::S0, 0x3_0004);
    eval(&sem, &mut machine, None).unwrap();
    assert_eq!(machine.sgprs[&0], 0x3_0008);

    let mut machine = Fake::default();
    machine.operands.insert(Role::Vcc, 0);
    run("VCC.u64[laneId] = S0.u32 == 0U; D0.u32 = 32'U(VCC.u64[laneId]) + 1U;", &mut machine).unwrap();
    assert_eq!(machine.operands[&Role::D0], 2);
}

/// Deep nesting of any construct is an error rather than deep recursion.
#[test]
fn nesting_is_bounded() {
    let n = 20_000;
    let bodies = [
        format!("D0.u32 = {}1U{};", "(".repeat(n), ")".repeat(n)),
        format!("D0.u32 = S0{};", "[0]".repeat(n)),
        format!("declare a : 32'U{};", "[4]".repeat(n)),
        format!("D0.u32 = {}S0.u32;", "~".repeat(n)),
        format!("D0.u32 = S0{};", ".u32".repeat(n)),
        format!("D0.u32 = {}S0.u32{};", "abs(".repeat(n), ")".repeat(n)),
        format!("D0 = {}S0{};", "{".repeat(n), "}".repeat(n)),
        format!("D0.u32 = {}1U;", "1U ? 1U : ".repeat(n)),
        format!("{}nop();{}", "if SCC then ".repeat(n), "endif;".repeat(n)),
        "F = lambda(a) (".repeat(n),
    ];
    for body in bodies {
        let start = std::time::Instant::now();
        let mut sources = SourceMap::default();
        let file = sources.add("deep.pcode", format!("instruction V_TEST {{ {body} }}"));
        let report = isa_spec::report::check_files(&sources, &[file], &[], &[]);
        assert!(!report.ok(), "{}", &body[..40]);
        assert!(start.elapsed().as_secs() < 5, "{:?}: {}", start.elapsed(), &body[..40]);
    }
}
