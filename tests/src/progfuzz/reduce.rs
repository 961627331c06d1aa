//! Automatic reduction of failing programs: parts of the tree are removed or replaced by smaller ones, as
//! long as the same engines differ from the host.

use super::build::Scratch;
use super::run::{Difference, Engine, What};
use super::tree::{Block, Expr, Program, Step};
use super::{Failure, Reason, Reference};

/// Builds per reduction.
const BUDGET: u32 = 1500;

struct Reducer<'a> {
    failure: &'a Failure,
    scratch: Scratch,
    engines: Vec<Engine>,
    signature: Vec<(Engine, bool)>,
    left: u32,
    best: Program,
}

/// The engines that differ, and how.
fn signature(differences: &[Difference], engines: &[Engine]) -> Vec<(Engine, bool)> {
    let mut list: Vec<_> = differences.iter().map(|d| (d.engine, matches!(d.what, What::Fault(_)))).collect();
    list.retain(|(engine, _)| engines.contains(engine));
    list.dedup();
    list
}

/// Reduces a failing program. Compiled code in the background depends on time: if another engine fails as
/// well, it is not considered.
pub fn reduce(failure: &Failure) -> std::io::Result<Program> {
    let mut engines = vec![Engine::Interpreter];
    let compiled = |e: &Engine| !matches!(e, Engine::Interpreter);
    let mut failing: Vec<Engine> = failure.differences.iter().map(|d| d.engine).filter(compiled).collect();
    // The default threshold first, then others, then the background.
    failing.sort_by_key(|e| (*e != Engine::Jit, *e == Engine::Auto));
    engines.extend(failing.first());
    let mut reducer = Reducer {
        failure,
        scratch: Scratch::new()?,
        signature: Vec::new(),
        engines,
        left: BUDGET,
        best: failure.program.clone(),
    };
    // Only the first kernel that fails.
    let first = failure.first();
    reducer.signature = signature(
        &failure.differences.iter().filter(|d| d.kernel == first).cloned().collect::<Vec<_>>(),
        &reducer.engines,
    );
    reducer.try_program(failure.until_first_failure());
    while reducer.pass() && reducer.left > 0 {}
    reducer.renumber();
    Ok(reducer.best)
}

/// Returns a program with one of its blocks changed.
fn with_block(program: &Program, index: usize, change: &mut dyn FnMut(&mut Block)) -> Program {
    let mut program = program.clone();
    let mut number = 0;
    let mut pending = Some(change);
    program.blocks(&mut |block| {
        if number == index
            && let Some(change) = pending.take()
        {
            change(block);
        }
        number += 1;
    });
    program
}

fn with_steps(program: &Program, index: usize, change: &mut dyn FnMut(&mut Vec<Step>)) -> Program {
    let mut program = program.clone();
    let mut number = 0;
    let mut pending = Some(change);
    program.steps(&mut |steps| {
        if number == index
            && let Some(change) = pending.take()
        {
            change(steps);
        }
        number += 1;
    });
    program
}

fn with_expr(program: &Program, index: usize, change: &mut dyn FnMut(&mut Expr)) -> Program {
    let mut program = program.clone();
    let mut number = 0;
    let mut pending = Some(change);
    program.exprs(&mut |e| {
        if number == index
            && let Some(change) = pending.take()
        {
            change(e);
        }
        number += 1;
    });
    program
}

/// The length of each block, of each list of steps, and the number of expressions.
fn shape(program: &Program) -> (Vec<usize>, Vec<usize>, usize) {
    let mut program = program.clone();
    let (mut blocks, mut steps, mut exprs) = (Vec::new(), Vec::new(), 0);
    program.blocks(&mut |b| blocks.push(b.len()));
    program.steps(&mut |s| steps.push(s.len()));
    program.exprs(&mut |_| exprs += 1);
    (blocks, steps, exprs)
}

impl Reducer<'_> {
    /// Keeps a program if it fails in the same way.
    fn try_program(&mut self, program: Program) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let fails = |reducer: &Self| -> Result<bool, Reason> {
            let reference = Reference::new(program.clone(), &reducer.scratch, false)?;
            let differences =
                reference.compare(&reducer.scratch, &reducer.failure.configuration, &reducer.engines)?;
            Ok(signature(&differences, &reducer.engines) == reducer.signature)
        };
        let fails = fails(self).unwrap_or(false);
        if fails {
            self.best = program;
        }
        fails
    }

    fn pass(&mut self) -> bool {
        let passes = [
            Reducer::launch,
            Reducer::kernels,
            Reducer::steps,
            Reducer::statements,
            Reducer::functions,
            Reducer::expressions,
        ];
        passes.into_iter().fold(false, |changed, pass| pass(self) | changed)
    }

    fn launch(&mut self) -> bool {
        let mut changed = false;
        for groups in [[1, 1], [2, 1]] {
            if self.best.groups != groups && groups[0] < self.best.groups.iter().product() {
                changed |= self.try_program(Program { groups, ..self.best.clone() });
            }
        }
        for items in [32, 64, 128] {
            let block = [items, 1];
            if items < self.best.block.iter().product() {
                changed |= self.try_program(Program { block, ..self.best.clone() });
            }
        }
        changed
    }

    fn kernels(&mut self) -> bool {
        let mut changed = false;
        while self.best.kernels.len() > 1 {
            let mut program = self.best.clone();
            program.kernels.remove(0);
            if !self.try_program(program) {
                break;
            }
            changed = true;
        }
        for i in 0..self.best.kernels.len() {
            if !self.best.kernels[i].attributes.is_empty() {
                let mut program = self.best.clone();
                program.kernels[i].attributes.clear();
                changed |= self.try_program(program);
            }
            if self.best.kernels[i].generic {
                let mut program = self.best.clone();
                program.kernels[i].generic = false;
                changed |= self.try_program(program);
            }
        }
        changed
    }

    /// Removes steps, or replaces a loop or condition by its contents.
    fn steps(&mut self) -> bool {
        let mut changed = false;
        let mut index = 0;
        while let Some(&length) = shape(&self.best).1.get(index) {
            for at in (0..length).rev() {
                if self.try_program(with_steps(&self.best, index, &mut |s| drop(s.remove(at)))) {
                    changed = true;
                    continue;
                }
                let unwrap = &mut |steps: &mut Vec<Step>| {
                    if let Step::Loop { steps: inner, .. } | Step::If { steps: inner, .. } = steps[at].clone()
                    {
                        steps.splice(at..=at, inner);
                    }
                };
                let unwrapped = with_steps(&self.best, index, unwrap);
                if shape(&unwrapped).1.len() < shape(&self.best).1.len() {
                    changed |= self.try_program(unwrapped);
                }
            }
            index += 1;
        }
        changed
    }

    /// Removes statements, first many at a time, or replaces them by their blocks.
    fn statements(&mut self) -> bool {
        let mut changed = false;
        let mut index = 0;
        while let Some(&length) = shape(&self.best).0.get(index) {
            let mut size = length;
            while size > 0 {
                let mut end = shape(&self.best).0.get(index).copied().unwrap_or_default();
                while end > 0 {
                    let start = end.saturating_sub(size);
                    let remove = &mut |block: &mut Block| drop(block.drain(start..end));
                    changed |= self.try_program(with_block(&self.best, index, remove));
                    end = start;
                }
                size /= 2;
            }
            let length = shape(&self.best).0.get(index).copied().unwrap_or_default();
            for at in (0..length).rev() {
                let mut nested = 0;
                with_block(&self.best, index, &mut |block| nested = block[at].blocks.len());
                for inner in 0..nested {
                    let unwrap = &mut |block: &mut Block| {
                        let inner = block[at].blocks[inner].clone();
                        block.splice(at..=at, inner);
                    };
                    if self.try_program(with_block(&self.best, index, unwrap)) {
                        changed = true;
                        break;
                    }
                }
            }
            index += 1;
        }
        changed
    }

    fn functions(&mut self) -> bool {
        let mut changed = false;
        for at in (0..self.best.functions.len()).rev() {
            let mut program = self.best.clone();
            program.functions.remove(at);
            changed |= self.try_program(program);
        }
        changed
    }

    /// Replaces expressions by constants, or by a part of the same type.
    fn expressions(&mut self) -> bool {
        let mut changed = false;
        let mut index = 0;
        while index < shape(&self.best).2 {
            let mut found = None;
            with_expr(&self.best, index, &mut |e| found = Some(e.clone()));
            let Some(found) = found else { break };
            let mut candidates: Vec<Expr> = Vec::new();
            if !found.text.starts_with("((") || !found.operands.is_empty() {
                // LLVM 19 does not compute `0 - x` of floats correctly.
                let values = if found.ty.scalar.is_float() { [1, 2] } else { [0, 1] };
                candidates.extend(values.map(|value| Expr::small(found.ty, value)));
            }
            for operand in &found.operands {
                let mut operand = operand.clone();
                operand.visit(&mut |e| {
                    if e.ty == found.ty {
                        candidates.push(e.clone());
                    }
                    e.ty != found.ty
                });
            }
            for candidate in candidates {
                let mut replacement = Some(candidate);
                let replaced = with_expr(&self.best, index, &mut |e| {
                    if let Some(new) = replacement.take() {
                        *e = new;
                    }
                });
                if self.try_program(replaced) {
                    changed = true;
                    break;
                }
            }
            index += 1;
        }
        changed
    }

    /// Numbers the slots of the output from 0, so that it is small.
    fn renumber(&mut self) {
        let mut program = self.best.clone();
        let mut next = 0;
        program.blocks(&mut |block| {
            for statement in block {
                if let Some((_, rest)) = statement.text.strip_prefix("OUT(").and_then(|t| t.split_once(')')) {
                    statement.text = format!("OUT({next}){rest}");
                    next += 1;
                }
            }
        });
        self.try_program(program);
    }
}
