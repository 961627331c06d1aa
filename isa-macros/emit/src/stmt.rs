//! Statements as Rust.

use crate::value::{Scope, hold, literal, local, low_bits, mask_bit, var, variant};
use isa_lower::ir::*;
use isa_spec::pcode::ir::{Space, State};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

impl Scope {
    pub fn stmts(self, list: &[Stmt]) -> TokenStream {
        list.iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(self, stmt: &Stmt) -> TokenStream {
        match stmt {
            Stmt::Set(to, value) => {
                let (name, value) = (var(*to), self.value(value));
                quote! { #name = #value; }
            }
            Stmt::SetLow { var: to, hold, width, value } => {
                let (name, value) = (var(*to), self.atom(value));
                let mask = literal(low_bits(*width), *hold);
                quote! { #name = (#name & !#mask) | (#value & #mask); }
            }
            Stmt::SetElement { id, index, value } => {
                let (name, index, value) = (local(*id), self.atom(index), self.value(value));
                quote! { { let v = #value; if let Some(slot) = #name.get_mut(#index as usize) { *slot = v; } } }
            }
            Stmt::SetBit(mask, value) => {
                let (name, value) = (mask_bit(*mask), self.value(value));
                quote! { #name = #value; }
            }
            Stmt::SetState(state, value) => set_state(*state, self.value(value)),
            Stmt::SetVgpr { lane, reg, value } => {
                let (lane, reg, value) = (self.value(lane), self.value(reg), self.value(value));
                quote! { { let v = #value; let (at, reg) = (#lane, #reg); rt::set_vgpr(cx, at, reg, v); } }
            }
            Stmt::SetSgpr { reg, value } => {
                let (reg, value) = (self.value(reg), self.value(value));
                quote! { { let v = #value; let reg = #reg; cx.wave.set_sgpr(reg, v); } }
            }
            Stmt::SetScalar { dwords, direct, value } => {
                let (dwords, value) = (*dwords as usize, self.value(value));
                if *direct {
                    quote! { { let v = #value; unsafe { rt::fast_set_scalar::<#dwords>(cx, op, v) }; } }
                } else {
                    quote! { { let v = #value; rt::set_scalar::<#dwords>(cx, op, v); } }
                }
            }
            Stmt::SetMaskOperand(value) => {
                let value = self.value(value);
                quote! { { let v = #value; rt::set_mask(cx, op.d1, v); } }
            }
            Stmt::Parts { value, parts } => {
                let (value, parts) = (self.value(value), self.stmts(parts));
                quote! { { let v = #value; #parts } }
            }
            Stmt::Store { space, addr, bytes, value } => {
                let (space, addr, lane) = (variant(space), self.value(addr), self.lane());
                let (bytes, value) = (*bytes as usize, self.value(value));
                quote! {
                    { let v = #value;
                      let addr = #addr; if let Err(flow) = rt::store::<#bytes>(cx, rt::Space::#space, addr, v, #lane) { return flow; } }
                }
            }
            Stmt::Exchange { space, addr, bytes, value } => {
                let (space, addr, lane) = (variant(space), self.value(addr), self.lane());
                let (bytes, value) = (*bytes as usize, self.value(value));
                quote! {
                    { let v = #value;
                      let addr = #addr;
                      match rt::exchange::<#bytes>(cx, rt::Space::#space, addr, loaded, v, #lane) {
                          Ok(true) => {}
                          Ok(false) => continue 'retry,
                          Err(flow) => return flow,
                      } }
                }
            }
            Stmt::SetStored { address, value, dwords } => {
                let value = self.value(value);
                let set = address.as_ref().map(|(space, addr)| self.set_address(*space, addr));
                let parts = (0..*dwords as usize).map(|k| {
                    let shift = 32 * k as u32;
                    quote! { stored[#k].0[l] = (v >> #shift) as u32; }
                });
                quote! { { let v = #value; #set #(#parts)* } }
            }
            Stmt::SetAddress { space, addr } => self.set_address(*space, addr),
            Stmt::If { arms, otherwise } => {
                let otherwise = self.stmts(otherwise);
                let mut out = quote! { { #otherwise } };
                for (cond, body) in arms.iter().rev() {
                    let (cond, body) = (self.atom(cond), self.stmts(body));
                    out = quote! { if #cond != 0 { #body } else #out };
                    if arms.len() > 1 {
                        out = quote! { { #out } };
                    }
                }
                out
            }
            Stmt::For { var, from, to, body } => {
                let (var, from, to, body) = (local(*var), self.atom(from), self.atom(to), self.stmts(body));
                quote! {
                    {
                        let (mut i, end) = (#from as i32, #to as i32);
                        while i <= end {
                            #var = i as u32;
                            #body
                            i += 1;
                        }
                    }
                }
            }
            Stmt::While { cond, body } => {
                let (cond, body) = (self.atom(cond), self.stmts(body));
                quote! { while #cond != 0 { #body } }
            }
            Stmt::Leave => quote! { break 'body; },
            Stmt::Control { builtin, args } => {
                let (name, args) = (variant(builtin), self.wide(args));
                quote! {
                    { let args = #args; if let Err(flow) = rt::control(cx, rt::Control::#name, &args) { return flow; } }
                }
            }
        }
    }

    /// Puts a lane's address in the list of all. LDS is small: its addresses are 32-bit offsets.
    fn set_address(self, space: Space, addr: &Value) -> TokenStream {
        let addr = self.value(addr);
        match space {
            Space::Lds => quote! { addresses.0[l] = rt::lds_offset(#addr); },
            _ => quote! { addresses[l] = #addr; },
        }
    }
}

fn set_state(state: State, value: TokenStream) -> TokenStream {
    match state {
        State::Exec => quote! { { let v = #value; cx.wave.set_exec(v); } },
        State::ExecLo => quote! { { let v = #value; cx.wave.set_sgpr(rt::EXEC_LO as u32, v); } },
        State::ExecHi => quote! { { let v = #value; cx.wave.set_sgpr(rt::EXEC_HI as u32, v); } },
        State::Vcc => quote! { { let v = #value; rt::set_mask(cx, rt::VCC_LO as u16, v); } },
        State::VccLo => quote! { cx.wave.sgprs[rt::VCC_LO] = #value; },
        State::VccHi => quote! { cx.wave.sgprs[rt::VCC_HI] = #value; },
        State::Scc => quote! { cx.wave.scc = #value; },
        State::M0 => quote! { cx.wave.sgprs[rt::M0] = #value; },
        State::Mode => quote! { { cx.wave.mode = #value; cx.refresh_mode(); } },
        State::Pc => {
            quote! { { let to = #value; cx.jump = to.wrapping_sub(cx.wave.code_base); flow = Flow::JUMP; } }
        }
        State::Vccz
        | State::Execz
        | State::InstSize
        | State::Status
        | State::LaneId
        | State::Wave32
        | State::Wave64
        | State::WaveSize
        | State::VgprSize
        | State::WaveId
        | State::ScratchBase
        | State::SharedBase
        | State::PrivateBase
        | State::TrapBase => quote! { return rt::read_only(cx); },
    }
}

/// Declarations of a body's locals.
pub fn declare(locals: &[isa_spec::pcode::ir::Local]) -> TokenStream {
    let each = locals.iter().enumerate().map(|(id, l)| {
        let (name, hold) = (format_ident!("t{id}"), hold(Hold::of(l.ty.width())));
        match l.len {
            Some(n) => {
                let n = n as usize;
                quote! { let mut #name: [#hold; #n] = [0; #n]; }
            }
            None => quote! { let mut #name: #hold = 0; },
        }
    });
    each.collect()
}
