//! Tests of the passes `hoist` and `distribute`: what moves ahead of a loop, what stays, and how lane loops are divided.

use crate::SET;
use crate::passes::handlers;
use isa_lower::ir::*;
use isa_lower::lower;
use isa_lower::visit::{any_stmt, any_value, each_stmt, each_value};
use std::collections::BTreeSet;

const BODY: &str = include_str!("golden/bodies/divided.pcode");

/// The statements of the golden body.
fn body() -> &'static str {
    let (_, body) = BODY.split_once("instruction IMAGE_LOAD {\n").expect("the golden body");
    body.trim_end().strip_suffix('}').expect("its end")
}

/// Calls `f` for all steps at any depth.
fn each_step<'a>(steps: &'a [Step], f: &mut dyn FnMut(&'a Step)) {
    for step in steps {
        f(step);
        match step {
            Step::If { arms, otherwise } => {
                arms.iter().for_each(|(_, steps)| each_step(steps, f));
                each_step(otherwise, f);
            }
            Step::For { body, .. } => each_step(body, f),
            Step::Masked { steps, .. } => each_step(steps, f),
            _ => {}
        }
    }
}

fn lanes(handlers: &Handlers) -> &Lanes {
    match &handlers.general {
        Body::Lanes(lanes) => lanes,
        Body::Once(_) => panic!("{handlers}"),
    }
}

fn loops(steps: &[Step]) -> Vec<&LaneLoop> {
    let mut found = Vec::new();
    each_step(steps, &mut |step| match step {
        Step::Loop(lanes) => found.push(lanes),
        Step::Memory(Memory { addresses: Addresses::Computed(lanes), .. }) => found.push(lanes),
        _ => {}
    });
    found
}

fn has_control(lanes: &LaneLoop) -> bool {
    any_stmt(&lanes.body, &|stmt| matches!(stmt, Stmt::Control { .. }))
}

fn accesses(steps: &[Step]) -> usize {
    let mut count = 0;
    each_step(steps, &mut |step| count += matches!(step, Step::Memory(_)) as usize);
    count
}

/// A case that can end the handler is undivided; the other one accesses memory for all lanes.
#[test]
fn a_rare_case_has_an_undivided_copy() {
    let handlers = handlers("IMAGE_LOAD", body());
    let divided = lanes(&handlers).steps.iter().find_map(|step| match step {
        Step::If { arms, otherwise } => Some((arms, otherwise)),
        _ => None,
    });
    let Some(([(_, rare)], common)) = divided.map(|(arms, otherwise)| (&arms[..], otherwise)) else {
        panic!("{handlers}")
    };
    assert!(
        matches!(&rare[..], [Step::Loop(lanes)] if has_control(lanes) && lanes.active_only),
        "{handlers}"
    );
    assert!(!loops(common).into_iter().any(has_control), "{handlers}");
    assert_eq!(accesses(common), 1, "{handlers}");
    assert_eq!(accesses(rare), 0, "{handlers}");
}

#[test]
fn lanes_read_no_scalar_registers_and_fields() {
    let handlers = handlers("IMAGE_LOAD", body());
    for lanes in loops(&lanes(&handlers).steps) {
        let scalar = |value: &Value| matches!(value.kind, ValueKind::Sgpr { .. } | ValueKind::Field(_));
        assert!(!any_value(&lanes.body, &scalar), "{handlers}");
    }
}

/// The faults of lane 0 come before those of lane 1, and a lane's registers change after its accesses.
#[test]
fn several_accesses_of_a_lane_stay_together() {
    let second = "raw = raw | 128'U(MEM[address + 64ULL].u32); count = 0U;";
    let written = "VGPR[laneId][VDST] = 1U; raw = 128'U(MEM[address].u32);";
    let from = "raw = 128'U(MEM[address].u32);";
    for (body, moves) in [
        (body().replace("count = 0U;", second), true),
        (body().replace(from, written), true),
        // The call may end the handler in any lane, so that nothing moves in front of it.
        (body().replace("kind != 9U", "y != 9U"), false),
    ] {
        assert_ne!(body, self::body());
        let handlers = handlers("IMAGE_LOAD", &body);
        let all = loops(&lanes(&handlers).steps);
        assert_eq!(all.len(), 1, "{handlers}");
        assert_eq!(!all[0].outer.same.is_empty(), moves, "{handlers}");
    }
}

/// What runs only under a condition keeps it, also if a later condition differs between lanes.
#[test]
fn moved_statements_keep_their_conditions() {
    let handlers = handlers(
        "IMAGE_LOAD",
        &body().replace(
            "count = 0U;",
            "count = 0U; n = 0U; if kind == 3U then k = tile_block(0U, width * pitch); n = k + x; \
             elsif x == 7U then n = format_block(pitch - width); endif; raw = raw + 128'U(n);",
        ),
    );
    let mut guarded = false;
    each_step(&lanes(&handlers).steps, &mut |step| {
        let Step::Once { body, .. } = step else { return };
        let calls = |list: &[Stmt]| {
            any_value(
                list,
                &|value| matches!(&value.kind, ValueKind::Pure { builtin, .. } if format!("{builtin:?}") == "TileBlock"),
            )
        };
        for stmt in body {
            match stmt {
                Stmt::If { arms, .. } => guarded |= arms.iter().any(|(_, body)| calls(body)),
                stmt => assert!(!calls(std::slice::from_ref(stmt)), "{handlers}"),
            }
        }
    });
    assert!(guarded, "{handlers}");
}

/// Locals that a step leaves to others.
fn assigned(list: &[Stmt]) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    each_stmt(list, &mut |stmt| match stmt {
        Stmt::Set(Var::Local(id), _) | Stmt::SetLow { var: Var::Local(id), .. } => _ = all.insert(*id),
        Stmt::SetElement { id, .. } | Stmt::SetLaneElement { id, .. } | Stmt::For { var: id, .. } => {
            _ = all.insert(*id)
        }
        _ => {}
    });
    all
}

/// No pass loses an assignment: whatever loops share is assigned ahead, or nowhere in the body.
#[test]
fn what_loops_share_is_assigned() {
    let (mut divided, mut moved) = (0, 0);
    for op in &SET.operations {
        let (before, after) = (isa_lower::lower::handlers(op), lower(op));
        let original = match &before.general {
            Body::Once(once) => assigned(&once.body),
            Body::Lanes(lanes) => {
                loops(&lanes.steps).iter().flat_map(|lanes| assigned(&lanes.body)).collect()
            }
        };
        let is_new = |id: &u32| *id as usize >= before.locals.len();
        let check = |id: u32, known: &BTreeSet<u32>| {
            let free = !is_new(&id) && !original.contains(&id);
            assert!(known.contains(&id) || free, "{}: t{id}\n{after}", op.name);
        };
        match &after.general {
            Body::Once(once) => {
                let known = assigned(once.with_vectors.as_ref().unwrap_or(&once.body));
                each_value(&once.body, &mut |value| {
                    if let ValueKind::Var(Var::Local(id)) = value.kind
                        && is_new(&id)
                    {
                        check(id, &known);
                        moved += 1;
                    }
                });
            }
            Body::Lanes(lanes) => {
                let mut known = BTreeSet::new();
                each_step(&lanes.steps, &mut |step| match step {
                    Step::Once { body, .. } => known.extend(assigned(body)),
                    Step::For { var, .. } => _ = known.insert(*var),
                    _ => {}
                });
                for lanes in loops(&lanes.steps) {
                    lanes.outer.same.iter().for_each(|id| check(*id, &known));
                }
                moved += known.len();
                divided += (loops(&lanes.steps).iter().filter(|lanes| !lanes.outer.lanes.is_empty()).count()
                    > 0) as usize;
            }
        }
    }
    assert!(divided >= 3 && moved > 500, "{divided} {moved}");
}
