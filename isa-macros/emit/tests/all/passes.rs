//! Tests of the passes, on single bodies and on every operation.

use crate::{LOADED, SET};
use isa_lower::ir::*;
use isa_lower::{lower, visit};
use isa_spec::canonical;
use isa_spec::tables::Role;

/// Returns the handlers of an RDNA 3 instruction with its body replaced, as by a user's file.
fn handlers(name: &str, body: &str) -> Handlers {
    let mut sources = LOADED.sources.clone();
    let file = sources.add("test.pcode", format!("instruction {name} {{\n{body}\n}}\n"));
    let address = LOADED.pcode.iter().copied().filter(|f| sources.file(*f).name.contains("address"));
    let files: Vec<_> = address.chain([file]).collect();
    let (set, errors) = canonical::load_set(&sources, &files, &LOADED.tables[..1]);
    assert!(!set.operations.is_empty(), "{errors:?}");
    lower(&set.operations[0])
}

fn accesses(handlers: &Handlers) -> Vec<&Memory> {
    let Body::Lanes(lanes) = &handlers.general else { return Vec::new() };
    lanes
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Memory(access) => Some(access),
            _ => None,
        })
        .collect()
}

#[test]
fn a_whole_register_is_a_copy() {
    let load = handlers("GLOBAL_LOAD_B32", "VDATA.u32 = MEM[ADDR].u32;");
    assert!(matches!(load.fast, Fast::Block(Block::Global { store: false, dwords: 1, .. })), "{load}");
    let negated = handlers("GLOBAL_LOAD_B32", "VDATA.u32 = ~MEM[ADDR].u32;");
    assert_eq!(negated.fast, Fast::None);
    assert!(matches!(accesses(&negated)[..], [Memory { addresses: Addresses::Sum(_), .. }]), "{negated}");
}

#[test]
fn an_access_under_a_condition_stays_in_the_loop() {
    let load = handlers("GLOBAL_LOAD_B32", "a = ADDR; if a != 0LL then VDATA.u32 = MEM[a].u32; endif;");
    assert!(accesses(&load).is_empty(), "{load}");
    let Body::Lanes(lanes) = &load.general else { panic!("{load}") };
    assert!(
        lanes.steps.iter().any(|s| matches!(s, Step::Loop(LaneLoop { active_only: true, .. }))),
        "{load}"
    );
}

#[test]
fn an_address_with_other_uses_is_not_a_sum() {
    let load = handlers("GLOBAL_LOAD_B32", "a = ADDR; VDATA.u32 = MEM[a].u32 + a.u32;");
    assert!(matches!(accesses(&load)[..], [Memory { addresses: Addresses::Computed(_), .. }]), "{load}");
}

/// Returns the block copy of a body, as printed.
fn block(name: &str, body: &str) -> Option<String> {
    let handlers = handlers(name, body);
    matches!(handlers.fast, Fast::Block(_)).then(|| {
        let text = handlers.to_string();
        let lines = text.lines().skip_while(|line| !line.contains("a copy")).skip(1);
        lines.take_while(|line| !line.contains("general")).map(str::trim).collect::<Vec<_>>().join("; ")
    })
}

/// Blocks are whole registers of unmodified values, in the order of their addresses.
#[test]
fn blocks_are_copies_of_whole_registers() {
    let at = "saddr + u64.sign_extend32(field.offset) + vaddr of each lane";
    let global = |name: &str, body: &str| {
        let text = block(name, body)?;
        Some(text.strip_suffix(&format!(" Global[{at}]"))?.rsplit_once("; ")?.1.to_owned())
    };
    assert_eq!(global("GLOBAL_LOAD_B96", "VDATA.b96 = MEM[ADDR].b96;").as_deref(), Some("load 3 dwords"));
    assert_eq!(global("GLOBAL_STORE_B64", "MEM[ADDR].b64 = DATA.b64;").as_deref(), Some("store 2 dwords"));
    for (name, body) in [
        ("GLOBAL_LOAD_B64", "VDATA.u64 = 64'U(32'U(MEM[ADDR].u64));"),
        ("GLOBAL_LOAD_B64", "VDATA.u64 = MEM[ADDR].u64 & 0x7fffffffffffffffULL;"),
        ("GLOBAL_LOAD_B64", "VDATA.u64 = 64'U(MEM[ADDR].u32);"),
        ("GLOBAL_LOAD_U16", "VDATA.u16 = MEM[ADDR].u16;"),
        ("GLOBAL_LOAD_B32", "x = MEM[ADDR].u32; VDATA.u32 = x + 1U;"),
        ("GLOBAL_STORE_B32", "MEM[ADDR].u32 = ~DATA.u32;"),
        ("GLOBAL_STORE_B32", "MEM[ADDR].u32 = VADDR.u32;"),
        ("GLOBAL_STORE_B64", "MEM[ADDR].b64 = 64'U(DATA.u64.u32);"),
    ] {
        assert_eq!(block(name, body), None, "{name}: {body}");
    }
    let lds = |name: &str, body: &str| block(name, body).unwrap_or_default();
    assert_eq!(lds("DS_LOAD_B32", "VDATA.u32 = MEM[ADDR].u32;"), "load 1 dwords Lds[vaddr + field.offset]");
    assert_eq!(lds("DS_STORE_B64", "MEM[ADDR].u64 = DATA.u64;"), "store 2 dwords Lds[vaddr + field.offset]");
    assert_eq!(
        lds("DS_LOAD_B32", "VDATA.u32 = MEM[64'U(VADDR.u32 + 8U)].u32;"),
        "load 1 dwords Lds[vaddr + 8]"
    );
    for (name, body) in [
        ("DS_LOAD_B32", "VDATA.u32 = MEM[64'U(VADDR.u32 + laneId)].u32;"),
        ("DS_LOAD_B32", "VDATA.u32 = MEM[64'U(VADDR.u32) + 8ULL].u32;"),
        ("DS_LOAD_B32", "VDATA.u32 = MEM[64'U(VADDR.u32 - 8U)].u32;"),
        ("DS_STORE_B32", "x = DATA.u32 + 1U; MEM[ADDR].u32 = x;"),
        ("DS_STORE_B32", "x = DATA.u32 + 1U; y = x; MEM[ADDR].u32 = DATA.u32 + y - y;"),
    ] {
        assert_eq!(block(name, body), None, "{name}: {body}");
    }
    const PAIR: &str = "x = MEM[64'U(VADDR.u32 + 8U)].u32; y = MEM[64'U(VADDR.u32 + 4U)].u32;";
    let pair = |result: &str| block("DS_LOAD_2ADDR_B32", &format!("{PAIR} VDATA.u64 = {result};"));
    assert_eq!(
        pair("{ y, x }").as_deref(),
        Some("load 1 dwords Lds[vaddr + 8]; load 1 dwords Lds[vaddr + 4]")
    );
    for result in ["{ x, y }", "{ y, y }", "{ y, x + 1U }", "{ y, x[15 : 0], x[31 : 16] }", "64'U(y)"] {
        assert_eq!(pair(result), None, "{result}");
    }
    for body in [
        "x = MEM[64'U(VADDR.u32)].u32; y = MEM[64'U(DATA.u32)].u32; VDATA.u64 = { y, x };",
        "x = MEM[64'U(VADDR.u32 + 8U)].u32 + 1U; y = MEM[64'U(VADDR.u32 + 4U)].u32; VDATA.u64 = { y, x };",
        "x = MEM[64'U(VADDR.u32 + 8U)].u32; y = 1U; VDATA.u64 = { y, x };",
        "x = MEM[64'U(VADDR.u32 + 8U)].u32; y = MEM[64'U(VADDR.u32 + 4U)].u16.u32; VDATA.u64 = { y, x };",
        "x = MEM[64'U(VADDR.u32 + 8U)].u32; y = MEM[64'U(VADDR.u32 + 4U)].u32; z = x; VDATA.u64 = { y, z };",
    ] {
        assert_eq!(block("DS_LOAD_2ADDR_B32", body), None, "{body}");
    }
}

#[test]
fn two_stores_stay_in_order_of_lanes() {
    let store = handlers("GLOBAL_STORE_B32", "MEM[ADDR].u32 = DATA.u32; MEM[ADDR + 4].u32 = DATA.u32;");
    assert!(accesses(&store).is_empty(), "{store}");
}

#[test]
fn byte_permutes_of_one_statement_are_hoisted() {
    let one = handlers("V_PERM_B32", "D0.u32 = select_bytes(S0.u32, S1.u32, S2.u32);");
    let Fast::Lanes(lanes) = &one.fast else { panic!("{one}") };
    assert!(lanes.steps.iter().any(|s| matches!(s, Step::Simd { calls, .. } if calls.len() == 1)), "{one}");
    let nested = handlers(
        "V_PERM_B32",
        "D0.u32 = select_bytes(select_bytes(S0.u32, S1.u32, S2.u32), S1.u32, S2.u32);",
    );
    let Fast::Lanes(lanes) = &nested.fast else { panic!("{nested}") };
    assert!(!lanes.steps.iter().any(|s| matches!(s, Step::Simd { .. })), "{nested}");
}

#[test]
fn only_f32_arithmetic_is_flushing() {
    let direct = |body| handlers("V_FMA_F32", body).flushing.map(|f| f.direct);
    assert_eq!(direct("D0.f32 = fma(S0.f32, S1.f32, S2.f32);"), Some(true));
    assert_eq!(direct("D0.f32 = S0.f32 * S1.f32 + S2.f32;"), Some(false));
    assert_eq!(direct("D0.f32 = abs(S0.f32) + S1.f32;"), None);
}

/// Returns the lane loop of the fast handler.
fn fast_body(body: &str) -> Vec<Stmt> {
    let handlers = handlers("V_LSHRREV_B64", body);
    let Fast::Lanes(lanes) = &handlers.fast else { panic!("{handlers}") };
    let main = lanes.steps.iter().find_map(|step| match step {
        Step::Loop(main) => Some(main.body.clone()),
        _ => None,
    });
    main.unwrap_or_else(|| panic!("{handlers}"))
}

/// A dword selected by the instruction is read from a lane vector; selections by lanes, and parts of dwords,
/// stay in the loop.
#[test]
fn uniform_dword_selection_is_hoisted() {
    let chosen = |choice: &str| {
        let body = fast_body(&format!("D0.u64 = 64'U({choice});"));
        visit::any_value(&body, &|v| matches!(v.kind, ValueKind::StagedDword { .. }))
    };
    assert!(chosen("OPSEL[0] ? (S1.u64 >> 32U).u32 : S1.u32"));
    assert!(chosen("OPSEL[0] ? S1.u32 : (S1.u64 >> 32U).u32"));
    assert!(!chosen("laneId > 3U ? (S1.u64 >> 32U).u32 : S1.u32"));
    assert!(!chosen("OPSEL[0] ? (S1.u64 >> 31U).u32 : S1.u32"));
    assert!(!chosen("OPSEL[0] ? (S1.u64 >> 32U).u32 : S0.u32"));
}

/// A sign change by the instruction is uniform.
#[test]
fn uniform_sign_changes_are_hoisted() {
    let changed = |value: &str| {
        let mut found = Vec::new();
        visit::each_value(&fast_body(&format!("D0.u64 = 64'U({value});")), &mut |v| {
            if let ValueKind::SourceBit { field, source } = v.kind {
                found.push((field, source));
            }
        });
        found
    };
    assert_eq!(changed("NEG[1] ? S0.u32 ^ 0x80000000U : S0.u32"), [("NEG", 1)]);
    assert_eq!(changed("NEG_HI[0] ? S0.u32 ^ 0x80000000U : S0.u32"), [("NEG_HI", 0)]);
    assert_eq!(changed("NEG[0] ? S0.u32 ^ 0x8000U : S0.u32"), []);
    assert_eq!(changed("NEG[0] ? S0.u32 : S0.u32 ^ 0x80000000U"), []);
    assert_eq!(changed("NEG == 3U ? S0.u32 ^ 0x80000000U : S0.u32"), []);
}

#[test]
fn functions_of_all_lanes_are_called_before_the_loop() {
    let sine = handlers("V_SIN_F32", "D0.f32 = sin_turns(S0.f32);");
    let Fast::Lanes(fast) = &sine.fast else { panic!("{sine}") };
    let Body::Lanes(general) = &sine.general else { panic!("{sine}") };
    for lanes in [fast, general] {
        assert!(
            lanes.steps.iter().any(|s| matches!(s, Step::Simd { calls, .. } if calls.len() == 1)),
            "{sine}"
        );
    }
    let chosen =
        handlers("V_SIN_F32", "if S0.f32 > 0.0F then D0.f32 = sin_turns(S0.f32); else D0.f32 = 0.0F; endif;");
    let Body::Lanes(general) = &chosen.general else { panic!("{chosen}") };
    assert!(!general.steps.iter().any(|s| matches!(s, Step::Simd { .. })), "{chosen}");
}

/// Only bits that may be set are cleared.
#[test]
fn values_are_masked_to_their_width() {
    let masks = |mask: &str| {
        let body = fast_body(&format!("D0.u32 = 32'U(16'U(S0.u32 & {mask})) + 1U;"));
        let mut count = 0;
        visit::each_value(&body, &mut |v| count += matches!(v.kind, ValueKind::Op2(Op2::And, ..)) as u32);
        count
    };
    assert_eq!((masks("0xffU"), masks("0xffffU")), (1, 1));
    assert_eq!((masks("0x1ffffU"), masks("0x10000U"), masks("0xffffffffU")), (2, 2, 2));
}

/// Returns the vector statements of a body that runs once per wave.
fn vectors(body: &str) -> Vec<Vector> {
    let handlers = handlers("V_SWAP_B32", body);
    let Body::Once(once) = &handlers.general else { panic!("{handlers}") };
    let mut found = Vec::new();
    visit::each_stmt(&once.body, &mut |s| {
        if let Stmt::Vector(vector) = s {
            found.push((**vector).clone());
        }
    });
    found
}

#[test]
fn loops_over_consecutive_elements_are_vectors() {
    let of = |statement: &str| {
        let declared = "declare a : 32'U[64]; declare b : 32'U[64]; k = SRC0.u32; a[63] = k; b[63] = k;";
        vectors(&format!("{declared} for n in 0 : 15 do {statement} endfor; VGPR[0U][VDST] = a[0] + b[0];"))
    };
    let sum = of("a[k * 16U + 32'U(n)] = a[k * 16U + 32'U(n)] + b[32'U(n)] * k;");
    assert!(matches!(&sum[..], [Vector { count: 16, lanes: false, from: 0, .. }]), "{sum:?}");
    // Locals of an iteration.
    assert_eq!(of("x = b[n]; y = x + 1U; a[n] = y;").len(), 1);
    assert_eq!(of("VGPR[n][VDST] = b[n];").len(), 1);
    assert_eq!(of("if b[n] > 5U then a[n] = 1U; endif;").len(), 1);
    // Elements that are not consecutive, or written by another iteration or earlier in this one.
    assert!(of("a[n * 2] = b[n];").is_empty());
    assert!(of("a[n + 1] = a[n];").is_empty());
    assert!(of("a[n] = b[n]; b[n] = a[n];").is_empty());
    assert!(of("VGPR[n][VDST] = VGPR[n + 1][VDST];").is_empty());
    assert!(of("VGPR[n][VDST] = b[n]; VGPR[n + 16][VDST] = b[n];").is_empty());
    // Two registers of the same lane.
    assert_eq!(of("x = VGPR[n][VDST]; VGPR[n][VDST] = VGPR[n][SRC0.u32]; VGPR[n][SRC0.u32] = x;").len(), 1);
    assert!(of("x = b[n]; if x > 5U then x = 1U; endif; a[n] = x;").is_empty());
    // A reduction over all iterations.
    assert!(of("k = k + b[n]; a[n] = k;").is_empty());
    // The last value is read after the loop.
    assert!(of("k = b[n]; a[n] = k; endfor; for n in 0 : 3 do a[n] = k;").is_empty());
}

#[test]
fn loops_over_all_lanes_are_vectors_of_each_half() {
    let found = vectors(
        "declare r : 32'U[64];
         for lane in 0 : WAVE_SIZE - 1 do
           if EXEC.u64[lane] then
             from = VGPR[lane][SRC0.u32].u32 & 63U;
             r[lane] = from;
           endif
         endfor;
         for lane in 0 : WAVE_SIZE - 1 do
           if EXEC.u64[lane] then
             VGPR[lane][VDST] = r[lane];
           endif
         endfor",
    );
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|v| v.lanes && v.count == 32 && v.writes[0].when.is_some()));
}

/// In every operation, loops do not repeat the work of steps, and code that runs for inactive lanes has no
/// side effects.
#[test]
fn every_operation_is_consistent() {
    let mut with_steps = 0;
    for op in &SET.operations {
        let handlers = lower(op);
        let fast = match &handlers.fast {
            Fast::Lanes(lanes) => Some(lanes),
            _ => None,
        };
        let general = match &handlers.general {
            Body::Lanes(lanes) => Some(lanes),
            Body::Once(_) => None,
        };
        with_steps += !accesses(&handlers).is_empty() as u32;
        for lanes in fast.into_iter().chain(general) {
            for step in &lanes.steps {
                let Step::Loop(lanes) = step else { continue };
                let effect = visit::any_stmt(&lanes.body, &|s| {
                    matches!(
                        s,
                        Stmt::Store { .. }
                            | Stmt::Exchange { .. }
                            | Stmt::SetVgpr { .. }
                            | Stmt::SetSgpr { .. }
                            | Stmt::SetState(..)
                            | Stmt::Control { .. }
                    )
                });
                let load = visit::any_value(&lanes.body, &|v| {
                    matches!(v.kind, ValueKind::Load { .. } | ValueKind::Control { .. })
                });
                assert!(lanes.active_only || !(effect || load), "{handlers}");
                assert_eq!(
                    lanes.retries,
                    visit::any_stmt(&lanes.body, &|s| matches!(s, Stmt::Exchange { .. }))
                );
                assert_eq!(lanes.leaves, visit::any_stmt(&lanes.body, &|s| matches!(s, Stmt::Leave)));
            }
        }
        assert!(!handlers.to_string().is_empty());
    }
    assert!(with_steps > 100, "{with_steps}");
}

/// The accesses of the largest bodies are exact to the register, which takes an abstract interpretation of
/// some million steps: a lane has as many registers of a matrix as its format requires.
#[test]
fn effects_of_the_largest_bodies_are_exact() {
    use isa_spec::facts::{Access, Condition, EncodedValue, Facts, Resource};
    let mut found = 0;
    for op in SET.operations.iter().filter(|op| op.name.ends_with("_F8F6F4")) {
        let facts = Facts::of(&op.sem, 64);
        let is_exact = |t: &Access| t.always && !matches!(t.resource, Resource::AnyVgpr | Resource::AnySgpr);
        assert!(facts.registers.iter().all(is_exact), "{}: {:?}", op.name, facts.registers);
        let formats: Vec<(u32, u32)> = facts
            .registers
            .iter()
            .filter_map(|t| match (t.resource, &t.conditions[..]) {
                (
                    Resource::Dwords { role: Role::S0, first: 4, count },
                    [
                        Condition {
                            value: EncodedValue::Field("CBSZ"),
                            shift: 0,
                            mask: 6,
                            equals,
                            negated: false,
                        },
                    ],
                ) => Some((*equals, 4 + count)),
                _ => None,
            })
            .collect();
        assert_eq!(formats, [(2, 6), (0, 8)], "{}", op.name);
        found += 1;
    }
    assert_eq!(found, 4);
}

/// Matrix instructions become products: dense and sparse, of floats and of integers with 64-bit accumulators.
#[test]
fn matrix_instructions_are_products() {
    let products = |name: &str| -> Vec<(ElementType, bool)> {
        let mut found = Vec::new();
        for op in SET.operations.iter().filter(|op| op.name == name) {
            let Body::Once(once) = lower(op).general else { panic!("{name}") };
            let before = found.len();
            visit::each_stmt(&once.body, &mut |s| {
                if let Stmt::Product(product) = s {
                    found.push((product.element, product.sparse_rows.is_some()));
                }
            });
            assert!(found.len() > before, "{name}: {op:?}");
        }
        found
    };
    let (floats, nearest, integers) = (ElementType::F32, ElementType::F32Nearest, ElementType::Integer);
    assert_eq!(products("V_WMMA_F32_16X16X16_F16"), [(floats, false); 2]);
    assert_eq!(products("V_WMMA_I32_16X16X16_IU8"), [(integers, false); 2]);
    assert_eq!(products("V_WMMA_I32_16X16X16_IU4"), [(integers, false); 2]);
    assert_eq!(products("V_SWMMAC_F32_16X16X32_F16"), [(floats, true)]);
    assert_eq!(products("V_SWMMAC_BF16_16X16X32_BF16"), [(floats, true)]);
    assert_eq!(products("V_SWMMAC_I32_16X16X64_IU4"), [(integers, true)]);
    assert_eq!(products("V_MFMA_I32_32X32X16_I8"), [(integers, false)]);
    assert_eq!(products("V_MFMA_F32_16X16X16_F16"), [(nearest, false)]);
    assert_eq!(products("V_MFMA_SCALE_F32_32X32X64_F8F6F4"), [(nearest, false)]);
    assert_eq!(products("V_SMFMAC_F32_32X32X16_F16"), [(nearest, true)]);
}

/// Lowers a body of two loops over lanes: the first computes an array of values, the second writes registers.
/// Returns the lane move for hosts with SIMD vectors, if there is one.
fn lane_move(values: &str, writes: &str) -> Option<MoveLanes> {
    let lanes =
        |body: &str| format!("for lane in 0 : WAVE_SIZE - 1 do if EXEC.u64[lane] then {body} endif endfor");
    let body = format!("declare result : 32'B[64];\n{};\n{}", lanes(values), lanes(writes));
    let Body::Once(once) = handlers("DS_BPERMUTE_B32", &body).general else { panic!("{body}") };
    match &once.with_vectors?[..] {
        [Stmt::MoveLanes(moves)] => Some((**moves).clone()),
        _ => None,
    }
}

/// Bodies in which each lane takes the value of one other lane are lane moves; similar ones are not.
#[test]
fn values_of_other_lanes_are_moved() {
    const FROM: &str = "from = (operandLane(VADDR, lane, 0).u32 >> 2U) & (WAVE_SIZE - 1U);";
    const WRITE: &str = "VGPR[lane][VDST] = result[lane];";
    let constants = |moves: Option<MoveLanes>| match moves?.direction {
        MoveDirection::Pull { fetch, bound } => {
            Some([fetch, bound].map(|value| value.kind == ValueKind::Const(1)))
        }
        MoveDirection::Push => None,
    };
    let taken =
        |value: &str, write: &str| constants(lane_move(&format!("{FROM} result[lane] = {value};"), write));
    let active = "EXEC.u64[from] ? operandLane(DATA0, from, 0).u32 : 0U";
    assert_eq!(taken("operandLane(DATA0, from, 0)", WRITE), Some([true, true]));
    assert_eq!(taken(active, WRITE), Some([false, true]));
    // A lane whose source is inactive keeps its value.
    let again = format!("{FROM} if EXEC.u64[from] then {WRITE} endif;");
    assert_eq!(taken(active, &again), Some([false, false]));
    // The EXEC bit of the wrong lane, a default other than zero, a sum, the operand's second dword.
    for value in [
        "EXEC.u64[lane] ? operandLane(DATA0, from, 0).u32 : 0U",
        "EXEC.u64[from] ? operandLane(DATA0, from, 0).u32 : 1U",
        "operandLane(DATA0, from, 0).u32 + 1U",
        "operandLane(DATA0, from, 1)",
    ] {
        assert_eq!(taken(value, WRITE), None, "{value}");
    }
    assert_eq!(taken(active, "VGPR[lane][VDST] = result[lane ^ 1];"), None);
    assert_eq!(taken(active, "VGPR[lane ^ 1][VDST] = result[lane];"), None);
    assert_eq!(taken(active, "if result[lane].u32 != 0U then VGPR[lane][VDST] = result[lane]; endif;"), None);
}
