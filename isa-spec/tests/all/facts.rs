//! Facts about the reads and writes of bodies.

use crate::eval::compile_as;
use isa_spec::facts::*;
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Role, Space};

/// Returns the facts of a body that may name any operand. An instruction `V_…` is a vector instruction, `S_…`
/// a scalar one.
fn facts(name: &str, body: &str, wave_size: u32) -> Facts {
    Facts::of(&compile_as(name, body), wave_size)
}

/// Prints register accesses as short lines: `R S0 ffffffff Active`, with `?` if not always, and the
/// conditions.
fn lines(name: &str, body: &str) -> Vec<String> {
    let facts = facts(name, body, 32);
    let line = |t: &Access| {
        let resource = match t.resource {
            Resource::Operand(role) => format!("{role:?}"),
            Resource::State(state) => format!("{state:?}"),
            Resource::Vgpr(n) => format!("v[{:?}+{}..{}]{:?}", n.base, n.first, n.first + n.count, n.index),
            Resource::Sgpr(n) => format!("s[{:?}+{}..{}]{:?}", n.base, n.first, n.first + n.count, n.index),
            other => format!("{other:?}"),
        };
        let conditions = t.conditions.iter().map(|c| {
            format!(
                " if {:?}>>{}&{:x}{}{}",
                c.value,
                c.shift,
                c.mask,
                if c.negated { "!=" } else { "==" },
                c.equals
            )
        });
        let conditions: String = conditions.collect();
        let (write, open) = (if t.write { "W" } else { "R" }, if t.always { "" } else { "?" });
        format!("{write} {resource} {:x} {:?}{open}{conditions}", t.bits, t.lanes)
    };
    facts.registers.iter().map(line).collect()
}

#[track_caller]
fn check_lines(name: &str, body: &str, expected: &[&str]) {
    assert_eq!(lines(name, body), expected, "{body}");
}

#[test]
fn operands_by_bits() {
    check_lines(
        "V_TEST",
        "D0[31 : 16].u16 = S0[15 : 0].u16 + S1.u16;",
        &["R S0 ffff Own", "R S1 ffff Own", "W D0 ffff0000 Own"],
    );
    check_lines(
        "V_TEST",
        "D0.u32 = (S0.u64 >> 3U).u32;",
        &["R S0 ffffffffffffffff Own", "W D0 ffffffff Own"],
    );
}

#[test]
fn reads_after_writes_are_not_reads() {
    check_lines(
        "S_TEST",
        "D0.u32 = S0.u32; SCC = D0.u32 != 0U;",
        &["R S0 ffffffff Once", "W D0 ffffffff Once", "W Scc 1 Once"],
    );
    // Written on one path only.
    check_lines(
        "S_TEST",
        "if SCC then D0.u32 = S0.u32; endif; D0.u32 = D0.u32 + 1U;",
        &["R D0 ffffffff Once", "R S0 ffffffff Once?", "R Scc 1 Once", "W D0 ffffffff Once"],
    );
}

#[test]
fn accesses_in_a_data_dependent_branch_are_conditional() {
    check_lines(
        "V_TEST",
        "D0.u32 = VCC.u64[laneId] ? S1.u32 : S0.u32;",
        &["R S0 ffffffff Own?", "R S1 ffffffff Own?", "R Vcc ffffffffffffffff Own", "W D0 ffffffff Own"],
    );
    // Also after a return that may have been taken.
    check_lines(
        "S_TEST",
        "if SCC then return; endif; D0.u32 = S0.u32;",
        &["R S0 ffffffff Once?", "R Scc 1 Once", "W D0 ffffffff Once?"],
    );
}

#[test]
fn conditions_on_the_instruction_are_kept() {
    check_lines(
        "V_TEST",
        "D0.u32 = indexOf(SADDR) == 124U ? VADDR.u32 : SADDR.u32;",
        &[
            "R VAddr ffffffff Own if RegisterNumber(SAddr)>>0&ffffffff==124",
            "R SAddr ffffffff Own if RegisterNumber(SAddr)>>0&ffffffff!=124",
            "W D0 ffffffff Own",
        ],
    );
    // Both outcomes together are unconditional.
    check_lines(
        "V_TEST",
        "if OPSEL[1] then D0.u32 = S0.u32; else D0.u32 = S0.u32 + S1.u32; endif;",
        &["R S0 ffffffff Own", "R S1 ffffffff Own if Field(\"OPSEL\")>>1&1==0", "W D0 ffffffff Own"],
    );
}

#[test]
fn loops_are_unrolled() {
    check_lines(
        "V_TEST",
        "for lane in 0 : WAVE_SIZE - 1 do
           if EXEC.u64[lane] then VGPR[lane][VDST + 1U] = VGPR[lane][SRC0.u32]; endif
         endfor",
        &[
            "R v[Some(RegisterNumber(S0))+0..1]None ffffffff Active",
            "W v[Some(RegisterNumber(D0))+1..2]None ffffffff Active",
        ],
    );
    check_lines(
        "V_TEST",
        "for i in 0 : 5 do VGPR[3][VDST + 32'U(i)] = operandLane(S0, 2, i); endfor",
        &[
            "R S0 ffffffffffffffffffffffffffffffff Lane(2)",
            "R Dwords { role: S0, first: 4, count: 2 } ffffffff Lane(2)",
            "W v[Some(RegisterNumber(D0))+0..6]None ffffffff Lane(3)",
        ],
    );
    // A read that depends on some lanes being active may not happen.
    for (last, open) in [(31, ""), (30, "?")] {
        let body = format!("for i in 0 : {last} do if EXEC.u64[i] then VGPR[i][VDST] = M0; endif endfor");
        let read = format!("R M0 ffffffff Once{open}");
        check_lines("V_TEST", &body, &[&read, "W v[Some(RegisterNumber(D0))+0..1]None ffffffff Active"]);
    }
    // A bound computed from data.
    check_lines(
        "S_TEST",
        "i = 0; while i < S0.i32 do i += S1.i32; endwhile",
        &["R S0 ffffffff Once", "R S1 ffffffff Once?"],
    );
}

#[test]
fn lanes_selected_by_data() {
    check_lines(
        "V_TEST",
        "for lane in 0 : WAVE_SIZE - 1 do
           if EXEC.u64[lane] then VGPR[lane][VDST] = operandLane(S0, operandLane(S1, lane, 0).i32, 0); endif
         endfor",
        &[
            "R S0 ffffffff Any?",
            "R S1 ffffffff Active",
            "W v[Some(RegisterNumber(D0))+0..1]None ffffffff Active",
        ],
    );
    check_lines(
        "V_TEST",
        "D0.b32 = operandLane(S0, S1.u32 & (WAVE_SIZE - 1U), 0);",
        &["R S0 ffffffff Selected(S1)", "R S1 ffffffff Once", "W D0 ffffffff Once"],
    );
    check_lines(
        "V_TEST",
        "lane = EXEC == 0x0ULL ? 0U : 32'U(count_trailing_zeros(EXEC.u64)); D0.b32 = operandLane(S0, lane, 0);",
        &["R S0 ffffffff LowestActive", "W D0 ffffffff Once"],
    );
}

#[test]
fn m0_relative_registers() {
    let body = "index = M0[9 : 0].u32;
        limit = SRC0.u32 <= 107U ? 108U : SRC0.u32 + 1U;
        D0.b32 = SGPR[index > 255U || SRC0.u32 + index + 1U > limit ? 0U : SRC0.u32 + index];";
    check_lines(
        "S_TEST",
        body,
        &[
            "R M0 ffffffff Once",
            "R s[Some(RegisterNumber(S0))+0..1]Some(M0Field { shift: 0, mask: 1023 }) ffffffff Once",
            "W D0 ffffffff Once",
        ],
    );
    check_lines(
        "S_TEST",
        "D0.b32 = SGPR[S0.u32];",
        &["R S0 ffffffff Once", "R AnySgpr ffffffff Once?", "W D0 ffffffff Once"],
    );
}

/// The range check must have the manuals' form; otherwise any register may be accessed.
#[test]
fn m0_relative_registers_without_the_usual_range_check() {
    let any = ["R M0 ffffffff Once", "W AnySgpr ffffffff Once?"];
    check_lines("S_TEST", "SGPR[SDST + M0] = 1U;", &any);
    check_lines("S_TEST", "SGPR[M0 > 255U ? 0xffffffffU : SDST + M0] = 1U;", &any);
    check_lines("S_TEST", "SGPR[M0 > 255U ? 0U : SDST + M0] = 1U;", &any);
    check_lines("S_TEST", "SGPR[M0 <= 255U ? 0xffffffffU : SDST + M0] = 1U;", &any);
    check_lines(
        "S_TEST",
        "SGPR[SCC ? 5U : SDST + M0] = 1U;",
        &["R Scc 1 Once", "R M0 ffffffff Once?", "W AnySgpr ffffffff Once?"],
    );
    // A sign-extended index does not qualify.
    check_lines(
        "V_TEST",
        "r = 32'I(M0.i16); for lane in 0 : 31 do VGPR[lane][r > 255 ? 0xffffffffU : VDST + 32'U(r)] = 1U; endfor",
        &["R M0 ffffffff Once", "W AnyVgpr ffffffff All?"],
    );
}

#[test]
fn registers_by_one_of_two_numbers() {
    check_lines(
        "S_TEST",
        "r = SCC ? 5U : SDST + 2U; SGPR[r + 1U] = 1U;",
        &[
            "R Scc 1 Once",
            "W s[None+6..7]None ffffffff Once?",
            "W s[Some(RegisterNumber(D0))+3..4]None ffffffff Once?",
        ],
    );
    // The choice depends on the instruction only, and no register has a number this high.
    check_lines(
        "S_TEST",
        "if SDST == 124U then r = 0x4000U; else r = SDST; endif; SGPR[r] = 1U;",
        &["W s[Some(RegisterNumber(D0))+0..1]None ffffffff Once if RegisterNumber(D0)>>0&ffffffff!=124"],
    );
}

#[test]
fn writes_invalidate_known_state() {
    check_lines(
        "V_TEST",
        "if SCC then M0 = 3U; endif
         for lane in 0 : 31 do VGPR[lane][M0 > 255U ? 0xffffffffU : VDST + M0] = 1U; endfor",
        &["R Scc 1 Once", "R M0 ffffffff Once?", "W M0 ffffffff Once?", "W AnyVgpr ffffffff All?"],
    );
    let lane = "lane = EXEC == 0x0ULL ? 0U : 32'U(count_trailing_zeros(EXEC.u64)); VGPR[lane][VDST] = 1U;";
    for (before, write) in [
        ("EXEC_LO = 2U;", "W ExecLo ffffffff Once"),
        ("SGPR[SDST] = 2U;", "W s[Some(RegisterNumber(D0))+0..1]None ffffffff Once"),
    ] {
        let mut expected = vec![write, "W v[Some(RegisterNumber(D0))+0..1]None ffffffff Any?"];
        expected.sort_by_key(|line| line.contains("s["));
        let mut found = lines("V_TEST", &format!("{before} {lane}"));
        found.sort_by_key(|line| line.contains("s["));
        assert_eq!(found, expected, "{before}");
    }
    // Assigning both halves assigns the whole, and vice versa.
    check_lines(
        "S_TEST",
        "EXEC_LO = 1U; EXEC_HI = 2U; SCC = EXECZ; VCC = EXEC; D0.u32 = VCC_HI;",
        &[
            "W D0 ffffffff Once",
            "W ExecLo ffffffff Once",
            "W ExecHi ffffffff Once",
            "W Vcc ffffffffffffffff Once",
            "W Scc 1 Once",
        ],
    );
}

/// Lane 0 stands in for the lowest active lane only if no lane is active.
#[test]
fn lane_zero_by_another_condition() {
    check_lines(
        "V_TEST",
        "lane = SCC ? 0U : 32'U(count_trailing_zeros(EXEC.u64)); VGPR[lane][VDST] = 1U;",
        &["R Scc 1 Once", "W v[Some(RegisterNumber(D0))+0..1]None ffffffff Any?"],
    );
    check_lines(
        "V_TEST",
        "if EXEC != 0x0ULL then lane = 32'U(count_trailing_zeros(EXEC.u64)); else lane = 0U; endif
         VGPR[lane][VDST] = 1U;",
        &["W v[Some(RegisterNumber(D0))+0..1]None ffffffff LowestActive"],
    );
}

#[test]
fn a_return_in_a_loop_makes_the_rest_conditional() {
    for head in ["while SCC do", "for i in 0 : 32'I(SCC) do"] {
        let end = if head.starts_with("for") { "endfor" } else { "endwhile" };
        let body = format!("{head} if S0.u32 == 1U then return; endif {end} D0.u32 = 1U;");
        check_lines("S_TEST", &body, &["R S0 ffffffff Once?", "R Scc 1 Once", "W D0 ffffffff Once?"]);
    }
}

/// Sign extension changes the number in a field.
#[test]
fn sign_extended_fields_are_unknown() {
    check_lines(
        "V_TEST",
        "if 32'I(SIMM16.i16) == 0x8000 then D0.u32 = S0.u32; endif",
        &["R S0 ffffffff Own?", "W D0 ffffffff Own?"],
    );
}

/// Very long loops and very many conditions.
#[test]
fn bounded() {
    let conditions: String =
        (0..1200).map(|i| format!("if SIMM16 == {i}U then D0.u32 = S0.u32; endif ")).collect();
    for body in [
        "for i in 0 : 2147483646 do nop(); endfor",
        "for i in 0 : 2147483646 do for j in 0 : 2147483646 do VGPR[j][i] = S0.u32; endfor endfor",
        "for i in 0 : 2147483646 do if SIMM16 == 32'U(i) then D0[i & 31] = 1'1U; endif endfor",
        "for i in 0 : 2147483646 do if SIMM16 == 32'U(i) then MEM[64'U(i)].u32 = MEM[64'U(i)].u32; endif endfor",
        &conditions,
    ] {
        let of = facts("V_TEST", body, 64);
        assert!(of.registers.len() + of.memory.len() <= 2100, "{body:.80}");
    }
}

#[test]
fn the_wave_size_decides() {
    let body = "if WAVE64 then D0.u32 = S0.u32; else D0.u32 = S1.u32; endif";
    let reads = |size| {
        let facts = facts("S_TEST", body, size);
        facts.registers.iter().filter(|t| !t.write).map(|t| t.resource).collect::<Vec<_>>()
    };
    assert_eq!(reads(32), [Resource::Operand(Role::S1)]);
    assert_eq!(reads(64), [Resource::Operand(Role::S0)]);
}

#[test]
fn memory_and_calls() {
    let of = facts(
        "DS_TEST",
        "old = LDS[64'U(VADDR.u32)].u32; LDS[64'U(VADDR.u32)].u32 = old + 1U; D0.u32 = old;",
        32,
    );
    let memory: Vec<_> = of.memory.iter().map(|m| (m.space, m.bytes, m.write, m.always)).collect();
    assert_eq!(memory, [(Space::Lds, 4, false, true), (Space::Lds, 4, true, true)]);
    assert!(of.is_atomic() && of.accesses(Space::Lds, true) && !of.accesses(Space::Global, false));
    let of = facts("S_TEST", "SCC = barrier_signal_isfirst(S0.i32);", 32);
    assert!(of.calls(Control::BarrierSignalIsFirst) && !of.calls(Control::Barrier) && !of.is_atomic());
}

#[test]
fn copies_are_recognised() {
    for (body, copies) in [
        ("D0.b32 = S0.b32;", true),
        ("D0.b64 = S0.b64;", true),
        ("D0.b32 = S1.b32;", false),
        ("D0.i32 = -S0.i32;", false),
        ("D0.b32 = S0.b32; SCC = S0.u32 != 0U;", false),
        ("D0.f32 = 32'F(S0.u32);", false),
    ] {
        assert_eq!(facts("V_TEST", body, 32).is_copy, copies, "{body}");
    }
}

#[test]
fn compare_and_swap_is_recognised() {
    for (new, compares) in [
        ("old == S1.u32 ? S2.u32 : old", true),
        ("old + S1.u32", false),
        ("old >= S1.u32 ? 0U : old + 1U", false),
        ("(old == 0U) || (old > S1.u32) ? S1.u32 : old - 1U", false),
    ] {
        let body = format!("old = LDS[64'U(VADDR.u32)].u32; LDS[64'U(VADDR.u32)].u32 = {new};");
        assert_eq!(facts("DS_TEST", &body, 32).is_compare_swap, compares, "{new}");
    }
}
