//! Wait states that CDNA leaves to software: an instruction that depends on an earlier one too soon after it.
//!
//! The program is analysed once, without running it: from each instruction that a rule may be about forward through the code, on both
//! sides of branches, until enough wait states have passed. What is found is reported where the later instruction runs. Every
//! instruction is a wait state, and S_NOP as many as it says.

mod kinds;
mod rules;
#[cfg(test)]
mod tests;

use isa_spec::pcode::builtins::Control;
use isa_spec::tables::Role;
use kinds::Kinds;
use rules::{MOST, MOST_OF_OTHERS, Node, RULES};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use wavesim_asm::{Options, print};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Code};
use wavesim_machine::exec::effects::{Class, Effects, File, Lanes, Relative, Use};
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
    if !program.arch.is_cdna() {
        return HashMap::new();
    }
    Graph::new(program, effects).missing(0..program.insts.len(), None)
}

/// A program's instructions, and which follow which.
struct Graph<'a> {
    nodes: Vec<Node<'a>>,
    next: Vec<Successors>,
}

impl<'a> Graph<'a> {
    fn new(program: &'a Program, effects: &'a [Effects]) -> Graph<'a> {
        let mut known: HashMap<&str, Kinds> = HashMap::new();
        let nodes: Vec<Node<'_>> = program
            .insts
            .iter()
            .zip(effects)
            .map(|(inst, effects)| {
                let name = inst.instruction(program.arch.table()).name;
                let kinds = *known.entry(name).or_insert_with(|| Kinds::of(name, program.arch));
                let kinds = kinds.with_formats(|field| inst.field(program.arch.table(), field).unwrap_or(0));
                Node { arch: program.arch, inst, effects: named(program.arch, inst, effects, kinds), kinds }
            })
            .collect();
        let next = (0..nodes.len()).map(|at| successors(program, at)).collect();
        Graph { nodes, next }
    }

    /// What is missing after some of the instructions, as if one, `removed`, were not there.
    fn missing(&self, after: Range<usize>, removed: Option<usize>) -> HashMap<usize, Missing> {
        let mut out = HashMap::new();
        for at in after.filter(|at| may_be_first(&self.nodes[*at])) {
            let node = &self.nodes[at];
            let most = if node.kinds.passes > 0 { MOST } else { MOST_OF_OTHERS };
            let mut reached = vec![(at, 0)];
            let mut seen: HashMap<usize, u32> = HashMap::new();
            while let Some((from, waited)) = reached.pop() {
                for &to in self.next[from].iter().flatten() {
                    if waited >= most || seen.get(&to).is_some_and(|before| *before <= waited) {
                        continue;
                    }
                    seen.insert(to, waited);
                    report(&mut out, (at, node), (to, &self.nodes[to]), waited);
                    let states = if removed == Some(to) { 0 } else { wait_states(&self.nodes[to]) };
                    reached.push((to, waited + states));
                }
            }
        }
        out
    }
}

/// What an instruction does, with the VGPRs that its operands name where effects only say that they may be any: bodies of large matrix
/// instructions are too long to be analysed whole.
fn named<'a>(arch: Arch, inst: &Inst, effects: &'a Effects, kinds: Kinds) -> Cow<'a, Effects> {
    let is_any = |used: &Use| used.file == File::Vgpr && used.relative == Some(Relative::Any);
    if kinds.passes == 0 || !effects.reads.iter().chain(&effects.writes).any(is_any) {
        return Cow::Borrowed(effects);
    }
    let plan = operand::binding(arch, inst.entry);
    let mut out = effects.clone();
    for (list, write) in [(&mut out.reads, false), (&mut out.writes, true)] {
        list.retain(|used| !is_any(used));
        for o in plan.operands.iter().filter(|o| if write { o.output } else { o.input }) {
            let code = plan.value(inst, o).map(|value| operand::code(arch, o, value));
            let Some(Code::Vgpr(first)) = code else { continue };
            let formats = kinds.is("formats");
            let field = |name| inst.field(arch.table(), name).unwrap_or(0);
            let count = match o.role {
                Role::S0 if formats => kinds::registers_of_format(field("CBSZ")),
                Role::S1 if formats => kinds::registers_of_format(field("BLGP")),
                _ => o.size_bits.div_ceil(32),
            };
            list.push(Use {
                file: File::Vgpr,
                first,
                count,
                bits: u32::MAX,
                lanes: Lanes::All,
                role: o.role,
                relative: None,
                always: true,
                second: false,
            });
        }
    }
    Cow::Owned(out)
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
            node.sets_register()
                || node.sets_vskip()
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

/// The instructions that may follow one: the next, and a branch's target. None are known of an indirect jump.
pub(super) type Successors = [Option<usize>; 2];

pub(super) fn successors(program: &Program, at: usize) -> Successors {
    let (inst, pc) = (&program.insts[at], program.pcs[at]);
    let flags = inst.instruction(program.arch.table()).flags();
    let end = pc + inst.size as u64;
    let next = || program.inst_at(end);
    if !flags.branch {
        return [next().filter(|_| !flags.terminator), None];
    }
    let words = print::branch_words(inst, &Options::new(program.arch).wave(program.wave_size));
    let target = words.and_then(|words| program.inst_at(end.wrapping_add_signed(4 * words)));
    [next().filter(|_| flags.conditional_branch), target]
}
