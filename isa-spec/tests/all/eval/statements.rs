//! Statements, places, state, memory, stops and the trace.

use super::*;

#[test]
fn branches_and_loops() {
    check_cases(&[
        (
            "if S0.u32 == 0U then D0.u32 = 1U; elsif S0.u32 == 1U then D0.u32 = 2U; else D0.u32 = 3U; endif",
            &[0],
            1,
        ),
        (
            "if S0.u32 == 0U then D0.u32 = 1U; elsif S0.u32 == 1U then D0.u32 = 2U; else D0.u32 = 3U; endif",
            &[1],
            2,
        ),
        (
            "if S0.u32 == 0U then D0.u32 = 1U; elsif S0.u32 == 1U then D0.u32 = 2U; else D0.u32 = 3U; endif",
            &[9],
            3,
        ),
        // Both bounds are inclusive; a range whose start is above its end is empty.
        ("n = 0U; for i in 3 : 7 do n += 1U; endfor; D0.u32 = n;", &[], 5),
        ("n = 0U; for i in 7 : 3 do n += 1U; endfor; D0.u32 = n;", &[], 0),
        ("n = 0U; x = S0.u32; while x != 0U do n += x & 1U; x = x >> 1U; endwhile; D0.u32 = n;", &[0xf1], 5),
        ("D0.u32 = 1U; return; D0.u32 = 2U;", &[], 1),
    ]);
}

#[test]
fn arrays_and_partial_writes() {
    check_cases(&[
        ("declare a : 32'B[4]; a[S0.u32] = 7U; D0.u32 = a[S1.u32].u32;", &[2, 2], 7),
        // Out of range: a read returns zero, a write does nothing.
        ("declare a : 32'B[4]; a[S0.u32] = 7U; D0.u32 = a[S1.u32].u32;", &[4, 4], 0),
        (
            "declare t : 32'B; t[15 : 0].u16 = S0.u16; t[31 : 16].u16 = S1.u16; D0.b32 = t;",
            &[0x11111, 2],
            0x2_1111,
        ),
        ("{ D0[31 : 0].u32, D0[63 : 32].u32 } = S0.u64;", &[0xaaaa_bbbb_cccc_dddd], 0xcccc_dddd_aaaa_bbbb),
    ]);
}

/// Reading a scalar result after an assignment returns the register's new contents: the dwords above those
/// assigned are unchanged, and assigning 16 bits clears the upper half of the dword.
#[test]
fn scalar_results_read_after_narrower_assignments() {
    const OLD: u128 = 0x8877_6655_4433_2211;
    for (body, expected) in [
        ("D0.u64 = S0.u64; D0.u32 = 7U; D1 = D0.u64;", 0xaaaa_bbbb_0000_0007),
        ("D0.u32 = 7U; D1 = D0.u64;", 0x8877_6655_0000_0007),
        ("D0.u16 = 16'7U; D1 = D0.u64;", 0x8877_6655_0000_0007),
        ("D0.u32 = 7U; D0.u16 = 16'7U; D1 = 64'U(D0.u16);", 7),
        ("D0[15 : 0].u16 = 16'7U; D1 = D0.u64;", 0x8877_6655_4433_0007),
        ("D0.u32[15 : 8] = 8'7U; D1 = D0.u64;", 0x8877_6655_4433_0711),
        ("D0.u16[15 : 8] = 8'7U; D1 = D0.u64;", 0x8877_6655_0000_0711),
        ("D0[63 : 32].u32 = 7U; D1 = D0.u64;", 0x0000_0007_4433_2211),
        ("{ SCC, D0.u32 } = 33'U(S0.u32) + 33'0xffffffff; D1 = 64'U(D0.u32);", 0xcccc_dddc),
        ("{ D0[31 : 0], D0[63 : 32] } = S0.u64; D1 = D0.u64;", 0xcccc_dddd_aaaa_bbbb),
        ("{ D0.u32[15 : 0], { D0.u32[31 : 16], SCC } } = 33'U(S0.u32); D1 = D0.u64;", 0x8877_6655_6eee_6666),
    ] {
        let body = body.replace("D1 = ", "SGPR[9].u64 = ");
        let mut machine = Fake::default();
        machine.operands.extend([(Role::D0, OLD), (Role::S0, 0xaaaa_bbbb_cccc_dddd)]);
        eval(&compile_as("S_TEST", &body), &mut machine, None).unwrap();
        let read = machine.sgprs[&9] as u128 | (machine.sgprs[&10] as u128) << 32;
        assert_eq!(read, expected, "{body}: {read:x}");
        if body.contains("= D0.u64") {
            assert_eq!(machine.operands[&Role::D0], expected, "{body}");
        }
    }
}

/// A lane's bit of a mask is a slice of the whole mask.
#[test]
fn mask_bits() {
    let sem = compile("D0.u64[laneId] = S0.u32 > 1U;");
    let mut machine = Fake::default();
    machine.operands.insert(Role::D0, 0);
    for lane in [0, 5, 63] {
        machine.operands.insert(Role::S0, lane);
        eval(&sem, &mut machine, Some(lane as u32)).unwrap();
    }
    assert_eq!(machine.operands[&Role::D0], 1 << 5 | 1 << 63);
}

#[test]
fn registers_memory_and_state() {
    let mut machine = Fake::default();
    machine.vgprs.insert((3, 10), 77);
    machine.fields.insert("OFFSET".into(), 8);
    machine.states.insert(State::Scc, 1);
    machine.memory.extend([(0x108, 0x34), (0x109, 0x12)]);
    let body = "VGPR[4][VDST.u32] = VGPR[3][SRC0.u32] + 1U;
                SGPR[5] = MEM[0x100U + OFFSET.u32].u16;
                MEM[0x200LL].u64 = 0x1122334455667788LL;
                SCC = ~SCC;";
    run(body, &mut machine).unwrap();
    assert_eq!(machine.vgprs[&(4, 20)], 78);
    assert_eq!(machine.sgprs[&5], 0x1234);
    let stored: Vec<u8> = machine.memory.range(0x200..0x210).map(|m| *m.1).collect();
    assert_eq!(stored, [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
    assert_eq!(machine.states[&State::Scc], 0);
}

#[test]
fn control_builtins_reach_the_machine() {
    let mut machine = Fake::default();
    run("sendmsg(3U); D0.u64 = sendmsg_rtn(S0.u32);", &mut machine).unwrap();
    assert_eq!(machine.calls, [(Control::SendMsg, vec![3]), (Control::SendMsgRtn, vec![0])]);
    assert_eq!(machine.operands[&Role::D0], 5);
    let stop = run("endpgm(); D0.u32 = 1U;", &mut machine);
    assert_eq!(stop, Err(Stop::Machine(2)));
    assert_eq!(machine.operands[&Role::D0], 5, "nothing after the end runs");
}

#[test]
fn control_builtins_run_if_their_value_is_unused() {
    let mut machine = Fake::default();
    run("sendmsg_rtn(3U);", &mut machine).unwrap();
    assert_eq!(machine.calls, [(Control::SendMsgRtn, vec![3])]);
}

#[test]
fn faults_stop_the_body() {
    let mut machine = Fake { limit: Some(0x1000), ..Fake::default() };
    let stop = run("MEM[0x10LL].u32 = 1U; MEM[0x2000LL].u32 = 2U; D0.u32 = 3U;", &mut machine);
    assert_eq!(stop, Err(Stop::Machine(1)));
    assert!(machine.memory.contains_key(&0x10) && !machine.operands.contains_key(&Role::D0));
}

#[test]
fn endless_loops_stop() {
    for body in [
        "while 1U == 1U do D0.u32 = 1U; endwhile",
        "for i in 0 : 2147483647 do nop(); endfor",
        "x = S0.u32; while x == 0U do endwhile; D0.u32 = x;",
    ] {
        assert_eq!(run(body, &mut Fake::default()), Err(Stop::TooLong), "{body}");
    }
}

#[test]
fn only_the_chosen_side_is_evaluated() {
    // A control builtin with a value shows which side ran.
    for (s0, calls) in [(0, 1), (1, 0)] {
        let mut machine = Fake::default();
        machine.operands.insert(Role::S0, s0);
        run("D0.u64 = S0.u32 != 0U ? 1ULL : sendmsg_rtn(1U);", &mut machine).unwrap();
        assert_eq!(machine.calls.len(), calls);
        machine.calls.clear();
        run("D0.u32 = (S0.u32 != 0U) || (sendmsg_rtn(1U) != 0ULL) ? 1U : 0U;", &mut machine).unwrap();
        assert_eq!(machine.calls.len(), calls);
    }
}

#[test]
fn trace() {
    let mut machine = Fake::default();
    machine.operands.insert(Role::S0, 3);
    run("x = S0.u32 + 1U; if x > 9U then D0.u32 = 1U; else D0.u32 = x; endif", &mut machine).unwrap();
    assert_eq!(machine.trace, ["=4", "?0", "=4"]);
}

/// Hand-built IR: a concatenation and slices as wide as a value can be.
#[test]
fn full_width_values() {
    let span = Span::default();
    let expr = |kind, ty| Expr { kind, ty, span };
    let constant = |value: u128| expr(ExprKind::Const(value), Ty::B(128));
    let whole = Ty::B(128);
    let concat = expr(ExprKind::Concat(vec![constant(u128::MAX)]), whole);
    let slice = |lo: u128| {
        let base = Box::new(constant(u128::MAX));
        expr(ExprKind::Slice { base, lo: Box::new(constant(lo)) }, whole)
    };
    for (value, expected) in [(concat, u128::MAX), (slice(127), 1), (slice(128), 0), (slice(u128::MAX), 0)] {
        let place = Place {
            kind: PlaceKind::Concat(vec![Place { kind: PlaceKind::Local(0), ty: whole }]),
            ty: whole,
        };
        let read = expr(ExprKind::Local(0), whole);
        let sem = Semantics {
            names: vec!["V_TEST".into()],
            shape: Shape::Scalar,
            locals: vec![Local { name: "x".into(), ty: whole, len: None }],
            body: vec![
                Stmt::Assign { place, value, span },
                Stmt::Assign {
                    place: Place { kind: PlaceKind::Operand(Role::D0), ty: whole },
                    value: read,
                    span,
                },
            ],
            uses: Uses::default(),
            ignores_mode: false,
            definitions: Default::default(),
            text: String::new(),
            span,
        };
        let mut machine = Fake::default();
        eval(&sem, &mut machine, None).unwrap();
        assert_eq!(machine.operands[&Role::D0], expected);
    }
}
