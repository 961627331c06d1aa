//! Loads of LDS that poll. LDS has no coherence bits: an atomic load is a plain one there. What shows that a load expects another wave's
//! store is a loop that loads the same address again and again, and stores nothing that others see.

use isa_spec::tables::Role;
use std::collections::HashSet;
use wavesim_asm::{Options, print};
use wavesim_isa::inst::Inst;
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

/// Whether other waves can see what an instruction does, or where it jumps is unknown.
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
    /// Of accesses to scratch: the offset in the instruction.
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
            // One without a condition goes on nowhere else.
            if !(ends(e) || branches && e.reads.is_empty()) {
                edge(after);
            }
        }
        let offset = |(inst, e): (&Inst, &Effects)| {
            let field = |name| inst.field(program.arch.table(), name);
            // Negative ones are rare, and need not be distinguished.
            let offset = field("OFFSET").or_else(|| field("IOFFSET")).filter(|offset| *offset < 1 << 12);
            offset.filter(|_| e.class == Class::Scratch).map(i64::from)
        };
        let offsets = program.insts.iter().zip(effects).map(offset).collect();
        Graph { effects, next, before, offsets }
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

    /// Whether a load from scratch brings the same in every round of a loop: from one address, to which the loop does not store.
    fn is_kept(&self, load: usize, body: &HashSet<usize>, depth: u32) -> bool {
        let Some((base, bytes)) = self.slot(load) else { return false };
        let stores =
            body.iter().filter(|&&at| self.effects[at].class == Class::Scratch && !self.effects[at].returns);
        let apart = |at: &usize| {
            self.slot(*at).is_some_and(|(other, stored)| {
                other == base && (stored.end <= bytes.start || bytes.end <= stored.start)
            })
        };
        stores.into_iter().all(apart)
            && base.is_none_or(|base| self.is_same(load, (File::Sgpr, base), body, depth - 1))
    }

    /// Which bytes an access to scratch is of, from the address in a scalar register on; `None` if a VGPR is part of the address.
    fn slot(&self, at: usize) -> Option<(Option<u16>, std::ops::Range<i64>)> {
        let e = &self.effects[at];
        let mut base = None;
        for r in e.reads.iter().filter(|r| !matches!(r.role, Role::State | Role::Data)) {
            if r.file != File::Sgpr || r.relative.is_some() || base.is_some() {
                return None;
            }
            base = Some(r.first);
        }
        let offset = self.offsets[at]?;
        let registers = if e.returns { &e.writes } else { &e.reads };
        let data = registers.iter().filter(|r| r.file == File::Vgpr);
        let len: i64 = data.map(|r| 4 * r.count as i64).sum();
        Some((base, offset..offset + len))
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
        if depth > 0 && e.class == Class::Scratch && e.returns {
            return self.is_kept(here, body, depth);
        }
        let state = |r: &&wavesim_machine::exec::effects::Use| r.role != Role::State;
        depth > 0
            && matches!(e.class, Class::Valu | Class::Salu)
            && e.reads.iter().filter(state).all(|r| {
                let same = |register| self.is_same(here, (r.file, register), body, depth - 1);
                r.relative.is_none() && (r.first..r.first + r.count).all(same)
            })
    }
}
