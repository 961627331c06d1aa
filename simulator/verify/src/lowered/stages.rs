//! The passes of `isa_lower::lower`, one at a time.

use isa_lower::ir::{Body, Fast, Handlers};
use isa_lower::{lower, passes};
use isa_spec::canonical::Operation;

/// What each pass leaves, with its name; the first is the lowering of the typed body. `None` if these are not the passes of
/// `isa_lower::lower`, because what they leave at the end is something else.
pub(super) fn stages(op: &Operation) -> Option<Vec<(&'static str, Handlers)>> {
    let mut handlers = lower::handlers(op);
    let mut stages = vec![("lower", handlers.clone())];
    if let Body::Lanes(lanes) = &handlers.general
        && let Some(accessing) = passes::memory::run(lanes, &handlers.operands)
    {
        if let Some(block) = passes::block::find(&accessing) {
            handlers.fast = Fast::Block(block);
        }
        handlers.general = Body::Lanes(accessing);
    }
    stages.push(("memory", handlers.clone()));
    if matches!(handlers.general, Body::Once(_)) {
        for name in ["lane_moves", "vector", "product", "convert", "active"] {
            let locals = handlers.locals.clone();
            if let Body::Once(once) = &mut handlers.general {
                match name {
                    "lane_moves" => passes::lane_moves::run(once, &locals),
                    "vector" => passes::vector::run(once),
                    "product" => passes::product::run(once),
                    "convert" => passes::convert::run(once),
                    _ => passes::active::run(once),
                }
            }
            stages.push((name, handlers.clone()));
        }
    }
    passes::fast::run(&mut handlers, op);
    stages.push(("fast", handlers.clone()));
    if let Fast::Lanes(lanes) = &mut handlers.fast {
        passes::simd::run(lanes);
        stages.push(("simd", handlers.clone()));
    }
    if let Fast::Lanes(lanes) = &mut handlers.fast {
        passes::fields::run(lanes);
        stages.push(("fields", handlers.clone()));
    }
    if let Body::Lanes(lanes) = &mut handlers.general {
        passes::simd::run(lanes);
        stages.push(("simd of the general handler", handlers.clone()));
    }
    // What these do not change has the stages, and the digest, that it had without them.
    let before = handlers.general.clone();
    match &mut handlers.general {
        Body::Lanes(lanes) => passes::hoist::lanes(lanes, &mut handlers.locals),
        Body::Once(once) => passes::hoist::once(once, &mut handlers.locals),
    }
    if handlers.general != before {
        stages.push(("hoist", handlers.clone()));
    }
    let before = handlers.general.clone();
    if let Body::Lanes(lanes) = &mut handlers.general {
        passes::distribute::run(lanes, &mut handlers.locals);
    }
    if handlers.general != before {
        stages.push(("distribute", handlers.clone()));
    }
    let all = isa_lower::lower(op);
    (all.general == handlers.general && all.fast == handlers.fast).then_some(stages)
}
