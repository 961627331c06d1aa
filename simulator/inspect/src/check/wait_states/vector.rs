//! Hazards between vector instructions for which software must wait on RDNA, and for which LLVM inserts
//! `s_waitcnt_depctr` or another instruction. The patterns and distances are those of LLVM's hazard recognizer;
//! which architectures have them is in [`ValuHazards`].

use super::Graph;
use super::rules::Node;
use isa_spec::pcode::builtins::Control;
use std::collections::HashMap;
use wavesim_isa::arch::facts::ValuHazards;
use wavesim_isa::operand::Code;
use wavesim_machine::exec::effects::{Class, File, Use};
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO, M0, VCC_HI, VCC_LO};

/// A dependency without a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Index of the earlier instruction.
    pub after: usize,
    /// The dependency.
    pub what: &'static str,
    /// What must be between the two.
    pub needed: &'static str,
    /// How often.
    pub times: u32,
}

/// The maximum number of instructions that a search visits.
const MAX_VISITS: usize = 400;

/// Vector instructions after which the result of a transcendental one is safe to read, and transcendental ones.
const TRANS_USE: (u32, u32) = (5, 1);

/// Vector instructions around the write of EXEC, and after the second write, that keep the hazard of partial
/// forwarding.
const FORWARDING: (u32, u32) = (2, 4);

/// Instructions after the write of a mask at which a read of it is still reported. LLVM knows no distance, and
/// always waits.
const MASK_READ: u32 = 4;

/// The fields of an instruction that waits for the vector and scalar ALUs: VA_VDST and SA_SDST (RDNA3 manual,
/// *S_WAITCNT_DEPCTR*). Zero waits.
const VA_VDST: u32 = 0xf000;
const SA_SDST: u32 = 1;

/// Returns the hazards by index of the later instruction.
pub(super) fn hazards(graph: &Graph<'_>, rules: &ValuHazards, wave_size: u32) -> HashMap<usize, Missing> {
    let mut out = HashMap::new();
    for at in 0..graph.nodes.len() {
        if rules.trans_use && graph.nodes[at].kinds.is("trans") {
            after_transcendental(graph, at, &mut out);
        }
        if rules.permutation_after_exec && writes_exec(&graph.nodes[at]) && is_valu(&graph.nodes[at]) {
            permutation_after_exec(graph, at, &mut out);
        }
        if rules.partial_forwarding && wave_size == 64 && is_valu(&graph.nodes[at]) {
            partial_forwarding(graph, at, &mut out);
        }
        if rules.mask_write && wave_size == 64 && is_valu(&graph.nodes[at]) {
            mask_write(graph, at, &mut out);
        }
    }
    out
}

pub(super) fn is_valu(node: &Node<'_>) -> bool {
    matches!(node.effects.class, Class::Valu | Class::Matrix)
}

fn is_nop(node: &Node<'_>) -> bool {
    is_valu(node) && node.effects.reads.is_empty() && node.effects.writes.is_empty()
}

/// Returns whether an instruction waits until all vector instructions have written their results.
fn waits_for_results(node: &Node<'_>) -> bool {
    let memory = node.effects.class.is_memory() && node.effects.class != Class::Smem;
    memory || node.effects.class == Class::Export || waits_for(node, VA_VDST)
}

fn waits_for(node: &Node<'_>, field: u32) -> bool {
    node.effects.calls.contains(&Control::WaitAlu)
        && node.inst.field(node.arch.table(), "SIMM16").is_some_and(|imm| imm & field == 0)
}

fn writes_exec(node: &Node<'_>) -> bool {
    node.effects.writes.iter().any(|w| overlaps(w, EXEC_LO, EXEC_HI))
}

fn overlaps(used: &Use, first: usize, last: usize) -> bool {
    let (start, end) = (used.first as usize, (used.first + used.count) as usize);
    used.file == File::Sgpr && start <= last && first < end
}

pub(super) fn registers(uses: &[Use]) -> impl Iterator<Item = u16> + '_ {
    let own = |u: &&Use| u.file == File::Vgpr && u.relative.is_none();
    uses.iter().filter(own).flat_map(|u| u.first..u.first + u.count)
}

/// Visits the instructions after `first` along all paths. `visit` updates the state of the path, and returns
/// whether it continues.
pub(super) fn walk<S: Clone>(
    graph: &Graph<'_>,
    first: usize,
    state: S,
    mut visit: impl FnMut(usize, &mut S) -> bool,
) {
    let mut open = vec![(first, state)];
    let mut visits = 0;
    while let Some((at, state)) = open.pop() {
        for &next in graph.next[at].iter().flatten() {
            visits += 1;
            let mut state = state.clone();
            if visits <= MAX_VISITS && visit(next, &mut state) {
                open.push((next, state));
            }
        }
    }
}

/// The result of a transcendental instruction is read too early.
fn after_transcendental(graph: &Graph<'_>, first: usize, out: &mut HashMap<usize, Missing>) {
    let results: Vec<u16> = registers(&graph.nodes[first].effects.writes).collect();
    walk(graph, first, (results, 0, 0), |at, (live, vector, trans)| {
        let node = &graph.nodes[at];
        if waits_for_results(node) {
            return false;
        }
        if is_valu(node) {
            if registers(&node.effects.reads).any(|r| live.contains(&r)) {
                out.entry(at).or_insert(Missing {
                    after: first,
                    what: "a vector instruction reads the result of a transcendental one too early",
                    needed: "s_waitcnt_depctr depctr_va_vdst(0)",
                    times: 1,
                });
                return false;
            }
            live.retain(|r| registers(&node.effects.writes).all(|w| w != *r));
            *vector += 1;
            *trans += u32::from(node.kinds.is("trans"));
        }
        !live.is_empty() && *vector <= TRANS_USE.0 && *trans <= TRANS_USE.1
    });
}

/// A lane permutation directly follows a vector instruction that writes EXEC.
fn permutation_after_exec(graph: &Graph<'_>, first: usize, out: &mut HashMap<usize, Missing>) {
    walk(graph, first, (), |at, ()| {
        let node = &graph.nodes[at];
        if node.kinds.is("permlane") {
            out.entry(at).or_insert(Missing {
                after: first,
                what: "a lane permutation directly follows a vector comparison that writes EXEC",
                needed: "a vector instruction other than v_nop",
                times: 1,
            });
        }
        !is_valu(node) || is_nop(node)
    });
}

/// The state of the search for partial forwarding.
#[derive(Clone)]
struct Forwarding {
    vector: u32,
    exec: Option<u32>,
    /// Registers that are written after EXEC, and the number of vector instructions before.
    second: Vec<(u16, u32)>,
}

/// An instruction reads two registers that were written before and after a write of EXEC by the scalar ALU.
fn partial_forwarding(graph: &Graph<'_>, first: usize, out: &mut HashMap<usize, Missing>) {
    let mut results: Vec<u16> = registers(&graph.nodes[first].effects.writes).collect();
    results.dedup();
    if results.is_empty() {
        return;
    }
    let start = Forwarding { vector: 0, exec: None, second: Vec::new() };
    walk(graph, first, (results, start), |at, (live, state)| {
        let node = &graph.nodes[at];
        if waits_for_results(node) {
            return false;
        }
        if is_valu(node) {
            // Two operands: one whose registers were all written before, and one that was written after.
            let reads = node.effects.reads.iter().map(std::slice::from_ref);
            let written_late = |u: &[Use], distance: u32| {
                let late = |(r, before): &(u16, u32)| {
                    state.vector - before - 1 <= distance && registers(u).any(|of_u| of_u == *r)
                };
                state.second.iter().any(late)
            };
            let early = |u: &[Use]| registers(u).any(|r| live.contains(&r)) && !written_late(u, u32::MAX);
            if reads.clone().any(early) && reads.clone().any(|u| written_late(u, FORWARDING.1)) {
                out.entry(at).or_insert(Missing {
                    after: first,
                    what: "a vector instruction reads registers that were written shortly before and after a change of EXEC",
                    needed: "s_waitcnt_depctr depctr_va_vdst(0)",
                    times: 1,
                });
                return false;
            }
            for w in registers(&node.effects.writes) {
                live.retain(|r| *r != w);
                state.second.retain(|(r, _)| *r != w);
                if state.exec.is_some_and(|_| state.vector <= FORWARDING.0) {
                    state.second.push((w, state.vector));
                }
            }
            state.vector += 1;
        } else if node.effects.class == Class::Salu && writes_exec(node) {
            state.exec = Some(state.vector);
        }
        let possible = state.exec.is_some() || state.vector <= FORWARDING.0;
        !live.is_empty() && possible && state.vector <= FORWARDING.0 + FORWARDING.1 + 2
    });
}

/// A scalar instruction writes a mask that a vector instruction has read, and the mask is read.
fn mask_write(graph: &Graph<'_>, first: usize, out: &mut HashMap<usize, Missing>) {
    let node = &graph.nodes[first];
    let is_register = |u: &&Use| u.file == File::Sgpr && u.relative.is_none() && (u.first as usize) < M0;
    let masks: Vec<Use> =
        node.effects.reads.iter().filter(is_register).filter(|u| reads_mask(node, u)).copied().collect();
    if masks.is_empty() {
        return;
    }
    // The write, and the instructions since then.
    walk(graph, first, (None::<usize>, 0u32), |at, (written, distance)| {
        let node = &graph.nodes[at];
        let of_masks =
            |u: &&Use| masks.iter().any(|m| overlaps(u, m.first as usize, (m.first + m.count - 1) as usize));
        if waits_for(node, SA_SDST) {
            return false;
        }
        if let Some(writer) = *written {
            *distance += 1;
            let salu = matches!(node.effects.class, Class::Salu | Class::Branch);
            if salu && node.effects.reads.iter().any(|u| of_masks(&u)) {
                out.entry(at).or_insert(Missing {
                    after: writer,
                    what: "a scalar instruction reads a mask that was written shortly after a vector instruction had read it",
                    needed: "s_waitcnt_depctr depctr_sa_sdst(0)",
                    times: 1,
                });
                return false;
            }
            return *distance < MASK_READ;
        }
        if node.effects.class == Class::Salu && node.effects.writes.iter().any(|u| of_masks(&u)) {
            *written = Some(at);
        }
        !(is_valu(node) && reads_scalar_or_literal(node))
    });
}

/// Returns whether a vector instruction reads a register as a carry or selector in each lane.
fn reads_mask(node: &Node<'_>, used: &Use) -> bool {
    node.is_mask(used) || overlaps(used, VCC_LO, VCC_HI) && used.role == isa_spec::tables::Role::Vcc
}

fn reads_scalar_or_literal(node: &Node<'_>) -> bool {
    let scalar = |u: &Use| u.file == File::Sgpr && (u.first as usize) < M0;
    let binding = wavesim_isa::operand::binding(node.arch, node.inst.entry);
    let literal = |o: &wavesim_isa::operand::Operand| {
        let value = binding.value(node.inst, o);
        value.is_some_and(|value| wavesim_isa::operand::code(node.arch, o, value) == Code::Literal)
    };
    node.effects.reads.iter().any(scalar) || binding.operands.iter().filter(|o| o.input).any(literal)
}
