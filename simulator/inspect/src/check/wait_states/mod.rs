//! Wait states that CDNA leaves to software: an instruction that depends on an earlier one too soon after it.
//!
//! The program is looked at once, without running it: from each instruction that a rule may be about forward through the code, on both
//! sides of branches, until enough wait states have passed. What is found is reported where the later instruction runs. Every
//! instruction is a wait state, and S_NOP as many as it says.

mod kinds;
mod rules;

use isa_spec::pcode::builtins::Control;
use kinds::Kinds;
use rules::{MOST, MOST_OF_OTHERS, Node, RULES};
use std::collections::HashMap;
use wavesim_asm::{Options, print};
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::wave::M0;

/// Too few wait states before an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Index of the earlier instruction.
    pub after: usize,
    /// What depends on what.
    pub what: &'static str,
    /// Wait states that there are, and that are needed.
    pub has: u32,
    pub needs: u32,
}

/// By index of the later instruction. Architectures whose hardware waits have none.
pub fn missing(program: &Program, effects: &[Effects]) -> HashMap<usize, Missing> {
    let mut out = HashMap::new();
    if !program.arch.is_cdna() {
        return out;
    }
    let mut known: HashMap<&str, Kinds> = HashMap::new();
    let nodes: Vec<Node<'_>> = program
        .insts
        .iter()
        .zip(effects)
        .map(|(inst, effects)| {
            let name = inst.instruction(program.arch.table()).name;
            let kinds = *known.entry(name).or_insert_with(|| Kinds::of(name, program.arch));
            Node { arch: program.arch, inst, effects, kinds }
        })
        .collect();
    let next: Vec<Successors> = (0..nodes.len()).map(|at| successors(program, at)).collect();
    for (at, node) in nodes.iter().enumerate().filter(|(_, node)| may_be_first(node)) {
        let most = if node.kinds.passes > 0 { MOST } else { MOST_OF_OTHERS };
        let mut reached = vec![(at, 0)];
        let mut seen: HashMap<usize, u32> = HashMap::new();
        while let Some((from, waited)) = reached.pop() {
            for &to in next[from].iter().flatten() {
                if waited >= most || seen.get(&to).is_some_and(|before| *before <= waited) {
                    continue;
                }
                seen.insert(to, waited);
                report(&mut out, (at, node), (to, &nodes[to]), waited);
                reached.push((to, waited + wait_states(&nodes[to])));
            }
        }
    }
    out
}

/// The worst that is missing before an instruction, if the rules need more than there is.
fn report(
    out: &mut HashMap<usize, Missing>,
    first: (usize, &Node<'_>),
    second: (usize, &Node<'_>),
    has: u32,
) {
    for rule in RULES {
        let Some(needs) = (rule.needs)(first.1, second.1).filter(|needs| *needs > has) else { continue };
        let found = Missing { after: first.0, what: rule.what, has, needs };
        let lacks = |m: &Missing| m.needs - m.has;
        match out.get_mut(&second.0) {
            Some(before) if lacks(before) >= lacks(&found) => {}
            Some(before) => *before = found,
            None => drop(out.insert(second.0, found)),
        }
    }
}

/// Whether a rule can be about an instruction as the earlier one.
fn may_be_first(node: &Node<'_>) -> bool {
    match node.effects.class {
        Class::Valu | Class::Matrix | Class::Vmem | Class::Flat | Class::Scratch => true,
        _ => {
            node.kinds.is("setreg")
                || node.effects.writes.iter().any(|u| u.file == File::Sgpr && u.first == M0 as u16)
        }
    }
}

/// Wait states that an instruction is.
fn wait_states(node: &Node<'_>) -> u32 {
    match node.effects.calls.contains(&Control::Nop) {
        true => 1 + node.inst.field(node.arch.table(), "SIMM16").unwrap_or(0) % 16,
        false => 1,
    }
}

/// The instructions that may follow one: the next, and a branch's target.
type Successors = [Option<usize>; 2];

fn successors(program: &Program, at: usize) -> Successors {
    let (inst, pc) = (&program.insts[at], program.pcs[at]);
    let flags = inst.instruction(program.arch.table()).flags;
    let end = pc + inst.size as u64;
    let next = || program.inst_at(end);
    if !flags.branch {
        return [next().filter(|_| !flags.terminator), None];
    }
    let words = print::branch_words(inst, &Options::new(program.arch).wave(program.wave_size));
    let target = words.and_then(|words| program.inst_at(end.wrapping_add_signed(4 * words)));
    [next().filter(|_| flags.conditional_branch), target]
}
