//! Vector instructions that run while a matrix or transcendental instruction of CDNA 5 has not finished, and depend
//! on it: hardware does not wait, so that other vector instructions must be between the two. The distances are those
//! of LLVM's hazard recognizer (`checkWMMACoexecutionHazards`, `checkTRANSCoexecutionHazards`), in `kinds.txt`.

use super::Graph;
use super::rules::Node;
use super::vector::{Missing, is_valu, registers, walk};
use isa_spec::tables::Role;
use std::collections::HashMap;
use wavesim_asm::dialect::advice;
use wavesim_machine::exec::effects::{File, Use};

/// The vector instructions between a transcendental instruction and one that depends on it.
const AFTER_TRANSCENDENTAL: u32 = 1;

/// Registers by what an earlier instruction does with them.
struct Registers {
    /// Its results.
    results: Vec<u16>,
    /// Its sources that it still reads: for a matrix instruction A, B and indices.
    sources: Vec<u16>,
}

impl Registers {
    fn of(node: &Node<'_>) -> Registers {
        let matrix = is_multi_cycle_matrix(node);
        let reads = |used: &&Use| {
            used.file == File::Vgpr && used.relative.is_none() && (!matrix || is_factor(node, used))
        };
        let sources = node.effects.reads.iter().filter(reads).flat_map(|u| u.first..u.first + u.count);
        Registers { results: registers(&node.effects.writes).collect(), sources: sources.collect() }
    }
}

/// Returns whether a source is A, B or the indices of a sparse matrix: the addend is forwarded.
fn is_factor(node: &Node<'_>, used: &Use) -> bool {
    let sparse = node.kinds.is("sparse");
    matches!(used.role, Role::S0 | Role::S1) || sparse && used.role == Role::S2
}

/// Returns whether an instruction is a matrix instruction during which others run.
fn is_multi_cycle_matrix(node: &Node<'_>) -> bool {
    node.kinds.gap[0] > 0
}

/// Adds the hazards by index of the later instruction.
pub(super) fn hazards(graph: &Graph<'_>, out: &mut HashMap<usize, Missing>) {
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        let (matrix, trans) = (is_multi_cycle_matrix(node), node.kinds.is("trans"));
        if matrix || trans {
            let [to_matrix, to_vector] = if matrix { node.kinds.gap } else { [0, AFTER_TRANSCENDENTAL] };
            after(graph, at, to_matrix, to_vector, out);
        }
    }
}

fn after(graph: &Graph<'_>, first: usize, to_matrix: u32, to_vector: u32, out: &mut HashMap<usize, Missing>) {
    let earlier = Registers::of(&graph.nodes[first]);
    let is_matrix = is_multi_cycle_matrix(&graph.nodes[first]);
    // The fewest vector instructions with which each instruction has been reached.
    let mut seen: HashMap<usize, u32> = HashMap::new();
    walk(graph, first, 0, |at, between| {
        let node = &graph.nodes[at];
        if seen.get(&at).is_some_and(|before| *before <= *between) {
            return false;
        }
        seen.insert(at, *between);
        if !is_valu(node) {
            return true;
        }
        let found = if is_multi_cycle_matrix(node) {
            let mut factors =
                node.effects.reads.iter().filter(|u| u.file == File::Vgpr && is_factor(node, u));
            let reads =
                factors.any(|u| registers(std::slice::from_ref(u)).any(|r| earlier.results.contains(&r)));
            reads.then_some((to_matrix, "a matrix instruction reads the result of an earlier one too early"))
        } else if node.kinds.is("trans") {
            None
        } else {
            let reads = registers(&node.effects.reads).any(|r| earlier.results.contains(&r));
            let writes = |list: &[u16]| registers(&node.effects.writes).any(|w| list.contains(&w));
            let what = match is_matrix {
                _ if !reads && !writes(&earlier.results) && !writes(&earlier.sources) => None,
                true if reads => {
                    Some("a vector instruction reads the result of a matrix instruction too early")
                }
                true if writes(&earlier.results) => {
                    Some("a vector instruction writes a result of a matrix instruction too early")
                }
                true => Some("a vector instruction writes a source of a matrix instruction too early"),
                false if reads => {
                    Some("a vector instruction reads the result of a transcendental one too early")
                }
                false => Some("a vector instruction writes a source of a transcendental one too early"),
            };
            what.map(|what| (to_vector, what))
        };
        if let Some((needed, what)) = found.filter(|(needed, _)| needed > between) {
            let times = needed - *between;
            let missing = Missing { after: first, what, needed: advice::VECTOR_NOP, times };
            match out.get_mut(&at) {
                Some(before) if before.times >= times => {}
                Some(before) => *before = missing,
                None => drop(out.insert(at, missing)),
            }
        }
        *between += 1;
        *between < to_matrix.max(to_vector)
    });
}
