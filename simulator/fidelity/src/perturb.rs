//! Approximate operations at the ends of their documented error, and how much the outputs then differ.

use crate::sites;
use crate::ulp::{self, Largest};
use isa_exactness::{Bound, BuiltinKind, approximated, kind};
use isa_spec::pcode::ir::{BinOp, Builtin, Expr, ExprKind, Semantics, Ty};
use isa_spec::pcode::visit::{VisitorMut, walk_expr_mut};
use std::collections::BTreeMap;
use wavesim_array::Array;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_engine::sched::dispatch::{self, Dispatch};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::overrides::Overrides;
use wavesim_machine::exec::program::Program;
use wavesim_machine::fault::Fault;

/// An end of the documented error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every result is nearer to zero.
    Low,
    /// Every result is farther from zero.
    High,
    /// One or the other, as the bits of the result decide, differently for each number: errors that cancel each other
    /// at one end do not do so here.
    Mixed(u32),
    /// No error: waves and workgroups run in another order, in which atomics add floats.
    Order(u32),
}

impl End {
    /// The ends of a report.
    pub const ALL: [End; 4] = [End::Low, End::High, End::Mixed(1), End::Mixed(2)];
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Low => f.write_str("low"),
            End::High => f.write_str("high"),
            End::Mixed(n) => write!(f, "mixed {n}"),
            End::Order(n) => write!(f, "order {n}"),
        }
    }
}

/// The perturbed semantics of a program.
pub struct Perturbed {
    /// The replaced instructions; none if nothing is approximated.
    pub overrides: Option<Overrides>,
    /// Indices of approximate instructions that are not perturbed, as no bound is documented.
    pub left: Vec<usize>,
    /// Number of instructions that are.
    pub count: usize,
}

/// Returns the semantics of a program with approximations at an end of their error. `assumed` is the error, in ULP, of
/// functions without a documented one; without it, they stay as they are.
pub fn perturb(program: &Program, end: End, assumed: Option<u64>) -> Perturbed {
    let table = program.arch.table();
    let mut replaced: BTreeMap<String, Semantics> = BTreeMap::new();
    let mut out = Perturbed { overrides: None, left: Vec::new(), count: 0 };
    for (index, site) in sites::of(program).iter().enumerate() {
        let inst = &program.insts[index];
        let Some((_, first, second)) = program.semantics(program.pcs[index]) else { continue };
        let halves = [(Some(first), inst.entry), (second, inst.entry_y)];
        for (half, (sem, entry)) in site.halves.iter().zip(halves) {
            let (Some(half), Some(sem)) = (half, sem) else { continue };
            let ulp = match half.approximate {
                Some((Bound::Ulp(n), _)) => Some(n),
                Some((Bound::Undocumented, _)) => assumed,
                None if half.exactness.approximate.is_empty() => continue,
                None => None,
            };
            let Some(ulp) = ulp else {
                out.left.push(index);
                continue;
            };
            out.count += 1;
            let name = table.instructions[table.entries[entry as usize].inst as usize].name;
            replaced.entry(name.to_string()).or_insert_with(|| {
                let mut sem = sem.clone();
                Shift { ulp, end }.stmts(&mut sem.body);
                sem
            });
        }
    }
    if !replaced.is_empty() {
        out.overrides = Some(Overrides::with(program.overrides(), program.arch, replaced));
    }
    out
}

/// Returns whether the result of an instruction of the program depends on the order in which waves add floats to memory.
pub fn depends_on_order(program: &Program) -> bool {
    let sites = sites::of(program);
    sites.iter().any(|site| site.halves.iter().flatten().any(|half| half.exactness.order_dependent))
}

/// Shifts the results of approximated functions.
struct Shift {
    ulp: u64,
    end: End,
}

impl<'a> VisitorMut<'a> for Shift {
    fn expr(&mut self, expr: &'a mut Expr) {
        // The result of a function that is computed in another format is the converted one.
        let converted = matches!(&expr.kind, ExprKind::Call(Builtin::Pure(outer), args)
            if expr.ty.is_float() && kind(*outer) == BuiltinKind::Rounds && args.len() == 1 && approximated(&args[0]).is_some());
        if converted || approximated(expr).is_some() {
            *expr = self.shifted(expr);
        } else {
            walk_expr_mut(self, expr);
        }
    }
}

impl Shift {
    /// Returns an expression whose value is that of `exact`, shifted. Special values (zeros, infinities, NaNs), and
    /// results next to denormals, stay.
    fn shifted(&self, exact: &Expr) -> Expr {
        let width = exact.ty.width() as u16;
        let exponent: u128 = match exact.ty {
            Ty::F16 => 0x7c00,
            Ty::BF16 => 0x7f80,
            Ty::F32 => 0x7f80_0000,
            _ => 0x7ff0_0000_0000_0000,
        };
        let span = exact.span;
        let of = |ty: Ty, kind: ExprKind| Expr { kind, ty, span };
        let bits_ty = Ty::U(width);
        let number = |value: u128| of(bits_ty, ExprKind::Const(value));
        let binary = |op, a: Expr, b: Expr| of(bits_ty, ExprKind::Binary(op, Box::new(a), Box::new(b)));
        let test = |op, a: Expr, b: Expr| of(Ty::U(1), ExprKind::Binary(op, Box::new(a), Box::new(b)));
        let bits = || of(bits_ty, ExprKind::Bits(Box::new(exact.clone())));
        let moved = |op| binary(op, bits(), number(u128::from(self.ulp)));
        let moved = match self.end {
            End::Order(_) => return exact.clone(),
            End::Low => moved(BinOp::Sub),
            End::High => moved(BinOp::Add),
            End::Mixed(seed) => {
                // The top bit of a product with an odd number depends on all bits.
                let factor = (0x9e37_79b9_7f4a_7c15_u128 ^ u128::from(seed) << 8 | 1) & ((1 << width) - 1);
                let hash = binary(BinOp::Mul, bits(), number(factor));
                let is_high = test(BinOp::Ge, hash, number(1 << (width - 1)));
                let (high, low) = (moved(BinOp::Add), moved(BinOp::Sub));
                of(bits_ty, ExprKind::Select(Box::new(is_high), Box::new(high), Box::new(low)))
            }
        };
        let field = |value: Expr| binary(BinOp::And, value, number(exponent));
        let finite = test(BinOp::Ne, field(bits()), number(exponent));
        let normal = test(BinOp::Ne, field(bits()), number(0));
        let stays_normal = test(BinOp::Ne, field(moved.clone()), number(0));
        let and = |a: Expr, b: Expr| test(BinOp::LogicalAnd, a, b);
        let applies = and(and(finite, normal), stays_normal);
        let moved = of(exact.ty, ExprKind::Bits(Box::new(moved)));
        of(exact.ty, ExprKind::Select(Box::new(applies), Box::new(moved), Box::new(exact.clone())))
    }
}

/// The results of the unperturbed run.
pub struct Baseline {
    /// The outputs.
    pub outputs: Vec<(String, Array)>,
    /// By instruction: its executions.
    pub counts: Vec<u64>,
}

/// An output of perturbed runs that differs.
#[derive(Debug, Clone)]
pub struct OutputDifference {
    /// Name of the output.
    pub name: String,
    /// The unperturbed output.
    pub expected: Array,
    /// The perturbed output with the largest difference.
    pub actual: Array,
    /// The difference.
    pub largest: Largest,
    /// The run.
    pub end: End,
}

/// What perturbed runs have shown.
#[derive(Default)]
pub struct Differences {
    /// The outputs that differ, in their order.
    pub outputs: Vec<OutputDifference>,
    /// The first instruction that has not been executed as often, with the run, and the numbers of executions without
    /// and with perturbation.
    pub control: Option<(usize, End, u64, u64)>,
    /// Runs that ended with a fault.
    pub faults: Vec<(End, Box<Fault>)>,
    /// Number of runs with shifted approximations.
    pub runs: usize,
    /// Number of runs in other orders.
    pub orders: usize,
}

struct Counts(Vec<u64>);

impl Observer for Counts {
    fn after(&mut self, step: &Step<'_>, _done: &Done<'_>) {
        self.0[step.index] += 1;
    }
}

impl Differences {
    /// Runs a perturbed launch, and compares it with the baseline.
    ///
    /// # Errors
    /// The outputs cannot be read.
    pub fn add(
        &mut self,
        end: End,
        prepared: &Prepared,
        dispatch: &Dispatch<'_>,
        baseline: &Baseline,
    ) -> Result<(), wavesim_machine::memory::MemError> {
        let mut counts = Counts(vec![0; prepared.program.insts.len()]);
        let (_, result) = dispatch::run_observed(dispatch, &prepared.memory, &mut counts);
        match end {
            End::Order(_) => self.orders += 1,
            End::Low | End::High | End::Mixed(_) => self.runs += 1,
        }
        if let Err(fault) = result {
            self.faults.push((end, fault));
            return Ok(());
        }
        if self.control.is_none() {
            let mut pairs = baseline.counts.iter().zip(&counts.0).enumerate();
            self.control = pairs.find(|(_, (a, b))| a != b).map(|(index, (a, b))| (index, end, *a, *b));
        }
        for (name, actual) in prepared.outputs()? {
            let expected = baseline.outputs.iter().find(|(other, _)| other == name);
            let Some((_, expected)) = expected else { continue };
            let Some(largest) = ulp::largest(expected, &actual) else { continue };
            let next =
                OutputDifference { name: name.to_string(), expected: expected.clone(), actual, largest, end };
            match self.outputs.iter_mut().find(|known| known.name == name) {
                Some(known) if known.largest.distance >= next.largest.distance => {}
                Some(known) => *known = next,
                None => self.outputs.push(next),
            }
        }
        Ok(())
    }
}
