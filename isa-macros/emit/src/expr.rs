//! Expressions and statements of the IR as Rust. Values are unsigned integers of 32, 64 or 128 bits holding the type's bits, upper
//! bits zero; floats are bit patterns. Float operations go through `rt` with the mode `M`.

use super::eights::Eights;
use super::rows::{Accesses, set_address};
use isa_spec::pcode::ir::*;
use isa_spec::pcode::shape::is_lane_id;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// How names are reached in the body being emitted.
#[derive(Clone)]
pub struct Emit<'a> {
    pub sem: &'a Semantics,
    /// Loads and stores and control may stop the handler: expressions use `?`-like early exits.
    pub lane: bool,
    /// Masks that the body builds a lane's bit of.
    pub mask_d0: bool,
    pub returns: bool,
    /// A read-modify-write of memory that other host threads may share: the store is an exchange, and a lost one starts the lane anew.
    pub atomic: bool,
    /// A vector instruction that runs once a wave: its sources may have modifiers.
    pub once_modified: bool,
    /// Memory is reached for all lanes at once: loads are in rows already, stores go to rows.
    pub rows: Option<&'a Accesses<'a>>,
    /// Operands of a scalar instruction, read once before the body.
    pub staged: Vec<Role>,
    /// All of them are SGPRs and constants in the scalar file.
    pub plain_scalars: bool,
    /// Calls that are made for eight lanes at once: their values are in rows.
    pub eights: Option<&'a Eights<'a>>,
}

/// The Rust integer that holds `width` bits.
pub fn holder(width: u32) -> Ident {
    format_ident!(
        "{}",
        if width <= 32 {
            "u32"
        } else if width <= 64 {
            "u64"
        } else {
            "u128"
        }
    )
}

fn bits_of(width: u32) -> u32 {
    if width <= 32 {
        32
    } else if width <= 64 {
        64
    } else {
        128
    }
}

pub fn local(id: LocalId) -> Ident {
    format_ident!("t{id}")
}

pub fn literal(value: u128, width: u32) -> TokenStream {
    match bits_of(width) {
        32 => {
            let v = value as u32;
            quote! { #v }
        }
        64 => {
            let v = value as u64;
            quote! { #v }
        }
        _ => quote! { #value },
    }
}

/// Clears bits above `width` if the holder has any.
fn masked(value: TokenStream, width: u32) -> TokenStream {
    if width == bits_of(width) {
        return value;
    }
    let mask = literal((1u128 << width) - 1, width);
    quote! { ((#value) & #mask) }
}

/// The value as a signed Rust integer.
fn signed(value: TokenStream, width: u32) -> TokenStream {
    let bits = bits_of(width);
    let ty = format_ident!("i{bits}");
    if width == bits {
        quote! { ((#value) as #ty) }
    } else {
        let shift = bits - width;
        quote! { ((((#value) << #shift) as #ty) >> #shift) }
    }
}

pub fn role_name(role: Role) -> Ident {
    format_ident!("{}", format!("{role:?}").to_lowercase())
}

fn float_suffix(ty: Ty) -> &'static str {
    match ty {
        Ty::F16 => "f16",
        Ty::BF16 => "bf16",
        Ty::F32 => "f32",
        Ty::F64 => "f64",
        Ty::FP8 => "fp8",
        Ty::BF8 => "bf8",
        _ => "int",
    }
}

/// `rt::Ty`'s constant for a type, for the out-of-line builtins.
fn ty_token(ty: Ty) -> TokenStream {
    match ty {
        Ty::B(w) => quote! { rt::Ty::B(#w) },
        Ty::U(w) => quote! { rt::Ty::U(#w) },
        Ty::I(w) => quote! { rt::Ty::I(#w) },
        other => {
            let name = format_ident!("{}", format!("{other:?}"));
            quote! { rt::Ty::#name }
        }
    }
}

impl Emit<'_> {
    pub fn stmts(&self, list: &[Stmt]) -> TokenStream {
        list.iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(&self, stmt: &Stmt) -> TokenStream {
        match stmt {
            Stmt::Assign { place, value, .. } => {
                let value = self.expr(value);
                self.assign(place, value)
            }
            Stmt::If { arms, otherwise, .. } => {
                let otherwise = self.stmts(otherwise);
                let mut out = quote! { { #otherwise } };
                for (cond, body) in arms.iter().rev() {
                    let cond = self.expr(cond);
                    let body = self.stmts(body);
                    out = quote! { if #cond != 0 { #body } else #out };
                    if arms.len() > 1 {
                        out = quote! { { #out } };
                    }
                }
                out
            }
            Stmt::For { var, from, to, body, .. } => {
                let var = local(*var);
                let from = self.expr(from);
                let to = self.expr(to);
                let body = self.stmts(body);
                quote! {
                    let (mut i, end) = ((#from) as i32, (#to) as i32);
                    while i <= end {
                        #var = i as u32;
                        #body
                        i += 1;
                    }
                }
                .into_block()
            }
            Stmt::While { cond, body, .. } => {
                let cond = self.expr(cond);
                let body = self.stmts(body);
                quote! { while #cond != 0 { #body } }
            }
            Stmt::Return { .. } => quote! { break 'body; },
            Stmt::Call { builtin, args, .. } => {
                let args = self.wide_args(args);
                let builtin = format_ident!("{}", format!("{builtin:?}"));
                quote! {
                    { let args = [#(#args),*]; if let Err(flow) = rt::control(cx, rt::Control::#builtin, &args) { return flow; } }
                }
            }
        }
    }

    fn wide_args(&self, args: &[Expr]) -> Vec<TokenStream> {
        args.iter()
            .map(|a| {
                let v = self.expr(a);
                quote! { (#v) as u128 }
            })
            .collect()
    }

    fn assign(&self, place: &Place, value: TokenStream) -> TokenStream {
        let width = place.ty.width();
        match &place.kind {
            PlaceKind::Local(id) => {
                let name = local(*id);
                quote! { #name = #value; }
            }
            PlaceKind::Element(id, index) => {
                let name = local(*id);
                let index = self.expr(index);
                quote! { { let v = #value; if let Some(slot) = #name.get_mut((#index) as usize) { *slot = v; } } }
            }
            PlaceKind::Operand(role) => self.assign_operand(*role, value, width),
            PlaceKind::State(state) => self.assign_state(*state, value),
            PlaceKind::Slice { base, lo } => {
                // A lane's own bit of a mask.
                if self.lane && is_lane_id(lo) {
                    match &base.kind {
                        PlaceKind::Operand(Role::D0) if self.mask_d0 => return quote! { m_d0 = #value; },
                        PlaceKind::Operand(Role::Vcc) => return quote! { m_vcc = #value; },
                        PlaceKind::State(State::Exec) => return quote! { m_exec = #value; },
                        _ => {}
                    }
                }
                let old = self.place_value(base);
                let base_width = base.ty.width();
                let hold = holder(base_width);
                let mask = literal(if width >= 128 { u128::MAX } else { (1 << width) - 1 }, base_width);
                let lo = self.expr(lo);
                let bits = bits_of(base_width);
                let new = quote! {
                    { let lo = #lo; let v = (#value) as #hold & #mask;
                      let old = #old;
                      if lo >= #bits { old } else { (old & !(#mask << lo)) | (v << lo) } }
                };
                let new = masked(new, base_width);
                self.assign(base, new)
            }
            PlaceKind::Vgpr { lane, reg } => {
                let lane = self.expr(lane);
                let reg = self.expr(reg);
                quote! { { let v = (#value) as u32; let (at, reg) = (#lane, #reg); rt::set_vgpr(cx, at, reg, v); } }
            }
            PlaceKind::Sgpr { reg } => {
                let reg = self.expr(reg);
                quote! { { let v = (#value) as u32; let reg = #reg; cx.wave.set_sgpr(reg, v); } }
            }
            PlaceKind::Mem { space, addr } if self.rows.is_some() => {
                let addr = self.address(*space, addr);
                let parts = (0..width.div_ceil(32) as usize).map(|k| {
                    let shift = 32 * k as u32;
                    quote! { stored[#k].0[l] = (v >> #shift) as u32; }
                });
                let wide = holder(width);
                let set = match self.rows {
                    Some(accesses) if accesses.is_sum() => quote! {},
                    _ => set_address(*space, addr),
                };
                quote! { { let v = (#value) as #wide; #set #(#parts)* } }
            }
            PlaceKind::Mem { space, addr } => {
                let addr = self.address(*space, addr);
                let space = format_ident!("{}", format!("{space:?}"));
                let bytes = width.div_ceil(8) as usize;
                let lane = self.lane_token();
                if self.atomic {
                    return quote! {
                        { let v = (#value) as u128;
                          let addr = #addr;
                          match rt::exchange::<#bytes>(cx, rt::Space::#space, addr, loaded, v, #lane) {
                              Ok(true) => {}
                              Ok(false) => continue 'retry,
                              Err(flow) => return flow,
                          } }
                    };
                }
                quote! {
                    { let v = (#value) as u128;
                      let addr = #addr; if let Err(flow) = rt::store::<#bytes>(cx, rt::Space::#space, addr, v, #lane) { return flow; } }
                }
            }
            PlaceKind::Concat(parts) => {
                let mut out = quote! { let v = (#value) as u128; };
                let mut lo = 0u32;
                for part in parts.iter().rev() {
                    let w = part.ty.width();
                    let hold = holder(w);
                    let piece = masked(quote! { ((v >> #lo) as #hold) }, w);
                    out.extend(self.assign(part, piece));
                    lo += w;
                }
                quote! { { #out } }
            }
        }
    }

    /// The byte address of an access.
    pub fn address(&self, space: Space, addr: &Expr) -> TokenStream {
        let addr = self.expr(addr);
        match space {
            Space::Word => quote! { rt::word_address(#addr) },
            _ => addr,
        }
    }

    fn lane_token(&self) -> TokenStream {
        if self.lane {
            quote! { Some(lane) }
        } else {
            quote! { None }
        }
    }

    fn assign_operand(&self, role: Role, value: TokenStream, width: u32) -> TokenStream {
        if self.lane {
            if role == Role::D0 && self.mask_d0 {
                return quote! { m_d0 = (#value) as u32; };
            }
            let name = role_name(role);
            let full = super::handler::role_width(self.sem, role);
            let hold = holder(full);
            if width >= full {
                return quote! { #name = (#value) as #hold; };
            }
            let mask = literal((1u128 << width) - 1, full);
            return quote! { #name = (#name & !#mask) | (((#value) as #hold) & #mask); };
        }
        match role {
            Role::Vcc => quote! { { let v = (#value) as u64; rt::set_mask(cx, op.d1, v); } },
            _ => {
                let dwords = width.div_ceil(32) as usize;
                if self.plain_scalars {
                    return quote! { { let v = (#value) as u64; unsafe { rt::plain_set_scalar::<#dwords>(cx, op, v) }; } };
                }
                quote! { { let v = (#value) as u128; rt::set_scalar::<#dwords>(cx, op, v); } }
            }
        }
    }

    fn assign_state(&self, state: State, value: TokenStream) -> TokenStream {
        match state {
            State::Exec if self.lane => quote! { m_exec = (#value) as u32; },
            State::Exec => quote! { { let v = #value; cx.wave.set_exec(v); } },
            State::ExecLo => quote! { { let v = #value; cx.wave.set_sgpr(126, v); } },
            State::ExecHi => quote! { { let v = #value; cx.wave.set_sgpr(127, v); } },
            State::Vcc => quote! { { let v = #value; rt::set_mask(cx, 106, v); } },
            State::VccLo => quote! { cx.wave.sgprs[106] = #value; },
            State::VccHi => quote! { cx.wave.sgprs[107] = #value; },
            State::Scc => quote! { cx.wave.scc = #value; },
            State::M0 => quote! { cx.wave.sgprs[125] = #value; },
            State::Mode => quote! { { cx.wave.mode = #value; cx.refresh_mode(); } },
            State::Pc => {
                quote! { { cx.jump = (#value).wrapping_sub(cx.wave.code_base); flow = Flow::JUMP; } }
            }
            _ => quote! { return rt::read_only(cx); },
        }
    }

    /// The present value of a place.
    fn place_value(&self, place: &Place) -> TokenStream {
        match &place.kind {
            PlaceKind::Local(id) => {
                let name = local(*id);
                quote! { #name }
            }
            PlaceKind::Element(id, index) => {
                let name = local(*id);
                let index = self.expr(index);
                quote! { #name.get((#index) as usize).copied().unwrap_or(0) }
            }
            PlaceKind::Operand(role) => {
                let e = Expr { kind: ExprKind::Operand(*role), ty: place.ty, span: Default::default() };
                self.expr(&e)
            }
            PlaceKind::State(state) => {
                let e = Expr { kind: ExprKind::State(*state), ty: place.ty, span: Default::default() };
                self.expr(&e)
            }
            PlaceKind::Slice { base, lo } => {
                let base_value = self.place_value(base);
                let lo = self.expr(lo);
                let hold = holder(place.ty.width());
                let w = base.ty.width();
                masked(quote! { (rt::shr(#base_value as u128, #lo, #w) as #hold) }, place.ty.width())
            }
            PlaceKind::Vgpr { lane, reg } => {
                let lane = self.expr(lane);
                let reg = self.expr(reg);
                quote! { rt::vgpr(cx, #lane, #reg) }
            }
            PlaceKind::Sgpr { reg } => {
                let reg = self.expr(reg);
                quote! { cx.wave.sgpr(#reg) }
            }
            PlaceKind::Mem { space, addr } => {
                let e = Expr {
                    kind: ExprKind::Mem { space: *space, addr: addr.clone() },
                    ty: place.ty,
                    span: Default::default(),
                };
                self.expr(&e)
            }
            PlaceKind::Concat(_) => quote! { 0 },
        }
    }

    pub fn expr(&self, e: &Expr) -> TokenStream {
        let width = e.ty.width();
        let hold = holder(width);
        match &e.kind {
            ExprKind::Const(bits) => literal(*bits, width),
            ExprKind::Local(id) => {
                let name = local(*id);
                quote! { #name }
            }
            ExprKind::Element(id, index) => {
                let name = local(*id);
                let index = self.expr(index);
                quote! { #name.get((#index) as usize).copied().unwrap_or(0) }
            }
            ExprKind::Operand(role) => self.operand(*role, width),
            ExprKind::OperandIndex(role) => {
                if matches!(role, Role::D0 | Role::D1) {
                    return quote! { (op.d as u32) };
                }
                let slot = super::handler::slot(*role);
                quote! { (#slot.number() as u32) }
            }
            ExprKind::OperandLane { role, lane, index } => {
                let lane_expr = self.expr(lane);
                let index = self.expr(index);
                if self.lane {
                    let rows = format_ident!("r_{}", role_name(*role));
                    return quote! { rt::staged_lane(#rows, #lane_expr, lane_base) };
                }
                let slot = super::handler::lane_slot(*role);
                quote! { rt::operand_lane(cx, #slot, #lane_expr, #index) }
            }
            ExprKind::Field(name) => {
                let value = match *name {
                    "OFFSET" | "SIMM16" => quote! { op.imm },
                    "OFFSET0" => quote! { (op.imm & 0xff) },
                    "OFFSET1" => quote! { ((op.imm >> 8) & 0xff) },
                    "CLAMP" => quote! { (clamp as u32) },
                    "SIMM32" => quote! { cx.raw(op).simm32 },
                    "NEG" => quote! { cx.raw(op).neg },
                    "NEG_HI" => quote! { cx.raw(op).neg_hi },
                    "ABS" => quote! { cx.raw(op).abs },
                    "OPSEL" => quote! { cx.raw(op).op_sel },
                    "OPSEL_HI" => quote! { cx.raw(op).op_sel_hi },
                    "IDXEN" => quote! { cx.raw(op).idxen },
                    "OFFEN" => quote! { cx.raw(op).offen },
                    "FORMAT" => quote! { cx.raw(op).format },
                    "SVE" => quote! { cx.raw(op).sve },
                    "GLC" => quote! { cx.raw(op).glc },
                    _ => quote! { 0u32 },
                };
                masked(quote! { (#value as #hold) }, width)
            }
            ExprKind::State(state) => self.state(*state),
            ExprKind::Slice { base, lo } => self.slice(base, lo, width),
            ExprKind::Unary(op, a) => {
                let v = self.expr(a);
                match op {
                    UnOp::Not => masked(quote! { (!(#v)) }, width),
                    UnOp::LogicalNot => quote! { (((#v) == 0) as u32) },
                    UnOp::Neg if a.ty.is_float() => {
                        let sign = literal(1 << (width - 1), width);
                        quote! { ((#v) ^ #sign) }
                    }
                    UnOp::Neg => masked(quote! { ((#v).wrapping_neg()) }, width),
                }
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, width),
            ExprKind::Select(c, a, b) => {
                let (c, a, b) = (self.expr(c), self.expr(a), self.expr(b));
                quote! { (if #c != 0 { #a } else { #b }) }
            }
            ExprKind::Convert(a) => self.convert(a, e.ty),
            ExprKind::Bits(a) => {
                let v = self.expr(a);
                let v = quote! { ((#v) as #hold) };
                if width < a.ty.width() { masked(v, width) } else { v }
            }
            ExprKind::Call(_, args) if let Some(row) = self.eights.and_then(|eights| eights.row(args)) => {
                quote! { #row.0[l] }
            }
            ExprKind::Call(builtin, args) => self.call(*builtin, args, e.ty),
            ExprKind::Vgpr { lane, reg } => {
                let lane = self.expr(lane);
                let reg = self.expr(reg);
                quote! { rt::vgpr(cx, #lane, #reg) }
            }
            ExprKind::Sgpr { reg } => {
                let reg = self.expr(reg);
                quote! { cx.wave.sgpr(#reg) }
            }
            ExprKind::Mem { addr, .. } if self.rows.is_some() => {
                let loaded = self.rows.and_then(|accesses| accesses.loaded(addr));
                let parts = (0..width.div_ceil(32) as usize).map(|k| {
                    let shift = 32 * k as u32;
                    quote! { (#loaded[#k].0[l] as #hold) << #shift }
                });
                masked(quote! { (#(#parts)|*) }, width)
            }
            ExprKind::Mem { space, addr } => {
                let addr = self.address(*space, addr);
                let space = format_ident!("{}", format!("{space:?}"));
                let bytes = width.div_ceil(8) as usize;
                let lane = self.lane_token();
                let keep = if self.atomic {
                    quote! { loaded = v; }
                } else {
                    quote! {}
                };
                let value = quote! {
                    ({ let addr = #addr; match rt::load::<#bytes>(cx, rt::Space::#space, addr, #lane) { Ok(v) => { #keep v } Err(flow) => return flow } } as #hold)
                };
                masked(value, width)
            }
            ExprKind::Concat(parts) => {
                let mut lo = width;
                let mut out = quote! { 0 };
                for part in parts {
                    lo -= part.ty.width();
                    let v = self.expr(part);
                    out = quote! { #out | (((#v) as #hold) << #lo) };
                }
                quote! { (#out) }
            }
        }
    }

    fn operand(&self, role: Role, width: u32) -> TokenStream {
        let hold = holder(width);
        if self.lane {
            if role == Role::D0 && self.mask_d0 {
                return quote! { (m_d0 as #hold) };
            }
            if role == Role::Vcc {
                return quote! { (((vcc_in as u64) << lane_base) as #hold) };
            }
            let name = role_name(role);
            return masked(quote! { ((#name) as #hold) }, width);
        }
        if self.staged.contains(&role) {
            let name = role_name(role);
            return masked(quote! { ((#name) as #hold) }, width);
        }
        masked(self.scalar(role, width), width)
    }

    /// An operand of what runs once a wave, read where it stands.
    pub fn scalar(&self, role: Role, width: u32) -> TokenStream {
        let hold = holder(width);
        let slot = super::handler::slot(role);
        let value = match width.div_ceil(32) {
            1 if self.plain_scalars => quote! { unsafe { rt::plain_scalar1(cx, #slot) } },
            2 if self.plain_scalars => quote! { unsafe { rt::plain_scalar2(cx, #slot) } },
            1 => quote! { rt::scalar1(cx, #slot) },
            2 => quote! { rt::scalar2(cx, #slot) },
            _ => quote! { rt::scalar4(cx, #slot) },
        };
        let numbered = [Role::S0, Role::S1, Role::S2, Role::S3].iter().position(|r| *r == role);
        let value = match numbered {
            Some(source) if self.once_modified => quote! { rt::once_source(cx, op, #source, #value as u128) },
            _ => value,
        };
        quote! { (#value as #hold) }
    }

    fn state(&self, state: State) -> TokenStream {
        match state {
            State::Exec => quote! { cx.wave.exec() },
            State::ExecLo => quote! { cx.wave.sgprs[126] },
            State::ExecHi => quote! { cx.wave.sgprs[127] },
            State::Vcc => quote! { cx.wave.vcc() },
            State::VccLo => quote! { cx.wave.sgprs[106] },
            State::VccHi => quote! { cx.wave.sgprs[107] },
            State::Vccz => quote! { ((cx.wave.vcc() == 0) as u32) },
            State::Execz => quote! { ((cx.wave.exec() == 0) as u32) },
            State::Scc => quote! { cx.wave.scc },
            State::M0 => quote! { cx.wave.sgprs[125] },
            State::Pc => quote! { cx.wave.code_base.wrapping_add(cx.pc()) },
            State::InstSize => quote! { 4u32 },
            State::Mode => quote! { cx.wave.mode },
            State::Status => quote! { rt::status(cx) },
            State::LaneId => quote! { lane },
            State::Wave32 => quote! { ((cx.wave.size == 32) as u32) },
            State::Wave64 => quote! { ((cx.wave.size == 64) as u32) },
            State::WaveSize => quote! { cx.wave.size },
            State::VgprSize => quote! { cx.wave.vgpr_count() },
            State::WaveId => quote! { cx.wave.id },
            State::SharedBase => quote! { wavesim_machine::memory::SHARED_BASE },
            State::PrivateBase => quote! { wavesim_machine::memory::PRIVATE_BASE },
            State::ScratchBase | State::TrapBase => quote! { 0u64 },
        }
    }

    fn slice(&self, base: &Expr, lo: &Expr, width: u32) -> TokenStream {
        let hold = holder(width);
        // This lane's bit of a mask operand.
        if self.lane && width == 1 && is_lane_id(lo) {
            match base.kind {
                ExprKind::Operand(Role::Vcc) => return quote! { ((vcc_in >> l) & 1) },
                ExprKind::State(State::Exec) => return quote! { ((exec >> l) & 1) },
                _ => {}
            }
        }
        let v = self.expr(base);
        let bw = base.ty.width();
        if let ExprKind::Const(lo) = lo.kind {
            let lo = lo as u32;
            if lo >= bw {
                return literal(0, width);
            }
            return masked(quote! { (((#v) >> #lo) as #hold) }, width);
        }
        let lo = self.expr(lo);
        let bhold = holder(bw);
        let bits = bits_of(bw);
        masked(
            quote! { ({ let lo = #lo; let v: #bhold = #v; if lo >= #bits { 0 } else { (v >> lo) as #hold } }) },
            width,
        )
    }

    fn binary(&self, op: BinOp, a: &Expr, b: &Expr, width: u32) -> TokenStream {
        let x = self.expr(a);
        let y = self.expr(b);
        let ty = a.ty;
        let w = ty.width();
        match op {
            BinOp::LogicalAnd => return quote! { (((#x) != 0 && (#y) != 0) as u32) },
            BinOp::LogicalOr => return quote! { (((#x) != 0 || (#y) != 0) as u32) },
            _ => {}
        }
        if ty.is_float() {
            let suffix = float_suffix(ty);
            if op == BinOp::Pow {
                let (t, r) = (ty_token(ty), ty_token(b.ty));
                let hold = holder(width);
                return quote! { (rt::pow((#x) as u128, (#y) as u128, #t, #r, m.env()) as #hold) };
            }
            let name = match op {
                BinOp::Add => "add",
                BinOp::Sub => "sub",
                BinOp::Mul => "mul",
                BinOp::Div => "div",
                BinOp::Eq => "eq",
                BinOp::Ne => "ne",
                BinOp::Lt => "lt",
                BinOp::Le => "le",
                BinOp::Gt => "gt",
                BinOp::Ge => "ge",
                _ => "lg",
            };
            let f = format_ident!("{name}_{suffix}");
            return quote! { rt::#f(m, #x, #y) };
        }
        let is_signed = ty.is_signed();
        let bits = bits_of(w);
        let cmp = |op: TokenStream| {
            if is_signed {
                let (x, y) = (signed(x.clone(), w), signed(y.clone(), w));
                quote! { ((#x #op #y) as u32) }
            } else {
                quote! { (((#x) #op (#y)) as u32) }
            }
        };
        match op {
            BinOp::Add => masked(quote! { ((#x).wrapping_add(#y)) }, w),
            BinOp::Sub => masked(quote! { ((#x).wrapping_sub(#y)) }, w),
            BinOp::Mul => masked(quote! { ((#x).wrapping_mul(#y)) }, w),
            BinOp::Div | BinOp::Rem => {
                let f = format_ident!("{}{}", if op == BinOp::Div { "div" } else { "rem" }, bits);
                quote! { rt::#f(#x, #y, #w, #is_signed) }
            }
            BinOp::And => quote! { ((#x) & (#y)) },
            BinOp::Or => quote! { ((#x) | (#y)) },
            BinOp::Xor => quote! { ((#x) ^ (#y)) },
            BinOp::Shl => {
                if let ExprKind::Const(n) = b.kind {
                    let n = n as u32;
                    return if n >= w { literal(0, w) } else { masked(quote! { ((#x) << #n) }, w) };
                }
                let f = format_ident!("shl{bits}");
                masked(quote! { rt::#f(#x, #y) }, w)
            }
            BinOp::Shr if is_signed => {
                let f = format_ident!("sar{bits}");
                let v = signed(x, w);
                let hold = holder(w);
                masked(quote! { (rt::#f(#v, #y) as #hold) }, w)
            }
            BinOp::Shr => {
                if let ExprKind::Const(n) = b.kind {
                    let n = n as u32;
                    return if n >= w {
                        literal(0, w)
                    } else {
                        quote! { ((#x) >> #n) }
                    };
                }
                let f = format_ident!("shr{bits}");
                quote! { rt::#f(#x, #y) }
            }
            BinOp::Eq => quote! { (((#x) == (#y)) as u32) },
            BinOp::Ne | BinOp::Lg => quote! { (((#x) != (#y)) as u32) },
            BinOp::Lt => cmp(quote! { < }),
            BinOp::Le => cmp(quote! { <= }),
            BinOp::Gt => cmp(quote! { > }),
            BinOp::Ge => cmp(quote! { >= }),
            BinOp::Pow | BinOp::LogicalAnd | BinOp::LogicalOr => quote! { 0 },
        }
    }

    fn convert(&self, a: &Expr, to: Ty) -> TokenStream {
        let v = self.expr(a);
        let (from, width) = (a.ty, to.width());
        let hold = holder(width);
        match (from.is_float(), to.is_float()) {
            (false, false) => {
                if from.is_signed() && width > from.width() {
                    let s = signed(v, from.width());
                    let wide = format_ident!("i{}", bits_of(width));
                    return masked(quote! { ((#s as #wide) as #hold) }, width);
                }
                masked(quote! { ((#v) as #hold) }, width)
            }
            _ => {
                if let Some(fast) = fast_convert(&v, from, to) {
                    return fast;
                }
                let (f, t) = (ty_token(from), ty_token(to));
                quote! { (rt::convert((#v) as u128, #f, #t, m.env()) as #hold) }
            }
        }
    }

    fn call(&self, builtin: Builtin, args: &[Expr], ty: Ty) -> TokenStream {
        let width = ty.width();
        let hold = holder(width);
        let first = args.first().map_or(Ty::U(32), |a| a.ty);
        let fw = first.width();
        let v: Vec<TokenStream> = args.iter().map(|a| self.expr(a)).collect();
        let x = v.first().cloned().unwrap_or_default();
        let suffix = float_suffix(first);
        let quick = |name: &str| {
            let f = format_ident!("{name}_{suffix}");
            quote! { rt::#f(m, #(#v),*) }
        };
        let bi = match builtin {
            Builtin::Pure(bi) => bi,
            Builtin::Control(bi) => {
                let bi = format_ident!("{}", format!("{bi:?}"));
                return quote! {
                    ({ let args = [#((#v) as u128),*]; match rt::control(cx, rt::Control::#bi, &args) { Ok(v) => v, Err(flow) => return flow } } as #hold)
                };
            }
        };
        match bi {
            Pure::Fma => return quick("fma"),
            Pure::Abs if first.is_float() => {
                let mask = literal((1u128 << (fw - 1)) - 1, fw);
                return quote! { ((#x) & #mask) };
            }
            Pure::Sign => {
                let n = fw - 1;
                return quote! { (((#x) >> #n) as u32 & 1) };
            }
            Pure::IsNan | Pure::IsSignalNan | Pure::IsQuietNan | Pure::CvtToQuietNan | Pure::Exponent
                if matches!(first, Ty::F16 | Ty::F32 | Ty::F64) =>
            {
                let name = match bi {
                    Pure::IsNan => "is_nan",
                    Pure::IsSignalNan => "is_snan",
                    Pure::IsQuietNan => "is_qnan",
                    Pure::CvtToQuietNan => "quiet",
                    _ => "exponent",
                };
                let f = format_ident!("{name}_{suffix}");
                return quote! { rt::#f(#x) };
            }
            Pure::MinimumNumber
            | Pure::MaximumNumber
            | Pure::Floor
            | Pure::Ceil
            | Pure::Trunc
            | Pure::Rndne
            | Pure::Sqrt
            | Pure::Rcp
            | Pure::Rsq
            | Pure::Fract
                if first == Ty::F32 =>
            {
                let name = match bi {
                    Pure::MinimumNumber => "min_num",
                    Pure::MaximumNumber => "max_num",
                    Pure::Floor => "floor",
                    Pure::Ceil => "ceil",
                    Pure::Trunc => "trunc",
                    Pure::Rndne => "rndne",
                    Pure::Sqrt => "sqrt",
                    Pure::Rcp => "rcp",
                    Pure::Rsq => "rsq",
                    _ => "fract",
                };
                return quick(name);
            }
            Pure::F16ToF32 => return quote! { rt::cvt_f16_f32(m, #x) },
            Pure::F32ToF16 => return quote! { rt::cvt_f32_f16(m, #x) },
            Pure::I32ToF32 => return quote! { rt::cvt_i32_f32(m, #x) },
            Pure::U32ToF32 => return quote! { rt::cvt_u32_f32(m, #x) },
            Pure::F32ToI32 => return quote! { rt::cvt_f32_i32(m, #x) },
            Pure::F32ToU32 => return quote! { rt::cvt_f32_u32(m, #x) },
            Pure::Bf16ToF32 => return quote! { ((#x) << 16) },
            Pure::CountOnes => return quote! { (#x).count_ones() },
            Pure::CountLeadingZeros => {
                let extra = bits_of(fw) - fw;
                return quote! { ((#x).leading_zeros() - #extra) };
            }
            Pure::CountTrailingZeros => return quote! { (#x).trailing_zeros().min(#fw) },
            Pure::ReverseBits => {
                let extra = bits_of(fw) - fw;
                return quote! { ((#x).reverse_bits() >> #extra) };
            }
            Pure::SelectBytes => return quote! { rt::select_bytes(#(#v),*) },
            Pure::ClampU16
            | Pure::ClampI16
            | Pure::ClampU32
            | Pure::ClampI32
            | Pure::ClampU64
            | Pure::ClampI64 => {
                let signed_from = first.is_signed();
                let signed_to = ty.is_signed();
                let bits = bits_of(fw);
                let f = format_ident!("narrow{bits}");
                return quote! { (rt::#f(#x, #fw, #signed_from, #width, #signed_to, clamp) as #hold) };
            }
            _ => {}
        }
        let bi_name = format_ident!("{}", format!("{bi:?}"));
        let types: Vec<TokenStream> = args.iter().map(|a| ty_token(a.ty)).collect();
        quote! { (rt::pure(rt::Pure::#bi_name, &[#((#v) as u128),*], &[#(#types),*], m.env()) as #hold) }
    }
}

fn fast_convert(v: &TokenStream, from: Ty, to: Ty) -> Option<TokenStream> {
    Some(match (from, to) {
        (Ty::I(32), Ty::F32) => quote! { rt::cvt_i32_f32(m, #v) },
        (Ty::U(32) | Ty::B(32), Ty::F32) => quote! { rt::cvt_u32_f32(m, #v) },
        (Ty::F32, Ty::I(32)) => quote! { rt::cvt_f32_i32(m, #v) },
        (Ty::F32, Ty::U(32)) => quote! { rt::cvt_f32_u32(m, #v) },
        _ => return None,
    })
}

trait IntoBlock {
    fn into_block(self) -> TokenStream;
}

impl IntoBlock for TokenStream {
    fn into_block(self) -> TokenStream {
        quote! { { #self } }
    }
}
