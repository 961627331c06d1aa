//! Accesses whose address is not translated yet: if the translation fails, the access is repeated, and it must find
//! the same address and data in its registers. XCNT counts these accesses, in order. A wait for another counter implies
//! that the accesses that it waits for, and earlier ones, are translated (LLVM, `SIInsertWaitcnts`; AMDGPUUsage, *Memory
//! Model GFX125x*).

use super::Graph;
use super::rules::Node;
use super::vector::{Missing, is_valu, walk};
use isa_spec::pcode::builtins::Control;
use std::collections::{HashMap, HashSet};
use wavesim_isa::arch::facts::{Counter, CounterSet};
use wavesim_machine::exec::effects::{Class, File, Use};
use wavesim_machine::state::wave::VCC_HI;

/// Accesses of the vector and of the scalar memory units. Hardware waits between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Vector,
    Scalar,
}

fn unit(node: &Node<'_>) -> Option<Unit> {
    if node.effects.memory.is_empty() {
        return None;
    }
    match node.effects.class {
        Class::Smem => Some(Unit::Scalar),
        // The tensor data mover, which uses no vector registers, repeats its accesses by itself.
        Class::Vmem | Class::Flat | Class::Scratch => {
            let vector = node.effects.reads.iter().chain(&node.effects.writes).any(|u| u.file == File::Vgpr);
            vector.then_some(Unit::Vector)
        }
        _ => None,
    }
}

/// Returns the counter that shows that an access has completed. Scalar loads complete in any order.
fn counter(counters: &CounterSet, node: &Node<'_>) -> Counter {
    let effects = &node.effects;
    match unit(node) {
        Some(Unit::Scalar) => counters.scalar,
        _ if effects.loads_to_lds() => counters.copies.unwrap_or(counters.load),
        _ if effects.returns => counters.load,
        _ => counters.store,
    }
}

/// Registers of a kind that operands name.
fn named(used: &Use) -> impl Iterator<Item = (File, u16)> {
    let own = used.relative.is_none()
        && match used.file {
            File::Vgpr => true,
            File::Sgpr => usize::from(used.first) <= VCC_HI,
            _ => false,
        };
    let count = if own { used.count } else { 0 };
    let file = used.file;
    (used.first..used.first + count).map(move |register| (file, register))
}

/// The accesses since the first and with it: all of its unit, and those that each counter counts, up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Issued {
    all: u8,
    by_counter: [u8; Counter::ALL.len()],
}

/// The most outstanding operations that a counter can count.
const MAX_COUNT: u8 = 63;

impl Issued {
    fn add(&mut self, counter: Counter) {
        for count in [&mut self.all, &mut self.by_counter[counter as usize]] {
            *count = MAX_COUNT.min(*count + 1);
        }
    }
}

/// Adds the instructions that change a register too early, by index.
pub(super) fn hazards(graph: &Graph<'_>, counters: &CounterSet, out: &mut HashMap<usize, Missing>) {
    for first in 0..graph.nodes.len() {
        let node = &graph.nodes[first];
        let Some(own) = unit(node) else { continue };
        let sources: Vec<(File, u16)> = node.effects.reads.iter().flat_map(named).collect();
        if sources.is_empty() {
            continue;
        }
        let mut start = Issued::default();
        start.add(counter(counters, node));
        let mut seen = HashSet::new();
        walk(graph, first, start, |at, issued| {
            if !seen.insert((at, *issued)) {
                return false;
            }
            let node = &graph.nodes[at];
            if is_translated(node, own, issued) {
                return false;
            }
            let changes = node.effects.writes.iter().flat_map(named).any(|w| sources.contains(&w));
            if unit(node).is_some() {
                issued.add(counter(counters, node));
                // LLVM needs no wait before a load into a source, nor after it.
                return !changes;
            }
            if changes && (is_valu(node) || node.effects.class == Class::Salu) {
                out.entry(at).or_insert(Missing {
                    after: first,
                    what: "a register changes that an access reads again if the translation of its address fails",
                    needed: "s_wait_xcnt 0x0",
                    times: 1,
                });
                return false;
            }
            true
        });
    }
}

/// Returns whether the first access is translated once an instruction has executed.
fn is_translated(node: &Node<'_>, own: Unit, issued: &Issued) -> bool {
    if unit(node).is_some_and(|unit| unit != own) {
        return true;
    }
    let limit = node.inst.field(node.arch.table(), "SIMM16").unwrap_or(0);
    node.effects.calls.iter().any(|&bi| match bi {
        Control::WaitXcnt => u32::from(issued.all) > limit & 0x3f,
        Control::WaitIdle | Control::EndPgm => true,
        _ => Counter::of(bi).is_some_and(|counter| {
            // An instruction for two counters has the counter of LDS in the low bits.
            let high = node.effects.calls.len() > 1 && counter != Counter::Ds;
            let limit = if high { limit >> 8 & 0x3f } else { limit & 0x3f };
            // Scalar accesses complete in any order.
            let in_order = own == Unit::Vector || limit == 0;
            in_order && u32::from(issued.by_counter[counter as usize]) > limit
        }),
    })
}
