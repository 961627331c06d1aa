//! Wait states that CDNA requires of software: an instruction that depends on an earlier one must not follow
//! it too closely.
//!
//! This is a static analysis. From each instruction to which a rule may apply, it walks forward through the
//! code, along both sides of branches, until enough wait states have passed. A finding is reported when the
//! later instruction executes. Every instruction counts as one wait state, S_NOP as its operand
//! plus one.

mod coexecution;
mod kinds;
mod replay;
mod rules;
#[cfg(test)]
mod tests;
mod vector;

use isa_spec::pcode::builtins::Control;
use isa_spec::tables::Role;
pub use vector::Missing;

use kinds::Kinds;
use rules::{MAX_WAIT_STATES, MAX_WAIT_STATES_NON_MATRIX, Node, RULES};
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

/// A deficit of wait states before an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deficit {
    /// Index of the earlier instruction.
    pub after: usize,
    /// The dependency.
    pub what: &'static str,
    /// Existing and required wait states.
    pub existing: u32,
    pub required: u32,
}

/// Returns the deficits by index of the later instruction. Architectures whose hardware interlocks have none.
pub fn deficits(program: &Program, effects: &[Effects]) -> HashMap<usize, Deficit> {
    if program.arch.facts().hazards.wait_states.is_none() {
        return HashMap::new();
    }
    Graph::new(program, effects).deficits(0..program.insts.len(), None)
}

/// Returns the dependencies between vector instructions for which RDNA and CDNA 5 need a wait, by index of the later
/// instruction.
pub fn vector_hazards(program: &Program, effects: &[Effects], wave_size: u32) -> HashMap<usize, Missing> {
    let hazards = &program.arch.facts().hazards;
    if !hazards.valu.any() && !hazards.coexecution {
        return HashMap::new();
    }
    let graph = Graph::new(program, effects);
    let mut found = vector::hazards(&graph, &hazards.valu, wave_size);
    if hazards.coexecution {
        coexecution::hazards(&graph, &mut found);
    }
    found
}

/// Returns the instructions that change a register of an access whose address is not translated yet, by index.
pub fn replays(program: &Program, effects: &[Effects]) -> HashMap<usize, Missing> {
    let counters = &program.arch.facts().counters;
    let mut found = HashMap::new();
    if counters.replays {
        replay::hazards(&Graph::new(program, effects), counters, &mut found);
    }
    found
}

/// The control-flow graph of a program, an instruction per node.
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
                Node {
                    arch: program.arch,
                    inst,
                    effects: with_named_registers(program.arch, inst, effects, kinds),
                    kinds,
                }
            })
            .collect();
        let next = (0..nodes.len()).map(|at| successors(program, at)).collect();
        Graph { nodes, next }
    }

    /// Returns the deficits after some of the instructions, computed as if the instruction `removed` were
    /// absent.
    fn deficits(&self, after: Range<usize>, removed: Option<usize>) -> HashMap<usize, Deficit> {
        let mut out = HashMap::new();
        for at in after.filter(|at| may_be_first(&self.nodes[*at])) {
            let node = &self.nodes[at];
            let most = if node.kinds.passes > 0 { MAX_WAIT_STATES } else { MAX_WAIT_STATES_NON_MATRIX };
            let mut reached = vec![(at, 0)];
            let mut seen: HashMap<usize, u32> = HashMap::new();
            while let Some((from, waited)) = reached.pop() {
                for &to in self.next[from].iter().flatten() {
                    if waited >= most || seen.get(&to).is_some_and(|before| *before <= waited) {
                        continue;
                    }
                    seen.insert(to, waited);
                    record_largest(&mut out, (at, node), (to, &self.nodes[to]), waited);
                    let states = if removed == Some(to) { 0 } else { wait_states(&self.nodes[to]) };
                    reached.push((to, waited + states));
                }
            }
        }
        out
    }
}

/// Returns the effects of an instruction, with the VGPRs named by its operands where the effects say that any
/// VGPR may be used: the bodies of large matrix instructions are too long for a full analysis.
fn with_named_registers<'a>(arch: Arch, inst: &Inst, effects: &'a Effects, kinds: Kinds) -> Cow<'a, Effects> {
    let is_any = |used: &Use| used.file == File::Vgpr && used.relative == Some(Relative::Any);
    if kinds.passes == 0 && kinds.gap == [0; 2] || !effects.reads.iter().chain(&effects.writes).any(is_any) {
        return Cow::Borrowed(effects);
    }
    let binding = operand::binding(arch, inst.entry);
    let mut out = effects.clone();
    for (list, write) in [(&mut out.reads, false), (&mut out.writes, true)] {
        list.retain(|used| !is_any(used));
        for o in binding.operands.iter().filter(|o| if write { o.output } else { o.input }) {
            let code = binding.value(inst, o).map(|value| operand::code(arch, o, value));
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

/// Records the largest deficit before an instruction, if a rule requires more wait states than there are.
fn record_largest(
    out: &mut HashMap<usize, Deficit>,
    first: (usize, &Node<'_>),
    second: (usize, &Node<'_>),
    existing: u32,
) {
    for rule in RULES {
        let Some(required) = (rule.needs)(first.1, second.1).filter(|required| *required > existing) else {
            continue;
        };
        let found = Deficit { after: first.0, what: rule.what, existing, required };
        let deficit = |m: &Deficit| m.required - m.existing;
        match out.get_mut(&second.0) {
            Some(before) if deficit(before) >= deficit(&found) => {}
            Some(before) => *before = found,
            None => drop(out.insert(second.0, found)),
        }
    }
}

/// Returns whether a rule can apply to an instruction as the earlier one.
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

/// Returns the number of wait states that an instruction provides.
fn wait_states(node: &Node<'_>) -> u32 {
    match node.effects.calls.contains(&Control::Nop) {
        true => 1 + node.inst.field(node.arch.table(), "SIMM16").unwrap_or(0) % 16,
        false => 1,
    }
}

/// The possible successors of an instruction: the next one, and a branch's target. Those of an indirect jump
/// are unknown.
pub type Successors = [Option<usize>; 2];

/// Returns the possible successors of an instruction, given by its index.
pub fn successors(program: &Program, index: usize) -> Successors {
    let (inst, pc) = (&program.insts[index], program.pcs[index]);
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
