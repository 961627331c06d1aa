//! Lowers statements. Conditions of lanes or of the wave become selects: all arms are computed, which is
//! sound because they have no side effects.

use crate::arith::builder::{Bug, R};
use crate::arith::val::{Val, low_mask};
use crate::lowering::{StatementLowering, recognise_statement};
use crate::state::emitter::Emitter;
use crate::state::env::Env;
use isa_lower::ir::{HostWidth, Mask, Op1, Op2, Stmt};
use isa_spec::pcode::ir::{LocalId, Role};
use wavesim_machine::state::wave::SGPRS;

impl Emitter<'_> {
    pub fn stmts(&mut self, list: &[Stmt]) -> R<()> {
        list.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    pub fn stmt(&mut self, stmt: &Stmt) -> R<()> {
        use StatementLowering as S;
        let (lowering, _) = recognise_statement(stmt)?;
        match lowering {
            S::Set(var, value) => {
                let v = self.value(value)?;
                self.env.set(var, v, value.host_width);
            }
            S::SetLow { var, host_width, width, value } => {
                let new = self.value(value)?;
                let new = self.op2(Op2::And, host_width, new, Val::Const(low_mask(width)))?;
                let old = self.env.var(var);
                let kept = self.op2(
                    Op2::And,
                    host_width,
                    old,
                    Val::Const(low_mask(host_width.bits()) & !low_mask(width)),
                )?;
                let v = self.op2(Op2::Or, host_width, kept, new)?;
                self.env.set(var, v, host_width);
            }
            S::Stored(value) => self.env.memory_value = Some(self.value(value)?),
            S::SetBit(mask, value) => {
                let v = self.value(value)?;
                let v = match v {
                    // Only the lowest bit counts.
                    Val::Mask(_) | Val::Bool(_) => v,
                    v => {
                        let bit = self.op2(Op2::And, value.host_width, v, Val::Const(1))?;
                        self.boolean(bit, value.host_width)?
                    }
                };
                self.env.bits.insert(mask, v);
            }
            S::If { arms, otherwise } => self.select_statements(arms, otherwise)?,
            S::Parts { value, parts } => {
                let v = self.value(value)?;
                let before = self.env.whole.replace(v);
                self.stmts(parts)?;
                self.env.whole = before;
            }
            S::Nothing => {}
            S::For { var, host_width, first, last, body } => {
                self.unrolled_loop(var, host_width, [first, last], body)?
            }
            S::Vector(vector) => {
                let initialised = std::mem::replace(&mut self.env.array_initialised, true);
                self.cross_lane(vector, initialised)?;
            }
            S::SetLane { lane, reg, value } => self.set_lane(lane, reg, value)?,
            S::SetState(state, value) => {
                let v = self.value(value)?;
                self.set_wave_state(state, value.host_width, v)?;
            }
            S::SetElement { id, index, value } => {
                let (index, v) = (self.value(index)?, self.value(value)?);
                let Val::Const(index) = index else { return Err(Bug("an index")) };
                let handlers = &self.selections.of(self.env.op_index).handlers;
                if handlers.locals[id as usize].len.is_some_and(|len| index < len as u128) {
                    self.env.elements.insert((id, index as u32), v);
                }
            }
            S::SetSgpr { reg, value } => {
                let (reg, v) = (self.value(reg)?, self.value(value)?);
                let Val::Const(reg) = reg else { return Err(Bug("a computed register number")) };
                let v = self.resize(v, value.host_width, HostWidth::W32)?;
                self.set_sgprs(reg as usize, &[v])?;
            }
            S::LoadScalar { dwords, addr } => {
                let words = self.scalar_load_dwords(addr, dwords)?;
                let op = self.env.op(self.ops);
                self.set_sgprs(op.d as usize, &words)?;
            }
            S::SetScalar { dwords, value } => {
                let v = self.value(value)?;
                let v = self.resize(v, value.host_width, HostWidth::W64)?;
                let words = self.split_dwords(v)?;
                let op = self.env.op(self.ops);
                self.set_sgprs(op.d as usize, &words[..dwords as usize])?;
            }
            S::SetMaskOperand(value) => {
                let (op, v) = (self.env.op(self.ops), self.value(value)?);
                let v = self.resize(v, value.host_width, HostWidth::W64)?;
                let words = self.split_dwords(v)?;
                let count = if self.wave64 { 2 } else { 1 };
                self.set_sgprs(op.d1 as usize, &words[..count])?;
            }
            // `branch_path` emits jumps.
            S::Jump(_) => return Err(Bug("a jump")),
        }
        Ok(())
    }

    fn select_statements(&mut self, arms: &[(isa_lower::ir::Value, Vec<Stmt>)], otherwise: &[Stmt]) -> R<()> {
        let Some(((cond, body), rest)) = arms.split_first() else { return self.stmts(otherwise) };
        let v = self.value(cond)?;
        let cond = self.boolean(v, cond.host_width)?;
        if let Val::Const(bits) = cond {
            return if bits != 0 { self.stmts(body) } else { self.select_statements(rest, otherwise) };
        }
        let env = self.env.clone();
        if self.packet.is_some() {
            // Lanes do not write scalar state.
            self.stmts(body)?;
            let then_env = std::mem::replace(&mut self.env, env);
            self.select_statements(rest, otherwise)?;
            return self.merge(cond, then_env);
        }
        // Both arms write scalar state: merge it.
        self.close_run()?;
        let scalars = self.scalars.clone();
        self.stmts(body)?;
        let then_env = std::mem::replace(&mut self.env, env);
        let then_scalars = std::mem::replace(&mut self.scalars, scalars);
        self.select_statements(rest, otherwise)?;
        self.merge(cond, then_env)?;
        self.merge_scalars(cond, then_scalars)
    }

    /// Merges variables: those of `other` where the condition holds.
    fn merge(&mut self, cond: Val, other: Env) -> R<()> {
        let ids: Vec<LocalId> = self.env.locals.keys().chain(other.locals.keys()).copied().collect();
        for id in ids {
            let (mine, theirs) = (self.env.locals.get(&id).copied(), other.locals.get(&id).copied());
            let Some((_, host_width)) = mine.or(theirs) else { continue };
            let (mine, theirs) = (mine.map_or(Val::Const(0), |v| v.0), theirs.map_or(Val::Const(0), |v| v.0));
            let v = self.select(cond, host_width, theirs, mine)?;
            self.env.locals.insert(id, (v, host_width));
        }
        let roles: Vec<Role> = self.env.operands.keys().chain(other.operands.keys()).copied().collect();
        for role in roles {
            let (mine, theirs) = (self.env.operands.get(&role).copied(), other.operands.get(&role).copied());
            let Some((_, host_width)) = mine.or(theirs) else { continue };
            let (mine, theirs) = (mine.map_or(Val::Const(0), |v| v.0), theirs.map_or(Val::Const(0), |v| v.0));
            let v = self.select(cond, host_width, theirs, mine)?;
            self.env.operands.insert(role, (v, host_width));
        }
        let masks: Vec<Mask> = self.env.bits.keys().chain(other.bits.keys()).copied().collect();
        for mask in masks {
            let bit = |env: &Env| env.bits.get(&mask).copied().unwrap_or(Val::Const(0));
            let (mine, theirs) = (bit(&self.env), bit(&other));
            let v = self.select_bool(cond, theirs, mine)?;
            self.env.bits.insert(mask, v);
        }
        Ok(())
    }

    /// Selects one of two booleans.
    fn select_bool(&mut self, cond: Val, a: Val, b: Val) -> R<Val> {
        let not = self.op1(Op1::IsZero, HostWidth::W32, cond)?;
        let (a, b) = (self.logical_op(true, cond, a)?, self.logical_op(true, not, b)?);
        self.logical_op(false, a, b)
    }

    fn merge_scalars(&mut self, cond: Val, other: crate::state::scalars::Scalars) -> R<()> {
        for code in 0..SGPRS {
            let (mine, theirs) = (self.scalars.words[code], other.words[code]);
            if !mine.is_some_and(|w| w.written) && !theirs.is_some_and(|w| w.written) {
                self.scalars.words[code] = mine.filter(|_| theirs.is_some());
                continue;
            }
            // A register that one arm has not read is unchanged: the arms have stored nothing to the wave.
            let old = if mine.is_none() || theirs.is_none() { Some(self.load_sgpr(code)) } else { None };
            let value = |w: Option<crate::state::scalars::CachedScalar>| {
                w.map(|w| w.val).or(old).unwrap_or(Val::Const(0))
            };
            let val = self.select(cond, HostWidth::W32, value(theirs), value(mine))?;
            self.scalars.words[code] = Some(crate::state::scalars::CachedScalar { val, written: true });
        }
        let (mine, theirs) = (self.scalars.scc, other.scc);
        if mine.is_some_and(|w| w.written) || theirs.is_some_and(|w| w.written) {
            let old = if mine.is_none() || theirs.is_none() { Some(self.load_scc()) } else { None };
            let value = |w: Option<crate::state::scalars::CachedScalar>| {
                w.map(|w| w.val).or(old).unwrap_or(Val::Const(0))
            };
            let val = self.select(cond, HostWidth::W32, value(theirs), value(mine))?;
            self.scalars.scc = Some(crate::state::scalars::CachedScalar { val, written: true });
        } else {
            self.scalars.scc = mine.filter(|_| theirs.is_some());
        }
        Ok(())
    }
}
