//! Turns a function with locations into host code: one instruction after the other.

use crate::allocated::Allocated;
use crate::assembler::Assembler;
use crate::control::jump_code;
use crate::encode::Assembled;
use crate::error::CompileError;
use crate::inst::Inst;
use crate::reg::{RAX, X14};
use crate::share::Shared;
use iced_x86::Code;

/// Returns the bytes of a function: code, tables, constants. Calls `begin` with the index and the offset of each
/// instruction.
pub(crate) fn assemble(
    code: &Allocated<'_>,
    begin: impl FnMut(usize, usize),
) -> Result<Assembled, CompileError> {
    Assembler::new(code)?.run(begin)
}

impl Assembler<'_> {
    fn run(mut self, mut begin: impl FnMut(usize, usize)) -> Result<Assembled, CompileError> {
        self.prologue();
        let function = self.function;
        let mut falls_through = true;
        let mut shared = self.code.shared.iter().peekable();
        for (i, inst) in function.insts.iter().enumerate() {
            if self.code.live.keep[i] {
                begin(i, self.out.position());
                falls_through = !matches!(inst, Inst::Return { .. } | Inst::Jump(_) | Inst::Table { .. });
                if let Some(&&Shared { first, last, vector }) = shared.peek() {
                    if i == first {
                        self.vec(vector.v, X14);
                        self.in_scratch = Some(vector);
                    }
                    self.inst(i, inst);
                    if i == last {
                        self.in_scratch = None;
                        shared.next();
                    }
                } else {
                    self.inst(i, inst);
                }
            }
        }
        if falls_through {
            self.out.bare(Code::Ud2);
        }
        self.out.finish(&function.constants)
    }

    fn inst(&mut self, i: usize, inst: &Inst) {
        match inst {
            Inst::Label(label) => self.out.label(*label),
            Inst::Jump(to) => self.jump(i, *to),
            Inst::Branch { cc, width, a, b, to } => {
                let cc = self.condition(*cc, *width, *a, *b);
                self.out.jump(jump_code(cc), *to);
            }
            Inst::BranchAny { a, b, none, to } => self.branch_any(*a, *b, *none, *to),
            Inst::ColdCall { function, arg } => self.cold_call(i, *function, *arg),
            Inst::Table { index, to } => self.jump_table(*index, to),
            Inst::Return { v } => {
                self.load_src(RAX, *v);
                self.epilogue();
            }
            Inst::Call { function, args, d } => self.call(*function, args, *d),
            _ if self.int_inst(i, inst) => {}
            _ => self.vec_inst(inst),
        }
    }
}
