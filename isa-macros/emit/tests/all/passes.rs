//! Tests of the passes, on single bodies and on every operation.

use crate::{LOADED, SET, shared_functions};
use isa_lower::ir::*;
use isa_lower::lower::operands::{slot, source};
use isa_lower::{lower, lower_compactly, visit};
use isa_spec::canonical;
use isa_spec::data::ALL;
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;

/// Returns the handlers of an RDNA 3 instruction with its body replaced, as by a user's file.
pub fn handlers(name: &str, body: &str) -> Handlers {
    handlers_of("rdna3", name, body)
}

/// [`handlers`], for an architecture.
fn handlers_of(arch: &str, name: &str, body: &str) -> Handlers {
    let mut sources = LOADED.sources.clone();
    let file = sources.add("test.pcode", format!("instruction {name} {{\n{body}\n}}\n"));
    let files: Vec<_> = shared_functions().chain([file]).collect();
    let at = ALL.iter().position(|(name, _)| *name == arch).expect("an architecture");
    let (set, errors) = canonical::load_set(&sources, &files, &LOADED.tables[at..=at]);
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

/// A conditional store to LDS may follow loads from elsewhere, which are then of all lanes. It is the last access.
#[test]
fn loads_before_conditional_stores_to_lds_are_of_all_lanes() {
    const LOAD: &str = "x = MEM[buffer_address(0U, 4U)].u32;";
    const STORE: &str = "if TO_LDS then LDS[4ULL].u32 = x; else VDATA.u32 = x; endif;";
    let body = |body: &str| handlers("BUFFER_LOAD_B32", body);
    let loads = body(&format!("{LOAD} {STORE}"));
    assert!(matches!(accesses(&loads)[..], [Memory { store: false, space: Space::Buffer, .. }]), "{loads}");
    let Body::Lanes(lanes) = &loads.general else { panic!("{loads}") };
    let stores = |s: &Step| matches!(s, Step::Loop(LaneLoop { active_only: true, .. }));
    assert!(lanes.steps.iter().any(stores), "{loads}");
    for other in [
        format!("{STORE} {LOAD}").replace("= x;", "= 1U;"),
        format!("{LOAD} {STORE} {STORE} VDATA.u32 = MEM[buffer_address(4U, 4U)].u32;"),
        format!("{LOAD} if TO_LDS then MEM[buffer_address(0U, 4U)].u32 = 1U; endif; VDATA.u32 = x;"),
        format!("x = LDS[0ULL].u32; {STORE}"),
        STORE.replace("= x;", "= 1U;"),
    ] {
        let handlers = body(&other);
        assert!(accesses(&handlers).is_empty(), "{other}: {handlers}");
    }
}

/// Only a body that stores to memory that it may have loaded from is an atomic operation.
#[test]
fn updates_of_the_same_memory_are_atomic() {
    let retries = |name: &str, body: &str| {
        let handlers = handlers(name, body);
        let Body::Lanes(lanes) = &handlers.general else { panic!("{handlers}") };
        let retries = |s: &Step| matches!(s, Step::Loop(LaneLoop { retries: true, .. }));
        lanes.steps.iter().any(retries)
    };
    let global = |body: &str| retries("GLOBAL_LOAD_B32", body);
    assert!(global("x = MEM[ADDR].u32; MEM[ADDR].u32 = x + 1U; VDATA.u32 = x;"));
    assert!(global("x = MEM[ADDR].u32; MEM[ADDR].u32[15 : 0].u16 = x.u16; VDATA.u32 = x;"));
    assert!(global("x = MEM[ADDR].u32; { MEM[ADDR].u32, VDATA.u32 } = { 1U, x };"));
    // The rest of the dword is preserved.
    assert!(global("MEM[ADDR].u32[15 : 0].u16 = 16'1U; VDATA.u32 = 0U;"));
    assert!(!global("x = MEM[ADDR].u32; LDS[0ULL].u32 = x; VDATA.u32 = x;"));
    assert!(!global("MEM[ADDR].u32 = 1U; VDATA.u32 = 0U;"));
    // A flat address may be in LDS.
    assert!(retries("FLAT_LOAD_B32", "x = MEM[ADDR].u32; LDS[0ULL].u32 = x; VDATA.u32 = x;"));
}

/// Returns the steps of the accesses: how each computes its addresses.
fn addresses(name: &str, body: &str) -> Vec<&'static str> {
    let handlers = handlers(name, body);
    let kind = |access: &&Memory| match access.addresses {
        Addresses::Sum(_) => "sum",
        Addresses::Set => "set",
        Addresses::Computed(_) => "computed",
    };
    accesses(&handlers).iter().map(kind).collect()
}

/// The address of the only access is a uniform value plus 32 bits of each lane, and has no other use.
#[test]
fn addresses_are_sums() {
    const SUM: &str = "a = SADDR.u64 + 64'U(VADDR.u32) + 64'U(OFFSET.u32);";
    let load = |body: &str| addresses("GLOBAL_LOAD_B32", body);
    assert_eq!(load(&format!("{SUM} VDATA.u32 = MEM[a].u32 + 1U;")), ["sum"]);
    assert_eq!(load("a = 64'U(VADDR.u32); VDATA.u32 = MEM[a].u32;"), ["sum"]);
    for body in [
        // The address or its scalar part has another use.
        "VDATA.u32 = MEM[a].u32 + a.u32;",
        "VDATA.u32 = MEM[a].u32 + SADDR.u64.u32;",
        "VDATA.u32 = MEM[a].u32 + SADDR.u64.u32 * SADDR.u64.u32;",
        "VDATA.u32 = MEM[a + 4ULL].u32;",
        "b = 1U; VDATA.u32 = MEM[a].u32 + b;",
    ] {
        assert_eq!(load(&format!("{SUM} {body}")), ["computed"], "{body}");
    }
    for address in [
        // No part of a lane, 64 bits of it, or two.
        "SADDR.u64",
        "VADDR.u64",
        "SADDR.u64 + VADDR.u64",
        "64'U(VADDR.u32) + 64'U(VADDR.u32)",
        "SADDR.u64 - 64'U(VADDR.u32)",
        "SADDR.u64 + 64'U(laneId)",
        "SADDR.u64 + 64'U(VADDR.u32 + 1U)",
    ] {
        assert_eq!(load(&format!("a = {address}; VDATA.u32 = MEM[a].u32;")), ["computed"], "{address}");
    }
    let store =
        |address: &str| addresses("GLOBAL_STORE_B128", &format!("a = {address}; MEM[a].b128 = DATA.b128;"));
    assert_eq!(store("SADDR.u64 + 64'U(VADDR.u32)"), ["sum"]);
    assert_eq!(store("SADDR.u64 + 64'U(VADDR.u32) + 64'U(DATA.u32)"), ["set"]);
    assert_eq!(store("SADDR.u64 + DATA.u128.u64"), ["set"]);
}

/// A field of the instruction may multiply the lanes' part.
#[test]
fn sums_may_be_scaled() {
    let scale = |factor: &str| {
        let body = format!(
            "a = indexOf(SADDR) == 0x7cU ? VADDR.u64 : SADDR.u64 + {factor}; VDATA.b64 = MEM[a].b64;"
        );
        let handlers = handlers_of("cdna5", "GLOBAL_LOAD_B64", &body);
        let of_sum = match &accesses(&handlers)[..] {
            [Memory { addresses: Addresses::Sum(sum), .. }] => sum.scale,
            _ => return None,
        };
        match handlers.fast {
            Fast::Block(Block::Global { scale, address64: Some(_), .. }) => assert_eq!(scale, of_sum),
            other => panic!("{other:?}"),
        }
        Some(of_sum)
    };
    let by = |factor| Some(Some(Scale { field: "SCALE_OFFSET", factor }));
    assert_eq!(scale("64'U(VADDR.u32) * 64'U(SCALE_OFFSET ? 8U : 1U)"), by(8));
    assert_eq!(scale("64'U(VADDR.u32) * 64'U(SCALE_OFFSET ? 12U : 1U)"), by(12));
    assert_eq!(scale("64'U(VADDR.u32) * 64'U(SCALE_OFFSET ? 1U : 1U)"), Some(None));
    for factor in [
        "64'U(VADDR.u32) * 64'U(SCALE_OFFSET ? 8U : 2U)",
        "64'U(VADDR.u32) * 64'U(SCALE_OFFSET ? 0U : 1U)",
        "64'U(VADDR.u32) * 64'U(SCALE_OFFSET ? laneId : 1U)",
        "64'U(VADDR.u32 * (SCALE_OFFSET ? 8U : 1U))",
        "64'U(VADDR.u32) * 64'U(SCALE_OFFSET ? 8U : 1U) * 64'U(SCALE_OFFSET ? 8U : 1U)",
        "64'U(VADDR.u32) * 8ULL",
    ] {
        assert_eq!(scale(factor), None, "{factor}");
    }
    let whole = handlers_of("cdna5", "GLOBAL_STORE_B64", "MEM[ADDR].b64 = DATA.b64;");
    assert!(whole.to_string().contains("vaddr of each lane * 8 if field.scale_offset"), "{whole}");
}

/// Without a scalar base, an address may have 64 bits of the same operand.
#[test]
fn wide_addresses_are_of_the_same_operand() {
    let address64 = |other: &str| {
        let body = format!(
            "a = indexOf(SADDR) == 0x7cU ? {other} : SADDR.u64 + 64'U(VADDR.u32); MEM[a].b64 = DATA.b64;"
        );
        match handlers("GLOBAL_STORE_B64", &body).fast {
            Fast::Block(Block::Global { unless: Some(_), address64, .. }) => address64.map(|base| base.len()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(address64("VADDR.u64"), Some(0));
    assert_eq!(address64("VADDR.u64 + 64'U(OFFSET.u32)"), Some(1));
    assert_eq!(address64("DATA.u64"), None);
    assert_eq!(address64("VADDR.u64 + VADDR.u64"), None);
    assert_eq!(address64("64'U(OFFSET.u32)"), None);
    assert_eq!(address64("VADDR.u64 - 4ULL"), None);
}

/// Each access is performed once by each lane, outside of branches and selections.
#[test]
fn conditional_accesses_stay_in_the_loop() {
    let load = |body: &str| addresses("GLOBAL_LOAD_B32", body).len();
    assert_eq!(load("x = MEM[ADDR].u32; if x > 5U then x = 1U; endif; VDATA.u32 = x;"), 1);
    assert_eq!(load("x = MEM[ADDR].u32; y = MEM[ADDR + 4].u32; VDATA.u32 = x + y;"), 2);
    for body in [
        "if laneId > 5U then VDATA.u32 = MEM[ADDR].u32; endif;",
        "VDATA.u32 = laneId > 5U ? MEM[ADDR].u32 : 0U;",
        "VDATA.u32 = 32'U(laneId > 5U && MEM[ADDR].u32 > 0U);",
        "x = MEM[ADDR].u32; VDATA.u32 = x > 3U ? MEM[ADDR + 4].u32 : x;",
        // Their order within a statement would not be that of the lanes.
        "VDATA.u32 = MEM[ADDR].u32 + MEM[ADDR + 4].u32;",
        "VDATA.u32 = MEM[64'U(MEM[ADDR].u32)].u32;",
        "for i in 0 : 3 do VDATA.u32 = MEM[ADDR].u32; endfor;",
    ] {
        assert_eq!(load(body), 0, "{body}");
    }
    let store = |body: &str| addresses("GLOBAL_STORE_B32", body).len();
    assert_eq!(store("MEM[ADDR].u32 = DATA.u32 + 1U;"), 1);
    assert_eq!(store("x = DATA.u32; if x > 5U then x = 1U; endif; MEM[ADDR].u32 = x;"), 1);
    assert_eq!(store("if laneId > 5U then MEM[ADDR].u32 = DATA.u32; endif;"), 0);
    let two = "if laneId > 5U then MEM[ADDR].u32 = DATA.u32; endif; MEM[ADDR + 4].u32 = DATA.u32;";
    assert_eq!(store(two), 0);
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
        "x = MEM[64'U(VADDR.u32 + 8U)].u32; y = MEM[64'U(VADDR.u32 + 4U)].u32; z = 1U; VDATA.u64 = { y, x };",
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
    for body in [
        // Two nested calls.
        "D0.u32 = select_bytes(select_bytes(S0.u32, S1.u32, 1U), select_bytes(S1.u32, S0.u32, 2U), S2.u32);",
        // The result's old value, once and twice.
        "D0.u32 = select_bytes(S0.u32, S1.u32, D0.u32);",
        "D0.u32 = select_bytes(D0.u32, S1.u32, D0.u32);",
        // Statements other than assignments of locals ahead of the call, and calls in two statements.
        "D0.u16 = S0.u16; D0.u32 = select_bytes(S0.u32, S1.u32, S2.u32);",
        "x = select_bytes(S0.u32, S1.u32, S2.u32); D0.u32 = select_bytes(S0.u32, S1.u32, x);",
        "x = select_bytes(S0.u32, S1.u32, S2.u32); if x > 3U then D0.u32 = 1U; else D0.u32 = x; endif;",
    ] {
        let handlers = handlers("V_PERM_B32", body);
        let Fast::Lanes(lanes) = &handlers.fast else { panic!("{handlers}") };
        assert!(!lanes.steps.iter().any(|s| matches!(s, Step::Simd { .. })), "{handlers}");
    }
}

/// Portable handlers compute in a mode without SIMD instructions, which the host may lack: in others, builtins use them.
#[test]
fn portable_handlers_use_no_simd_instructions() {
    for (name, body) in [
        ("V_PERM_B32", "D0.u32 = select_bytes(S0.u32, S1.u32, S2.u32);"),
        ("V_ADD_F32", "D0.f32 = S0.f32 + S1.f32;"),
    ] {
        let portable = isa_emit::emit(0, &handlers(name, body), isa_emit::Host::Any).to_string();
        assert!(
            portable.contains("let m = cx . general ;") && !portable.contains("let m = Keep"),
            "{portable}"
        );
    }
}

/// The fast handler serves modified operands too, unless the body reads clamp or operands by number.
#[test]
fn fast_handlers_replace_general_ones() {
    let replaces = |body: &str| handlers("V_PERM_B32", body).general_uses_fast;
    assert!(replaces("D0.u32 = S0.u32 + S1.u32;"));
    assert!(replaces("D0.u32 = select_bytes(S0.u32, S1.u32, S2.u32);"));
    for body in [
        "D0.u32 = S0.u32 + 32'U(CLAMP);",
        "D0.u32 = clamp_u32(64'U(S0.u32));",
        "D0.u32 = S1.u32 + indexOf(S0);",
        "D0.u32 = select_bytes(S0.u32, S1.u32, 32'U(CLAMP));",
        "x = S2.u32 + 32'U(CLAMP); D0.u32 = select_bytes(S0.u32, S1.u32, x);",
    ] {
        assert!(!replaces(body), "{body}");
    }
}

/// Scalar instructions on at most two registers have a handler for operands in the scalar file.
#[test]
fn scalar_instructions_have_fast_handlers() {
    let is_fast = |name: &str, body: &str| matches!(handlers(name, body).fast, Fast::Scalar(_));
    assert!(is_fast("S_MOV_B32", "D0.u32 = S0.u32;"));
    assert!(is_fast("S_MOV_B64", "D0.u64 = S0.u64;"));
    for body in [
        "VGPR[3U][0U] = 1U; D0.u64 = S0.u64;",
        "D0.u64 = sendmsg_rtn(S0.u32);",
        "nop(); D0.u64 = S0.u64;",
        "D0.u64 = LDS[64'U(S0.u32)].u64;",
        "LDS[0ULL].u64 = S0.u64;",
    ] {
        assert!(!is_fast("S_MOV_B64", body), "{body}");
    }
    assert!(!is_fast("S_LOAD_B32", "SDATA.u32 = MEM[ADDR].u32;"));
    assert!(!is_fast("S_LOAD_B32", "SDATA.u32 = 1U;"));
    assert!(!is_fast("S_NOP", "nop();"));
}

/// Handlers without lane vectors, floats or a fast variant are shared by all hosts.
#[test]
fn serial_handlers_are_shared() {
    let shared = |name: &str, body: &str| handlers(name, body).shared;
    assert!(shared(
        "GLOBAL_ATOMIC_ADD_U32",
        "x = MEM[ADDR].u32; MEM[ADDR].u32 = x + DATA.u32; RETURN_DATA.u32 = x;"
    ));
    assert!(shared("S_LOAD_B32", "SDATA.u32 = MEM[ADDR].u32;"));
    for (name, body) in [
        // Lane vectors, steps of all lanes, a fast handler; once per wave, and once without memory.
        ("V_ADD_NC_U32", "D0.u32 = S0.u32 + S1.u32;"),
        ("GLOBAL_LOAD_B32", "VDATA.u32 = ~MEM[ADDR].u32;"),
        ("S_MOV_B32", "D0.u32 = S0.u32;"),
        ("GLOBAL_LOAD_B32", "VGPR[0U][VDST] = MEM[64'U(operandLane(VADDR, 0, 0).u32)].u32;"),
        ("S_LOAD_B32", "SDATA.u32 = 1U;"),
        // f32, and a format with its own bits of MODE.
        ("GLOBAL_ATOMIC_ADD_F32", "x = MEM[ADDR].f32; MEM[ADDR].f32 = x + DATA.f32; RETURN_DATA.f32 = x;"),
        ("GLOBAL_ATOMIC_ADD_F32", "x = MEM[ADDR].f16; MEM[ADDR].f16 = x + DATA.f16; RETURN_DATA.f16 = x;"),
    ] {
        assert!(!shared(name, body), "{name}: {body}");
    }
    let floats = |body: &str| {
        let Floats { single, others } = handlers("V_ADD_F32", body).floats;
        (single, others)
    };
    assert_eq!(floats("D0.f32 = S0.f32 + S1.f32;"), (true, false));
    assert_eq!(floats("D0.f16 = S0.f16 + S1.f16;"), (false, true));
    assert_eq!(floats("D0.bf16 = S0.bf16 + S1.bf16;"), (true, true));
    assert_eq!(floats("D0.f32 = S0.f32;"), (false, false));
}

/// Registers of operands and results, and the output modifiers of whole registers.
#[test]
fn operands_and_results_have_registers() {
    let of = |name: &str, body: &str| {
        let handlers = handlers(name, body);
        (handlers.operands.sources(), handlers.result_dwords(), handlers.output())
    };
    let (f64, f32) = (Some(Output::F64), Some(Output::F32));
    assert_eq!(of("V_FMA_F64", "D0.f64 = fma(S0.f64, S1.f64, 64'F(S2.f32));"), ([2, 2, 1, 0], 2, f64));
    assert_eq!(of("V_ADD_F32", "D0.f32 = S0.f32 + S1.f32;"), ([1, 1, 0, 0], 1, f32));
    assert_eq!(of("V_ADD_F16", "D0.f16 = S0.f16 + S1.f16;"), ([1, 1, 0, 0], 1, None));
    assert_eq!(of("V_CMP_LT_F64", "D0.u64[laneId] = S0.f64 < S1.f64;"), ([2, 2, 0, 0], 0, None));
    assert_eq!(of("S_MOV_B64", "D0.u64 = S0.u64;"), ([2, 0, 0, 0], 2, None));
    // Of a part, only the registers up to its highest bit; of register numbers, none.
    assert_eq!(of("V_FMA_F64", "D0.u64 = 64'U(S0.u64[31 : 5] + S1.u64[40]);").0, [1, 2, 0, 0]);
    assert_eq!(of("V_FMA_F64", "D0.u64 = 64'U(S0.u64.u32) + S1.u64[S2.u32];").0, [1, 2, 1, 0]);
    assert_eq!(of("V_FMA_F64", "D0.u64 = 64'U(indexOf(S0)) + S1.u64;").0, [0, 2, 0, 0]);
    assert!(handlers("V_FMA_F64", "D0.u64 = 64'U(indexOf(S0));").operands.indexed.contains(&Role::S0));
    let wave = "VGPR[0U][VDST] = operandLane(S0, 3, 1) ^ operandLane(S1, 3, 0);";
    assert_eq!(of("V_FMA_F64", wave).0, [1, 1, 0, 0]);
    // The fifth source is stored elsewhere.
    assert_eq!(source(Role::S4), 4);
    assert_eq!((slot(Role::S4), slot(Role::S3)), (Slot::Fifth, Slot::Source(3)));
}

/// Of the educational ISA: addresses of words, and results of inactive lanes that remain in a mask.
#[test]
fn instructions_of_riscv_gpu() {
    let of = |name: &str| {
        let op = SET.operations.iter().find(|op| op.name == name).expect(name);
        lower(op).to_string()
    };
    assert!(of("LB").contains("= word_address("), "{}", of("LB"));
    assert!(of("SX_SLT").contains("gather d0, keeping inactive bits"), "{}", of("SX_SLT"));
}

/// Hosts without SIMD vectors access memory in the lane loop, and run no other code instead of loops.
#[test]
fn compact_handlers_have_no_steps_of_all_lanes() {
    let of = |name: &str| {
        let op = SET.operations.iter().find(|op| op.name == name).expect(name);
        (lower(op), lower_compactly(op))
    };
    let (load, compact) = of("GLOBAL_LOAD_B32");
    assert_eq!((accesses(&load).len(), accesses(&compact).len()), (1, 0));
    assert_eq!(compact.fast, Fast::None);
    let (add, compact) = of("V_ADD_F32");
    assert_eq!(add, compact);
    let (mov, compact) = of("DS_BPERMUTE_B32");
    let (Body::Once(mov), Body::Once(compact)) = (mov.general, compact.general) else { panic!() };
    assert!(mov.with_vectors.is_some() && compact.with_vectors.is_none());
    assert_eq!(mov.body, compact.body);
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
    fast_body_of("V_LSHRREV_B64", body)
}

fn fast_body_of(name: &str, body: &str) -> Vec<Stmt> {
    let handlers = handlers(name, body);
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
    let index = |choice: &str| {
        let mut found = None;
        visit::each_value(&fast_body(&format!("D0.u64 = 64'U({choice});")), &mut |v| {
            if let ValueKind::StagedDword { index, .. } = &v.kind {
                found = Some(index.to_string());
            }
        });
        found
    };
    let (high, low) = ("(S1.u64 >> 32U).u32", "S1.u32");
    let of = |condition: &str, yes: &str, no: &str| index(&format!("{condition} ? {yes} : {no}"));
    assert_eq!(of("OPSEL[0]", high, low).as_deref(), Some("field.opsel[0]"));
    assert_eq!(of("OPSEL_HI[1]", high, low).as_deref(), Some("field.opsel_hi[1]"));
    // Other uniform conditions, and the other order.
    let bit = "(((field.opsel & 0xf) >> 0) & 1)";
    assert_eq!(of("OPSEL[0]", low, high), Some(format!("({bit} ? 0 : 1)")));
    assert_eq!(of("OPSEL[0]", high, high), Some(format!("({bit} ? 1 : 1)")));
    assert_eq!(of("NEG[0]", high, low).as_deref(), Some("((((field.neg & 7) >> 0) & 1) ? 1 : 0)"));
    let shifted = "((((field.opsel & 0xf) >> 1) & 2) !=.u32 0)";
    assert_eq!(of("(OPSEL >> 1U) & 2U", high, low), Some(format!("({shifted} ? 1 : 0)")));
    assert_eq!(of("laneId > 3U", high, low), None);
    assert_eq!(of("OPSEL[0]", "(S1.u64 >> 31U).u32", low), None);
    assert_eq!(of("OPSEL[0]", high, "S0.u32"), None);
    assert_eq!(of("OPSEL[0]", high, "3U"), None);
}

/// Quarters of 128 bits are not dwords of a 64-bit operand.
#[test]
fn dwords_of_wider_operands_stay_in_the_loop() {
    for choice in [
        "D0.u32 = OPSEL[0] ? (S2.u128 >> 32U).u32 : S2.u128.u32;",
        "D0.u64 = OPSEL[0] ? (S2.u128 >> 32U).u64 : (S2.u128 >> 64U).u64;",
        "D0.u64 = S2.u128.u64 + (OPSEL[0] ? (S2.u128 >> 32U).u64 : S2.u128.u64);",
    ] {
        let body = fast_body_of("V_MQSAD_U32_U8", choice);
        let is_dword = |v: &Value| matches!(v.kind, ValueKind::StagedDword { .. });
        assert!(!visit::any_value(&body, &is_dword), "{choice}");
    }
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
    for condition in ["NEG == 3U", "OPSEL[0]", "NEG & 1U", "(NEG >> 1U) & 2U", "NEG.u8[3]", "laneId > 3U"] {
        assert_eq!(changed(&format!("({condition}) ? S0.u32 ^ 0x80000000U : S0.u32")), [], "{condition}");
    }
    assert_eq!(changed("NEG[0] ? S0.u32 ^ 0x8000U : S0.u32"), []);
    assert_eq!(changed("NEG[0] ? S0.u32 : S0.u32 ^ 0x80000000U"), []);
    assert_eq!(changed("NEG[0] ? S1.u32 ^ 0x80000000U : S0.u32"), []);
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

/// The number of set bits has a node of its own, printed as a call.
#[test]
fn set_bits_are_counted_by_a_node() {
    let body = fast_body("D0.u64 = 64'U(count_ones(S0.u32));");
    assert!(visit::any_value(&body, &|v| matches!(v.kind, ValueKind::Op1(Op1::CountOnes, _))));
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
    for op in SET.operations.iter().filter(|op| op.name.contains("_MFMA_") && op.name.ends_with("_F8F6F4")) {
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
