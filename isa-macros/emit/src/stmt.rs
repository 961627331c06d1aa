//! Emits statements of the lane-loop representation as Rust statements.

use crate::name::{each, host_width, literal, local, low_bits, mask_bit, slot, var, variant};
use crate::value::Scope;
use isa_lower::ir::*;
use isa_spec::pcode::ir::{LocalId, Space, State, Ty};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

impl Scope {
    /// Emits statements in order.
    pub fn stmts(self, list: &[Stmt]) -> TokenStream {
        list.iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(self, stmt: &Stmt) -> TokenStream {
        match stmt {
            Stmt::Set(to, value) => {
                let (name, value) = (var(*to), self.value(value));
                quote! { #name = #value; }
            }
            Stmt::SetLow { var: to, host_width, width, value } => {
                let (name, value) = (var(*to), self.atom(value));
                let mask = literal(low_bits(*width), *host_width);
                quote! { #name = (#name & !#mask) | (#value & #mask); }
            }
            Stmt::SetElement { id, index, value } => {
                let (name, index, value) = (local(*id), self.atom(index), self.value(value));
                quote! { { let v = #value; if let Some(slot) = #name.get_mut(#index as usize) { *slot = v; } } }
            }
            Stmt::SetLaneElement { id, index, value } => {
                let (name, index, value) = (each(*id), self.atom(index), self.value(value));
                quote! { { let v = #value; if let Some(row) = #name.get_mut(#index as usize) { row[l] = v; } } }
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
            Stmt::Vector(vector) => self.vector(vector),
            Stmt::Product(product) => self.product(product),
            Stmt::MoveLanes(moves) => self.move_lanes(moves),
            Stmt::Leave => quote! { break 'body; },
            Stmt::Control { builtin, args } => {
                let (name, args) = (variant(builtin), self.wide(args));
                quote! {
                    { let args = #args; if let Err(flow) = rt::control(cx, rt::Control::#name, &args) { return flow; } }
                }
            }
        }
    }

    /// Emits the reads, a loop without bounds checks, and the writes.
    fn vector(self, vector: &Vector) -> TokenStream {
        let (counter, from, count) = (local(vector.var), vector.from, vector.count as usize);
        let copy = self.copy(vector);
        let reads = self.vector_reads(vector);
        let (mut places, mut each, mut after) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
        for (at, VectorWrite { to, when, value }) in vector.writes.iter().enumerate() {
            let [new, mask, start, reg] = ["y", "k", "at", "reg"].map(|name| format_ident!("{name}{at}"));
            if let Some([a, b, c]) = whole_fma(value) {
                places.extend(quote! { let #new = rt::fma_f32_lanes::<M, #count>(m, #a, #b, #c); });
            } else {
                let (zero, value) = (literal(0, value.host_width), self.value(value));
                places.extend(quote! { let mut #new = [#zero; #count]; });
                each.extend(quote! { #new[l] = #value; });
            }
            let masks = when.as_ref().map(|when| {
                let when = self.value(when);
                places.extend(quote! { let mut #mask = [0u32; #count]; });
                each.extend(quote! { #mask[l] = #when; });
                quote! { , &#mask }
            });
            let suffix = if when.is_some() { "_where" } else { "" };
            match to {
                VectorPlace::Elements { id, start: first } => {
                    let (list, first) = (local(*id), self.value(first));
                    let set = format_ident!("set_elements{suffix}");
                    places.extend(quote! { let #start = #first; });
                    after.extend(quote! { rt::#set(&mut #list, #start, &#new #masks); });
                }
                VectorPlace::Vgpr { lane, reg: number } => {
                    let (lane, number) = (self.value(lane), self.value(number));
                    let set = format_ident!("set_vgpr_lanes{suffix}");
                    places.extend(quote! { let (#start, #reg) = (#lane, #number); });
                    after.extend(quote! { rt::#set(cx, #start, #reg, &#new #masks); });
                }
            }
        }
        let each = copy.unwrap_or_else(|| {
            quote! {
                #reads
                #places
                for l in 0..#count {
                    #counter = base.wrapping_add(l as u32);
                    #each
                }
                #after
            }
        });
        let once = quote! { #counter = base; #each };
        if vector.lanes {
            quote! { for half in 0..cx.wave.halves() { let base = 32 * half as u32; #once } }
        } else {
            quote! { { let base = #from; #once } }
        }
    }

    /// Emits the reads that a vector loop performs before its iterations. In the emitted code, `base` is the
    /// first value of the loop variable.
    fn vector_reads(self, vector: &Vector) -> TokenStream {
        let (counter, count) = (local(vector.var), vector.count as usize);
        let reads = vector.reads.iter().enumerate().map(|(at, read)| {
            let value = match read {
                VectorRead::Place(VectorPlace::Elements { id, start }) => {
                    let (list, start) = (local(*id), self.value(start));
                    quote! { rt::elements::<_, #count>(&#list, #start) }
                }
                VectorRead::Place(VectorPlace::Vgpr { lane, reg }) => {
                    let (lane, reg) = (self.value(lane), self.value(reg));
                    quote! { rt::vgpr_lanes::<#count>(cx, #lane, #reg) }
                }
                VectorRead::Lanes { slot: of, lane, index } => {
                    let (of, lane, index) = (slot(*of), self.value(lane), self.value(index));
                    quote! { rt::operand_lanes::<#count>(cx, #of, #lane, #index) }
                }
                VectorRead::Wave { slot: of, index } => {
                    let (of, index) = (slot(*of), self.value(index));
                    quote! { rt::operand_wave(cx, #of, #index) }
                }
                VectorRead::WaveVgpr { reg } => {
                    let reg = self.value(reg);
                    quote! { rt::vgpr_wave(cx, #reg) }
                }
                VectorRead::Same(value) => self.value(value),
                VectorRead::Active => quote! { rt::active_lanes::<#count>(cx, base) },
                VectorRead::Converted(conversion, value) => {
                    let (f, value) = (conversion_lanes(*conversion), self.value(value));
                    quote! {
                        {
                            let mut v = [0u32; #count];
                            for l in 0..#count {
                                #counter = base.wrapping_add(l as u32);
                                v[l] = #value;
                            }
                            #counter = base;
                            unsafe { rt::#f(m, v) }
                        }
                    }
                }
            };
            let name = format_ident!("x{at}");
            quote! { let #name = #value; }
        });
        reads.collect()
    }

    /// Emits a plain copy of a vector from one place to another, if the statement is one.
    fn copy(self, vector: &Vector) -> Option<TokenStream> {
        let count = vector.count as usize;
        let ([read], [write]) = (&vector.reads[..], &vector.writes[..]) else { return None };
        let own = ValueKind::VectorRead { read: 0, at: VectorAt::Own };
        if write.value.kind != own || write.when.is_some() {
            return None;
        }
        match (read, &write.to) {
            (VectorRead::Lanes { slot: of, lane, index }, VectorPlace::Elements { id, start }) => {
                let (of, lane, index) = (slot(*of), self.value(lane), self.value(index));
                let (list, start) = (local(*id), self.value(start));
                Some(quote! { rt::lanes_to_elements::<#count>(cx, #of, #lane, #index, &mut #list, #start); })
            }
            (VectorRead::Place(VectorPlace::Elements { id, start }), VectorPlace::Vgpr { lane, reg }) => {
                let (list, start) = (local(*id), self.value(start));
                let (lane, reg) = (self.value(lane), self.value(reg));
                Some(quote! { rt::elements_to_lanes::<#count>(cx, #lane, #reg, &#list, #start); })
            }
            _ => None,
        }
    }

    fn product(self, product: &Product) -> TokenStream {
        let part = |part: &ProductPart| {
            let (list, start, depth, row) = (local(part.id), self.value(&part.start), part.depth, part.row);
            (list, quote! { rt::Part { start: #start, depth: #depth, row: #row } })
        };
        let [(a, a_part), (b, b_part), (d, d_part)] = [&product.a, &product.b, &product.d].map(part);
        let Product { element, sparse_rows, columns, depth, rows, .. } = product;
        let [columns, depth, rows] = [columns, depth, rows].map(|n| *n as usize);
        let places = match sparse_rows {
            Some(SparseRows { numbers, stride }) => {
                let (list, at) = part(numbers);
                quote! { Some(rt::Places { list: &#list[..], at: #at, step: #stride }) }
            }
            None => quote! { None },
        };
        let (function, mode) = match element {
            ElementType::F32 => (quote! { product::<M, false, #columns> }, quote! { m, cx.wave.mode, }),
            ElementType::F32Nearest => (quote! { product::<M, true, #columns> }, quote! { m, cx.wave.mode, }),
            ElementType::Integer => (quote! { product_of_integers::<#columns> }, quote! {}),
        };
        quote! {
            {
                let (a, b, d, places) = ((&#a[..], #a_part), (&#b[..], #b_part), #d_part, #places);
                rt::#function(#mode cx.fast, [#depth, #rows], a, b, places, (&mut #d[..], d));
            }
        }
    }

    /// Emits, for each half, a loop that computes a vector of lane numbers, and the call that moves values
    /// from or to these lanes.
    fn move_lanes(self, moves: &MoveLanes) -> TokenStream {
        let MoveLanes { direction, lanes, source, to } = moves;
        let (counter, reads) = (local(lanes.var), self.vector_reads(lanes));
        let numbers = lanes.writes.iter().map(|write| self.value(&write.value));
        let to = self.value(to);
        let source = match source {
            MoveSource::Operand(of) => {
                let of = slot(*of);
                quote! { rt::MoveSource::Operand(#of) }
            }
            MoveSource::Vgpr(register) => {
                let register = self.value(register);
                quote! { rt::MoveSource::Vgpr(#register) }
            }
        };
        let flag = |value: &Value| match &value.kind {
            ValueKind::Const(value) => {
                let set = *value != 0;
                quote! { #set }
            }
            _ => {
                let value = self.atom(value);
                quote! { #value != 0 }
            }
        };
        let (prepare, call) = match direction {
            MoveDirection::Pull { fetch, bound } => {
                let (fetch, bound) = (flag(fetch), flag(bound));
                (quote! { rt::pull(cx, source, #fetch, #bound, to) }, quote! { pull_lanes })
            }
            MoveDirection::Push => (quote! { rt::push(cx, source, to) }, quote! { push_lanes }),
        };
        quote! {
            let (source, to) = (#source, #to);
            if let Some(lane_move) = #prepare {
                for half in 0..cx.wave.halves() {
                    let base = 32 * half as u32;
                    #counter = base;
                    #reads
                    let mut lanes = LaneVec::ZERO;
                    for l in 0..32usize {
                        #counter = base.wrapping_add(l as u32);
                        #(lanes.0[l] = #numbers;)*
                    }
                    unsafe { rt::#call(cx, lane_move, half, &lanes); }
                }
            }
        }
    }

    /// Emits the store of a lane's address to the vector of addresses. LDS is small: its addresses are 32-bit
    /// offsets.
    fn set_address(self, space: Space, addr: &Value) -> TokenStream {
        let addr = self.value(addr);
        match space {
            Space::Lds => quote! { addresses.0[l] = rt::lds_offset(#addr); },
            _ => quote! { addresses[l] = #addr; },
        }
    }
}

/// Returns the operands of a multiply-add of vectors and invariant values. Such a small loop must become a
/// call: compilers would unroll it and then not vectorise it.
fn whole_fma(value: &Value) -> Option<[TokenStream; 3]> {
    let ValueKind::Float { op: FloatOp::Fma, ty: Ty::F32, args } = &value.kind else { return None };
    let operand = |value: &Value| match &value.kind {
        ValueKind::VectorRead { read, at: VectorAt::Own | VectorAt::Same } => {
            let name = format_ident!("x{read}");
            Some(quote! { &#name })
        }
        _ => None,
    };
    match &args[..] {
        [a, b, c] => Some([operand(a)?, operand(b)?, operand(c)?]),
        _ => None,
    }
}

/// Returns the function that converts whole vectors. Panics for conversions that the lowering leaves in the
/// iterations.
fn conversion_lanes(conversion: Conversion) -> Ident {
    match conversion {
        Conversion::F16ToF32 => format_ident!("cvt_f16_f32_lanes"),
        Conversion::F32ToF16 => format_ident!("cvt_f32_f16_lanes"),
        other => unreachable!("vectors of {other:?}"),
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
        | State::LdsSize
        | State::ScratchBase
        | State::SharedBase
        | State::PrivateBase
        | State::TrapBase => quote! { return rt::read_only(cx); },
    }
}

/// Emits the declarations of a body's locals.
pub fn declare(locals: &[isa_spec::pcode::ir::Local]) -> TokenStream {
    (0..locals.len()).map(|id| declare_one(locals, id as LocalId)).collect()
}

/// Emits the declaration of one local, as zero.
pub fn declare_one(locals: &[isa_spec::pcode::ir::Local], id: LocalId) -> TokenStream {
    let of = &locals[id as usize];
    let (name, host_width) = (local(id), host_width(HostWidth::of(of.ty.width())));
    match of.len {
        Some(n) => {
            let n = n as usize;
            quote! { let mut #name: rt::Array<#host_width, #n> = rt::Array([0; #n]); }
        }
        None => quote! { let mut #name: #host_width = 0; },
    }
}

/// Emits the declaration of a local with a value for each lane, or of an array of such rows.
pub fn declare_lanes(locals: &[isa_spec::pcode::ir::Local], id: LocalId, rows: bool) -> TokenStream {
    let of = &locals[id as usize];
    let (name, host_width) = (each(id), host_width(HostWidth::of(of.ty.width())));
    match of.len {
        Some(n) => {
            let n = n as usize;
            match rows {
                true => quote! { let mut #name: [[#host_width; 32]; #n] = [[0; 32]; #n]; },
                false => quote! { let mut #name: [[#host_width; #n]; 32] = [[0; #n]; 32]; },
            }
        }
        None => quote! { let mut #name: [#host_width; 32] = [0; 32]; },
    }
}
