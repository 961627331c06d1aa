//! Loads of LDS that poll. LDS has no coherence bits: an atomic load is a plain one there. What shows that a load expects another wave's
//! store is a loop that loads the same address again and again, and stores nothing that others see.

use std::collections::HashSet;
use wavesim_asm::{Options, print};
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::exec::program::Program;

/// Instructions that are followed back to see that an address stays the same.
const DEEPEST: u32 = 8;

/// By instruction: it loads from LDS in a loop that waits for another wave's store.
pub fn loads(program: &Program, effects: &[Effects]) -> Vec<bool> {
    let mut out = vec![false; effects.len()];
    let is_load = |at: usize| effects[at].class == Class::Lds && effects[at].returns && !effects[at].atomic;
    if !(0..effects.len()).any(is_load) {
        return out;
    }
    let graph = Graph::new(program, effects);
    for (from, to) in graph.back_edges() {
        let body = graph.natural_loop(from, to);
        if body.iter().any(|&at| is_seen(&effects[at])) {
            continue;
        }
        for &at in body.iter().filter(|&&at| is_load(at)) {
            let mut address = effects[at].reads.iter().filter(|r| r.file == File::Vgpr);
            out[at] |= address.all(|r| {
                let kept = |register| graph.is_same(at, (r.file, register), &body, DEEPEST);
                r.relative.is_none() && (r.first..r.first + r.count).all(kept)
            });
        }
    }
    out
}

/// Whether other waves can see what an instruction does, or it goes who knows where.
fn is_seen(effects: &Effects) -> bool {
    match effects.class {
        Class::Lds | Class::Vmem | Class::Flat => {
            effects.atomic || !effects.returns && !effects.memory.is_empty()
        }
        Class::Control => !is_hint(effects),
        _ => false,
    }
}

fn is_hint(effects: &Effects) -> bool {
    effects.calls.iter().all(|bi| wavesim_machine::exec::machine_ops::does_nothing(*bi))
}

struct Graph<'g> {
    effects: &'g [Effects],
    /// By instruction.
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

impl<'g> Graph<'g> {
    fn new(program: &Program, effects: &'g [Effects]) -> Graph<'g> {
        let options = Options::new(program.arch);
        let count = effects.len();
        let (mut next, mut before) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        let ends = |e: &Effects| e.calls.contains(&isa_spec::pcode::builtins::Control::EndPgm);
        for at in 0..count {
            let (inst, e) = (&program.insts[at], &effects[at]);
            let after = program.pcs[at] + inst.size as u64;
            let mut edge = |pc: u64| {
                if let Ok(to) = program.pcs.binary_search(&pc) {
                    next[at].push(to);
                    before[to].push(at);
                }
            };
            let branches = e.class == Class::Branch;
            if branches && let Some(words) = print::branch_words(inst, &options) {
                edge(after.wrapping_add_signed(4 * words));
            }
            // One without a condition goes on nowhere else.
            if !(ends(e) || branches && e.reads.is_empty()) {
                edge(after);
            }
        }
        Graph { effects, next, before }
    }

    /// Branches to an instruction from which they are reached.
    fn back_edges(&self) -> Vec<(usize, usize)> {
        let count = self.next.len();
        let (mut found, mut seen, mut open) = (Vec::new(), vec![false; count], vec![false; count]);
        for start in 0..count {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            open[start] = true;
            let mut path = vec![(start, 0)];
            while let Some((at, edge)) = path.pop() {
                let Some(&to) = self.next[at].get(edge) else {
                    open[at] = false;
                    continue;
                };
                path.push((at, edge + 1));
                if open[to] {
                    found.push((at, to));
                } else if !seen[to] {
                    seen[to] = true;
                    open[to] = true;
                    path.push((to, 0));
                }
            }
        }
        found
    }

    /// What reaches `from` without passing `to`, and these two.
    fn natural_loop(&self, from: usize, to: usize) -> HashSet<usize> {
        let mut body = HashSet::from([to, from]);
        let mut rest = vec![from];
        while let Some(at) = rest.pop() {
            if at == to {
                continue;
            }
            rest.extend(self.before[at].iter().filter(|&&earlier| body.insert(earlier)));
        }
        body
    }

    /// Whether a register has one value in front of an instruction in every round of a loop.
    fn is_same(&self, at: usize, register: (File, u16), body: &HashSet<usize>, depth: u32) -> bool {
        let writes = |at: usize| {
            self.effects[at].writes.iter().any(|w| {
                w.file == register.0
                    && (w.relative.is_some() || (w.first..w.first + w.count).contains(&register.1))
            })
        };
        if !body.iter().any(|&at| writes(at)) {
            return true;
        }
        // The last write in front of it, in straight code.
        let mut here = at;
        loop {
            let [earlier] = self.before[here][..] else { return false };
            if !body.contains(&earlier) || self.next[earlier].len() != 1 {
                return false;
            }
            here = earlier;
            if writes(here) {
                break;
            }
        }
        let e = &self.effects[here];
        let state = |r: &&wavesim_machine::exec::effects::Use| r.role != isa_spec::tables::Role::State;
        depth > 0
            && matches!(e.class, Class::Valu | Class::Salu)
            && e.reads.iter().filter(state).all(|r| {
                let same = |register| self.is_same(here, (r.file, register), body, depth - 1);
                r.relative.is_none() && (r.first..r.first + r.count).all(same)
            })
    }
}
