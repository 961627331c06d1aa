//! What DPP and output modifiers add to an operand: the lane that a source comes from, and arithmetic on the result.

use super::Machine;
use crate::routes::Route;
use isa_export::smt::{Setting, Term, Terms, arithmetic};
use isa_spec::arith::{self, FloatEnv};
use isa_spec::pcode::builtins::Pure;
use isa_spec::pcode::ir::{BinOp, Ty};
use wavesim_isa::dpp;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{Binding, Fmt, Half, Operand};
use wavesim_machine::exec::output::{self, DX10_CLAMP, IEEE, OMOD};

/// A permutation that leaves each lane where it is: `quad_perm:[0,1,2,3]`.
const IDENTITY: u32 = 0xe4;

/// Returns an instruction without output modifiers, whose DPP changes nothing.
pub(super) fn plain(inst: &Inst, binding: &Binding) -> Inst {
    let mut plain = *inst;
    let m = &binding.mods;
    let mut set = |field: Option<u8>, value: u32| {
        if let Some(field) = field {
            plain.fields[field as usize] = value;
        }
    };
    set(m.omod, 0);
    set(m.clamp, 0);
    if m.lane_sel.is_some() {
        set(m.src0, dpp::DPP8_FETCH_INACTIVE);
    }
    for (field, value) in
        [(m.dpp_ctrl, IDENTITY), (m.fi, 1), (m.bound_ctrl, 1), (m.row_mask, 15), (m.bank_mask, 15)]
    {
        set(field, value);
    }
    if let Some(first) = m.lane_sel {
        for lane in 0..8 {
            plain.fields[first as usize + lane] = lane as u32;
        }
    }
    plain
}

impl Machine<'_> {
    /// The lane that DPP reads, and the condition that it may be read.
    fn source_lane(&self, terms: &mut Terms, lane: u32) -> Option<(u32, Term)> {
        let m = &self.binding.mods;
        let get = |field| self.binding.get(self.inst, field);
        let (from, fetch) = match m.lane_sel {
            Some(first) => {
                let from = lane & !7 | self.inst.fields[first as usize + (lane & 7) as usize];
                (from, get(m.src0) == dpp::DPP8_FETCH_INACTIVE)
            }
            None => (dpp::source(self.setup.arch, get(m.dpp_ctrl), lane)?, get(m.fi) != 0),
        };
        if from >= self.setup.wave_size {
            return None;
        }
        let exec = self.exec(terms);
        let valid = if fetch { terms.bool(true) } else { terms.extract(exec, from, 1) };
        Some((from, valid))
    }

    /// The condition that a lane writes results: its row and bank are enabled, and the lane that it reads is valid or
    /// counts as 0.
    pub(super) fn is_enabled(&self, terms: &mut Terms, lane: u32) -> Term {
        let m = &self.binding.mods;
        let get = |field| self.binding.get(self.inst, field);
        if m.dpp_ctrl.is_none() {
            return terms.bool(true);
        }
        let row = get(m.row_mask) >> ((lane / 16) & 3) & 1;
        let bank = get(m.bank_mask) >> ((lane / 4) & 3) & 1;
        if row == 0 || bank == 0 {
            return terms.bool(false);
        }
        if get(m.bound_ctrl) != 0 || self.operand_of(isa_spec::pcode::ir::Role::S0).is_none() {
            return terms.bool(true);
        }
        match self.source_lane(terms, lane) {
            Some((_, valid)) => valid,
            None => terms.bool(false),
        }
    }

    /// The value of the first source, which DPP takes from another lane; 0 with modifiers, if that lane is invalid.
    pub(super) fn permuted(&self, terms: &mut Terms, route: &Route, lane: u32) -> Term {
        let zero = self.follow(terms, route, &|terms, _| terms.constant(0, 32));
        let Some((from, valid)) = self.source_lane(terms, lane) else { return zero };
        let value = self.follow(terms, route, &|terms, register| self.get(terms, from, register));
        terms.ite(valid, value, zero)
    }

    /// Applies the output modifiers to a float result.
    pub(super) fn output(&self, terms: &mut Terms, operand: &Operand, value: Term) -> Term {
        let ty = match operand.fmt {
            Fmt::F16 => Ty::F16,
            Fmt::F32 => Ty::F32,
            Fmt::F64 => Ty::F64,
            Fmt::BF16 => Ty::BF16,
            Fmt::Packed(Half::F16) if operand.size_bits == 32 && self.clamps() => {
                let halves = [0, 16].map(|lo| {
                    let half = terms.extract(value, lo, 16);
                    self.clamped(terms, half, Ty::F16)
                });
                return terms.concat(halves[1], halves[0]);
            }
            _ => return value,
        };
        let omod = self.binding.get(self.inst, self.binding.mods.omod);
        let clamps = self.clamps() && !self.sem.uses.fields.contains("CLAMP");
        if omod == 0 && !clamps {
            return value;
        }
        let width = terms.width(value);
        let mut out = terms.resize(value, ty.width());
        if omod != 0 {
            out = self.multiplied(terms, out, ty, omod);
        }
        if clamps {
            out = self.clamped(terms, out, ty);
        }
        // A value that is wider than its format keeps no upper bits, a narrower one has none.
        terms.resize(out, width)
    }

    fn clamps(&self) -> bool {
        self.binding.get(self.inst, self.binding.mods.clamp) != 0
    }

    /// The factor of OMOD; `output::omod` with terms.
    fn multiplied(&self, terms: &mut Terms, value: Term, ty: Ty, omod: u32) -> Term {
        let (arch, mode) = (self.setup.arch, self.setup.mode);
        let mut env = FloatEnv::from_mode(mode);
        if !output::omod_applies(arch, env.flush_out(ty), mode & IEEE != 0) {
            return value;
        }
        if arch.facts().float.omod_always {
            (env.flush_out32, env.flush_out64) = (true, true);
        }
        let factor = terms.constant(arith::constant(OMOD[omod as usize & 3], ty), ty.width());
        let setting = Setting { env, ..self.setting() };
        let out = arithmetic::binary(terms, setting, BinOp::Mul, value, factor, ty);
        let minus = terms.constant(1 << (ty.width() - 1), ty.width());
        let (is_minus_zero, zero) = (terms.eq(out, minus), terms.constant(0, ty.width()));
        terms.ite(is_minus_zero, zero, out)
    }

    /// To [0, 1]; `output::clamp` with terms.
    fn clamped(&self, terms: &mut Terms, value: Term, ty: Ty) -> Term {
        let width = ty.width();
        let setting = Setting { env: FloatEnv::KEEP, ..self.setting() };
        let (zero, one) = (terms.constant(0, width), terms.constant(arith::constant(1.0, ty), width));
        let low = arithmetic::binary(terms, setting, BinOp::Le, value, zero, ty);
        let high = arithmetic::binary(terms, setting, BinOp::Gt, value, one, ty);
        let below = terms.ite(high, one, value);
        let number = terms.ite(low, zero, below);
        let nan = arithmetic::pure(terms, setting, Pure::IsNan, &[value], &[ty], 1);
        let clears = self.setup.mode & DX10_CLAMP != 0 || output::always_clamps_nan(self.setup.arch);
        terms.ite(nan, if clears { zero } else { value }, number)
    }
}
