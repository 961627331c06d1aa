//! The tables of wait states: the minimum distance between dependent instructions (CDNA 3 and 4 manuals,
//! *Manually Inserted Wait States* and *Dependency Resolution: Required Independent Instructions*). Where a
//! cell of the manuals' tables is empty, the distance is that of LLVM's hazard recognizer.

use super::kinds::Kinds;
use isa_spec::pcode::builtins::Control;
use isa_spec::tables::Role;
use std::borrow::Cow;
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::facts::WaitStates;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::Code;
use wavesim_isa::relative::VSKIP;
use wavesim_machine::exec::effects::{Class, Effects, File, Lanes, Relative, Use};
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO, M0, VCC_HI, VCC_LO};

/// An instruction with the properties that the rules test.
pub struct Node<'a> {
    pub arch: Arch,
    pub inst: &'a Inst,
    pub effects: Cow<'a, Effects>,
    pub kinds: Kinds,
}

/// A dependency without a hardware interlock.
pub struct Rule {
    /// The dependency.
    pub what: &'static str,
    /// Returns the number of wait states required between the two; `None` where the rule does not apply.
    pub needs: fn(&Node<'_>, &Node<'_>) -> Option<u32>,
}

/// The number of MODE as a hardware register.
const MODE: u32 = 1;

/// The maximum number of wait states that any rule requires.
pub const MAX_WAIT_STATES: u32 = 20;

/// The maximum number of wait states that any rule requires after an instruction other than a matrix
/// instruction.
pub const MAX_WAIT_STATES_NON_MATRIX: u32 = 5;

pub static RULES: &[Rule] = &[
    Rule {
        what: "a scalar register that a vector instruction writes is read by vector memory",
        needs: |a, b| {
            let reads = b.sgprs(|u| u.role != Role::State);
            (a.valu()
                && b.memory()
                && b.effects.class != Class::Lds
                && any_overlap(a.written(File::Sgpr), reads))
            .then_some(5)
        },
    },
    Rule {
        what: "a scalar register that a vector instruction writes selects a lane",
        needs: |a, b| {
            let reads = b.sgprs(|u| u.role == Role::S1);
            (a.valu() && b.kinds.is("lane_select") && any_overlap(a.written(File::Sgpr), reads)).then_some(4)
        },
    },
    Rule {
        what: "VCC that a vector instruction writes scales the result of a division",
        needs: |a, b| (a.valu() && b.kinds.is("div_fmas") && a.writes_scalar(VCC_LO, VCC_HI)).then_some(4),
    },
    Rule {
        what: "a scalar register that a vector instruction writes is a source",
        needs: |a, b| {
            // Carries and lane masks are forwarded.
            let reads = b.sgprs(|u| matches!(u.role, Role::S0 | Role::S1 | Role::S2) && !b.is_mask(u));
            (a.valu()
                && b.vector_alu()
                && !b.kinds.is("lane_select")
                && any_overlap(a.written(File::Sgpr), reads))
            .then_some(2)
        },
    },
    Rule {
        what: "EXEC that a vector instruction writes is a source",
        needs: |a, b| {
            let exec = |u: &Use| (EXEC_LO..=EXEC_HI).contains(&(u.first as usize)) && !b.is_mask(u);
            let reads = |u: &Use| matches!(u.role, Role::S0 | Role::S1 | Role::S2) && exec(u);
            let writes = a.valu() && a.writes_scalar(EXEC_LO, EXEC_HI);
            (writes && b.vector_alu() && b.sgprs(reads).next().is_some()).then_some(2)
        },
    },
    Rule {
        what: "EXEC that a vector instruction writes chooses the lanes that DPP moves",
        needs: |a, b| (a.valu() && b.dpp() && a.writes_scalar(EXEC_LO, EXEC_HI)).then_some(5),
    },
    Rule {
        what: "EXEC that a vector instruction writes is followed by an access to a lane",
        needs: |a, b| {
            (a.valu() && b.kinds.is("lane_access") && a.writes_scalar(EXEC_LO, EXEC_HI)).then_some(4)
        },
    },
    Rule {
        what: "EXEC that a vector instruction writes is followed by a matrix instruction",
        needs: |a, b| (a.valu() && b.matrix() && a.writes_scalar(EXEC_LO, EXEC_HI)).then_some(4),
    },
    Rule {
        what: "EXEC that a vector instruction writes is followed by a permutation of lanes",
        needs: |a, b| {
            (a.generation(|r| r.lane_permutations)
                && a.valu()
                && b.kinds.is("permlane")
                && a.writes_scalar(EXEC_LO, EXEC_HI))
            .then_some(4)
        },
    },
    Rule {
        what: "a register that a vector instruction writes is read through DPP",
        needs: |a, b| {
            let reads = b.vgprs(|u| matches!(u.lanes, Lanes::Dpp16 { .. }));
            (a.vector_alu() && b.dpp() && any_overlap(a.written(File::Vgpr), reads)).then_some(2)
        },
    },
    Rule {
        what: "a register that a vector instruction writes is permuted between lanes",
        needs: |a, b| {
            let permutes = a.generation(|r| r.lane_permutations) && a.vector_alu() && b.kinds.is("permlane");
            (permutes && any_overlap(a.written(File::Vgpr), b.vgprs(|_| true))).then_some(2)
        },
    },
    Rule {
        what: "a lane of a register that a vector instruction writes is read",
        needs: |a, b| {
            (a.vector_alu()
                && b.kinds.is("lane_read")
                && any_overlap(a.written(File::Vgpr), b.vgprs(|_| true)))
            .then_some(1)
        },
    },
    Rule {
        what: "a result in a part of a register is read by a vector instruction",
        needs: |a, b| {
            (a.valu()
                && a.writes_upper_part()
                && b.vector_alu()
                && any_overlap(a.written(File::Vgpr), b.vgprs(|_| true)))
            .then_some(1)
        },
    },
    Rule {
        what: "the result of a transcendental function is read by an instruction that is none",
        needs: |a, b| {
            let reads = b.vector_alu() && !b.kinds.is("trans");
            (a.kinds.is("trans") && reads && any_overlap(a.written(File::Vgpr), b.vgprs(|_| true)))
                .then_some(1)
        },
    },
    Rule {
        what: "the data of a store of more than 64 bits is overwritten",
        needs: |a, b| {
            let data = a.effects.reads.iter().filter(|u| u.file == File::Vgpr && u.count > 2 && is_data(u));
            let late = a.memory() && a.effects.class != Class::Lds && !a.scalar_offset();
            // Data from memory arrives later than any wait state.
            (late && !b.memory() && any_overlap(data, b.written(File::Vgpr))).then_some(if b.vector_alu() {
                2
            } else {
                1
            })
        },
    },
    Rule {
        what: "M0 that a scalar instruction writes is used",
        needs: |a, b| {
            let uses = b.kinds.is("into_lds") || b.writes_lds() || b.sends_message() || b.adds_m0();
            (a.effects.class == Class::Salu && uses && a.writes_scalar(M0, M0)).then_some(1)
        },
    },
    Rule {
        what: "a hardware register that is written is accessed",
        needs: |a, b| {
            let accesses = b.calls(Control::GetReg) || b.sets_register();
            (a.sets_register() && accesses && a.hardware_register() == b.hardware_register()).then_some(2)
        },
    },
    Rule {
        what: "MODE that skips vector instructions is read",
        needs: |a, b| {
            let reads = b.calls(Control::GetReg) && b.hardware_register() == Some(MODE);
            (a.sets_vskip() && !a.sets_register() && reads).then_some(2)
        },
    },
    Rule {
        what: "a hardware register that skips vector instructions is written before one",
        needs: |a, b| {
            let vector = b.vector_alu() || b.memory();
            (a.sets_register() && vector && a.sets_vskip()).then_some(2)
        },
    },
    Rule {
        what: "VCC or EXEC that a vector instruction writes is a source as VCCZ or EXECZ",
        needs: |a, b| {
            let stale = |code| match code {
                Code::Vccz => a.writes_scalar(VCC_LO, VCC_HI),
                Code::Execz => a.writes_scalar(EXEC_LO, EXEC_HI),
                _ => false,
            };
            (a.valu() && b.vector_alu() && b.codes().any(stale)).then_some(5)
        },
    },
    Rule {
        what: "a register that a vector instruction writes is read by a matrix instruction",
        needs: |a, b| {
            (a.valu()
                && !a.kinds.is("dot")
                && b.matrix()
                && any_overlap(a.written(File::Vgpr), b.vgprs(|_| true)))
            .then_some(2)
        },
    },
    Rule {
        what: "the result of a dot product is used",
        needs: |a, b| {
            if !a.kinds.is("dot") || !(b.vector_alu() || b.memory()) {
                return None;
            }
            let same = a.inst.entry(a.arch.table()).inst == b.inst.entry(b.arch.table()).inst;
            // The accumulator is forwarded to the same operation.
            let reads = b.vgprs(|u| !same || !matches!(u.role, Role::S2 | Role::D0));
            let writes = b.written(File::Vgpr).filter(|_| !same && b.vector_alu());
            any_overlap(a.written(File::Vgpr), reads.chain(writes)).then_some(3)
        },
    },
    Rule { what: "the result of a matrix instruction is used", needs: |a, b| matrix_result(a, b) },
    Rule {
        what: "the addend of a matrix instruction is overwritten",
        needs: |a, b| {
            let addend = a.effects.reads.iter().filter(|u| u.file == File::Vgpr && a.is_addend(u));
            (a.kinds.is("xdl") && b.valu() && any_overlap(addend, b.written(File::Vgpr)))
                .then(|| a.kinds.passes - 1)
        },
    },
];

/// Returns the wait states required before a use of a matrix instruction's result. They depend on its passes,
/// the kind of product, and the kind of use.
fn matrix_result(a: &Node<'_>, b: &Node<'_>) -> Option<u32> {
    let result = a.written(File::Vgpr).next().filter(|_| a.matrix())?;
    let touches = |u: &&Use| overlaps(result, u);
    let passes = a.kinds.passes;
    let later = a.generation(|rules| rules.late_matrix_results);
    let more = u32::from(later && passes > 2);
    let is = |kind| a.kinds.is(kind);
    if b.memory() {
        let needs = match () {
            _ if is("dgemm_4") => 9,
            _ if is("dgemm") => 18,
            _ if is("sgemm") => passes + 2,
            _ => passes + 3 + more,
        };
        return b.vgprs(|_| true).any(|u| touches(&u)).then_some(needs);
    }
    let committed = match () {
        _ if is("dgemm_4") => 6,
        _ if is("dgemm") => {
            if later {
                19
            } else {
                11
            }
        }
        _ if is("sgemm") => passes + 2,
        _ => passes + 3 + more,
    };
    if b.valu() {
        let uses = b.vgprs(|_| true).chain(b.written(File::Vgpr)).any(|u| touches(&u));
        return uses.then_some(committed);
    }
    if !b.matrix() {
        return None;
    }
    if b.vgprs(|u| !b.is_addend(u)).any(|u| touches(&u)) {
        return Some(committed);
    }
    let addend = b.vgprs(|u| b.is_addend(u)).find(touches)?;
    let same = addend.first == result.first && addend.count == result.count;
    Some(match () {
        _ if same && is("dgemm_4") => 4,
        _ if same => {
            if passes == 2 {
                2
            } else {
                0
            }
        }
        _ if is("dgemm") && b.kinds.is("xdl") => 0,
        _ if is("dgemm_4") => 4,
        _ if is("dgemm") => {
            if later {
                17
            } else {
                9
            }
        }
        _ if is("sgemm") => passes,
        _ => passes + 1 + more,
    })
}

fn overlaps(a: &Use, b: &Use) -> bool {
    a.file == b.file && a.first < b.first + b.count && b.first < a.first + a.count
}

fn any_overlap<'a>(a: impl Iterator<Item = &'a Use>, b: impl Iterator<Item = &'a Use> + Clone) -> bool {
    a.into_iter().any(|a| b.clone().any(|b| overlaps(a, b)))
}

/// Returns whether a use is the data of a store; the data of a buffer atomic is also its result.
fn is_data(used: &Use) -> bool {
    matches!(used.role, Role::Data | Role::D0)
}

impl Node<'_> {
    /// Returns whether the architecture's revision of the wait states has a property.
    fn generation(&self, property: impl Fn(&WaitStates) -> bool) -> bool {
        self.arch.facts().hazards.wait_states.as_ref().is_some_and(property)
    }

    /// Returns whether this is a vector ALU instruction other than a matrix instruction.
    fn valu(&self) -> bool {
        self.vector_alu() && !self.matrix()
    }

    fn vector_alu(&self) -> bool {
        matches!(self.effects.class, Class::Valu | Class::Matrix)
    }

    fn matrix(&self) -> bool {
        self.kinds.passes > 0
    }

    fn memory(&self) -> bool {
        matches!(self.effects.class, Class::Vmem | Class::Flat | Class::Scratch | Class::Lds)
    }

    fn dpp(&self) -> bool {
        self.field("DPP_CTRL").is_some()
    }

    fn field(&self, name: &str) -> Option<u32> {
        self.inst.field(self.arch.table(), name)
    }

    fn written(&self, file: File) -> impl Iterator<Item = &Use> + Clone {
        // EXEC has rules of its own.
        let own = move |u: &&Use| u.file == file && !(file == File::Sgpr && u.first >= M0 as u16);
        self.effects.writes.iter().filter(own)
    }

    fn sgprs(&self, which: impl Fn(&Use) -> bool + Clone) -> impl Iterator<Item = &Use> + Clone {
        self.effects.reads.iter().filter(move |u| u.file == File::Sgpr && which(u))
    }

    fn vgprs(&self, which: impl Fn(&Use) -> bool + Clone) -> impl Iterator<Item = &Use> + Clone {
        self.effects.reads.iter().filter(move |u| u.file == File::Vgpr && which(u))
    }

    fn writes_scalar(&self, first: usize, last: usize) -> bool {
        let within = |u: &Use| u.first as usize <= last && first < (u.first + u.count) as usize;
        self.effects.writes.iter().any(|u| u.file == File::Sgpr && within(u))
    }

    /// Returns whether a source is a lane mask.
    pub fn is_mask(&self, used: &Use) -> bool {
        let binding = wavesim_isa::operand::binding(self.arch, self.inst.entry);
        let own = |o: &&wavesim_isa::operand::Operand| o.input && o.role == used.role;
        binding.operands.iter().find(own).is_some_and(|o| o.fmt == wavesim_isa::operand::Fmt::Mask)
    }

    /// Returns whether a use is the matrix that is added to the product: the third source, except for sparse
    /// products, whose third source holds indices.
    fn is_addend(&self, used: &Use) -> bool {
        let accumulates = self.effects.reads.iter().any(|u| u.file == File::Vgpr && u.role == Role::D0);
        used.role == if accumulates { Role::D0 } else { Role::S2 }
    }

    /// Returns whether the result is a part of its register other than the lowest.
    fn writes_upper_part(&self) -> bool {
        /// DST_SEL of a whole register.
        const WHOLE: u32 = 6;
        let packed = self.field("OP_SEL_HI").is_some();
        self.field("DST_SEL").is_some_and(|part| part != WHOLE)
            || !packed && self.field("OP_SEL").is_some_and(|bits| bits & 8 != 0)
    }

    fn writes_lds(&self) -> bool {
        self.field("LDS").is_some_and(|lds| lds != 0)
    }

    fn calls(&self, builtin: Control) -> bool {
        self.effects.calls.contains(&builtin)
    }

    /// Returns whether the instruction writes a hardware register.
    pub fn sets_register(&self) -> bool {
        self.calls(Control::SetReg)
    }

    fn sends_message(&self) -> bool {
        self.calls(Control::SendMsg)
    }

    /// Returns whether M0 is added to the number of a scalar register.
    fn adds_m0(&self) -> bool {
        let relative = |u: &Use| u.file == File::Sgpr && matches!(u.relative, Some(Relative::M0 { .. }));
        self.effects.reads.iter().chain(&self.effects.writes).any(relative)
    }

    /// Returns whether the instruction may change whether vector instructions are skipped.
    pub fn sets_vskip(&self) -> bool {
        let Some(bits) = self.field("SIMM16").filter(|_| self.sets_register()) else {
            return self.effects.mode & VSKIP != 0;
        };
        let (first, last) = (bits >> 6 & 31, (bits >> 6 & 31) + (bits >> 11 & 31));
        bits & 63 == MODE && (first..=last).contains(&VSKIP.trailing_zeros())
    }

    /// Returns the operand codes of the inputs and outputs.
    fn codes(&self) -> impl Iterator<Item = Code> {
        let binding = wavesim_isa::operand::binding(self.arch, self.inst.entry);
        let code = |o| Some(wavesim_isa::operand::code(self.arch, o, binding.value(self.inst, o)?));
        binding.operands.iter().filter_map(code)
    }

    /// Returns the number of the hardware register that is accessed.
    fn hardware_register(&self) -> Option<u32> {
        self.field("SIMM16").map(|bits| bits & 63)
    }

    fn scalar_offset(&self) -> bool {
        self.effects.reads.iter().any(|u| u.file == File::Sgpr && u.role == Role::SOffset)
    }
}
