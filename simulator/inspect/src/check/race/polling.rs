//! Detection of loads of LDS that poll. LDS instructions have no coherence bits: an atomic load of LDS is
//! encoded as a plain one. A load is taken to poll for another wave's store if a loop repeats it at the same
//! address and has no side effects that other waves can observe.

use isa_spec::tables::Role;
use std::collections::HashSet;
use wavesim_asm::{Options, print};
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::exec::program::Program;

/// Maximum depth of the backward search that shows that an address is loop-invariant.
const MAX_DEPTH: u32 = 8;

/// Returns, for each instruction, whether it loads from LDS in a loop that polls for another wave's store.
pub fn loads(program: &Program, effects: &[Effects]) -> Vec<bool> {
    let mut out = vec![false; effects.len()];
    let is_load = |at: usize| effects[at].class == Class::Lds && effects[at].returns && !effects[at].atomic;
    if !(0..effects.len()).any(is_load) {
        return out;
    }
    let graph = Graph::new(program, effects);
    for (from, to) in graph.back_edges() {
        let body = graph.natural_loop(from, to);
        if body.iter().any(|&at| is_observable(&effects[at])) {
            continue;
        }
        for &at in body.iter().filter(|&&at| is_load(at)) {
            let mut address = effects[at].reads.iter().filter(|r| r.file == File::Vgpr);
            out[at] |= address.all(|r| {
                let kept = |register| graph.is_invariant(at, (r.file, register), &body, MAX_DEPTH);
                r.relative.is_none() && (r.first..r.first + r.count).all(kept)
            });
        }
    }
    out
}

/// Returns whether other waves can observe the effects of an instruction, or its jump target is unknown.
fn is_observable(effects: &Effects) -> bool {
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
    /// Successors of each instruction.
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    /// By instruction: the immediate offset of an access to scratch.
    offsets: Vec<Option<i64>>,
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
            // An unconditional branch does not fall through.
            if !(ends(e) || branches && e.reads.is_empty()) {
                edge(after);
            }
        }
        let offset = |(inst, e): (&Inst, &Effects)| {
            let field = |name| inst.field(program.arch.table(), name);
            // Negative offsets are rare; treating them as unknown is sufficient.
            let offset = field("OFFSET").or_else(|| field("IOFFSET")).filter(|offset| *offset < 1 << 12);
            offset.filter(|_| e.class == Class::Scratch).map(i64::from)
        };
        let offsets = program.insts.iter().zip(effects).map(offset).collect();
        Graph { effects, next, before, offsets }
    }

    /// Returns the back edges of a depth-first search: branches to an instruction from which they are
    /// reached.
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

    /// Returns the natural loop of a back edge: `from`, `to`, and all instructions that reach `from` without
    /// passing `to`.
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

    /// Returns whether a load from scratch is loop-invariant: it loads from one address, and the loop does
    /// not store there.
    fn is_invariant_load(&self, load: usize, body: &HashSet<usize>, depth: u32) -> bool {
        let Some((base, bytes)) = self.slot(load) else { return false };
        let stores =
            body.iter().filter(|&&at| self.effects[at].class == Class::Scratch && !self.effects[at].returns);
        let apart = |at: &usize| {
            self.slot(*at).is_some_and(|(other, stored)| {
                other == base && (stored.end <= bytes.start || bytes.end <= stored.start)
            })
        };
        stores.into_iter().all(apart)
            && base.is_none_or(|base| self.is_invariant(load, (File::Sgpr, base), body, depth - 1))
    }

    /// Returns the bytes that an access to scratch covers, relative to the base address in a scalar register.
    /// Returns `None` if a VGPR is part of the address.
    fn slot(&self, index: usize) -> Option<(Option<u16>, std::ops::Range<i64>)> {
        let e = &self.effects[index];
        let mut base = None;
        for r in e.reads.iter().filter(|r| !matches!(r.role, Role::State | Role::Data)) {
            if r.file != File::Sgpr || r.relative.is_some() || base.is_some() {
                return None;
            }
            base = Some(r.first);
        }
        let offset = self.offsets[index]?;
        let registers = if e.returns { &e.writes } else { &e.reads };
        let data = registers.iter().filter(|r| r.file == File::Vgpr);
        let len: i64 = data.map(|r| 4 * r.count as i64).sum();
        Some((base, offset..offset + len))
    }

    /// Returns whether a register has the same value before an instruction in every iteration of a loop.
    fn is_invariant(&self, index: usize, register: (File, u16), body: &HashSet<usize>, depth: u32) -> bool {
        let writes = |index: usize| {
            self.effects[index].writes.iter().any(|w| {
                w.file == register.0
                    && (w.relative.is_some() || (w.first..w.first + w.count).contains(&register.1))
            })
        };
        if !body.iter().any(|&index| writes(index)) {
            return true;
        }
        // Find the last write before the instruction in straight-line code.
        let mut here = index;
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
        if depth > 0 && e.class == Class::Scratch && e.returns {
            return self.is_invariant_load(here, body, depth);
        }
        let state = |r: &&wavesim_machine::exec::effects::Use| r.role != Role::State;
        depth > 0
            && matches!(e.class, Class::Valu | Class::Salu)
            && e.reads.iter().filter(state).all(|r| {
                let same = |register| self.is_invariant(here, (r.file, register), body, depth - 1);
                r.relative.is_none() && (r.first..r.first + r.count).all(same)
            })
    }
}
