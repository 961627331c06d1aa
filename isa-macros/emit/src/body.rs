//! Emits bodies of handlers: a step of the lane-loop representation becomes a few statements, a lane loop a
//! `for`.
//!
//! Names in the emitted code: `r_s0` are the lane vectors of a source and `s0` is its value in a lane; `d0`
//! is the result and `o0` its lane vectors; `t3` is a local, `m_vcc` a lane's bit of a mask; `loaded0` and
//! `stored` hold the data of memory steps.

use crate::name::{each, float_suffix, host_width, local, mask_bit, mask_name, role_name, slot, variant};
use crate::stmt::{declare, declare_lanes, declare_one};
use crate::value::{Scope, field};
use isa_lower::ir::*;
use isa_lower::lower::operands;
use isa_lower::passes::fast::single_operation;
use isa_lower::visit::{any_in, any_stmt};
use isa_spec::pcode::ir::{Local, LocalId, Pure, Role, Space, State, Ty};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// Emits a body that runs once per wave.
pub fn once(once: &Once, locals: &[Local]) -> TokenStream {
    let locals = declare(locals);
    let mut body = Scope::Wave.stmts(once.with_vectors.as_ref().unwrap_or(&once.body));
    if once.retries {
        body = quote! { let mut loaded: u128 = 0; 'retry: loop { #body break; } };
    }
    let operands = once.operands.iter().map(|(role, value)| {
        let (name, value) = (role_name(*role), Scope::Wave.value(value));
        quote! { let #name = #value; }
    });
    let refresh = once.changes_mode.then(|| {
        quote! {
            cx.refresh_mode();
            // A jump finds the code for the new mode by itself.
            if flow == Flow::NEXT {
                flow = Flow::MODE;
            }
        }
    });
    quote! {
        let mut flow = Flow::NEXT;
        let clamp = rt::clamp(op);
        #(#operands)*
        #locals
        'body: { #body }
        #refresh
        flow
    }
}

/// Emits a body that runs in lanes. With [`Halves::Given`], `half` is in scope.
pub fn lanes(lanes: &Lanes, locals: &[Local]) -> TokenStream {
    let staged = |step: &Step| matches!(step, Step::Stage { direct: false, .. });
    let direct = !lanes.steps.iter().any(staged);
    let emitter = Steps { locals, one: lanes.halves == Halves::One, direct };
    let steps = emitter.all(&lanes.steps);
    let broadcast =
        lanes.broadcast.then(|| quote! { if op.flags & Op::BROADCAST != 0 { rt::broadcast(cx, op); } });
    let in_order = lanes.steps.iter().any(|step| match step {
        Step::Loop(lanes) => emitter.in_order(lanes).is_some(),
        _ => false,
    });
    let exec = (!in_order).then(read_exec);
    let halves = match lanes.halves {
        // One half only: values hoisted out of a loop over both would cost registers in wave32.
        Halves::Given => quote! {
            let file = rt::file(cx, half);
            let lane_base: u32 = 32 * half as u32;
            let mut exec: u32 = (cx.wave.exec() >> lane_base) as u32;
            #steps
        },
        Halves::One => quote! {
            let file = cx.file;
            let lane_base: u32 = 32 * cx.half() as u32;
            #exec
            #steps
        },
        Halves::Each => quote! {
            for half in 0..cx.wave.halves() {
                let file = rt::file(cx, half);
                let lane_base: u32 = 32 * half as u32;
                let mut exec: u32 = (cx.wave.exec() >> lane_base) as u32;
                #steps
            }
        },
    };
    let one = lanes.halves == Halves::One;
    // The clamp bit is a modifier.
    let clamp = if one {
        quote! { const clamp: bool = false; }
    } else {
        quote! { let clamp = rt::clamp(op); }
    };
    let masks = [Mask::Exec, Mask::D0, Mask::Vcc].into_iter().filter(|mask| lanes.masks.contains(mask));
    let written = masks.map(|mask| match (mask, one) {
        (Mask::Exec, false) => quote! { cx.wave.set_exec(new_exec); },
        (Mask::D0, false) => quote! { rt::set_mask(cx, op.d, all_d0); },
        (Mask::Vcc, false) => quote! { rt::set_mask(cx, op.d1, all_vcc); },
        (Mask::Exec, true) => quote! { rt::set_half_mask(cx, rt::EXEC_LO as u16, new_exec as u32); },
        (Mask::D0, true) => quote! { rt::set_half_mask(cx, op.d, all_d0 as u32); },
        (Mask::Vcc, true) => quote! { rt::set_half_mask(cx, op.d1, all_vcc as u32); },
    });
    quote! {
        let mut flow = Flow::NEXT;
        #clamp
        let (mut new_exec, mut all_d0, mut all_vcc) = (0u64, 0u64, 0u64);
        #broadcast
        #halves
        #(#written)*
        flow
    }
}

/// Emitter of the steps of one handler.
struct Steps<'a> {
    /// The body's locals, which each loop declares, but those that steps share.
    locals: &'a [Local],
    /// The steps process the context's half.
    one: bool,
    /// All sources are lane vectors of the wave's file.
    direct: bool,
}

impl Steps<'_> {
    fn all(&self, list: &[Step]) -> TokenStream {
        let setup = |step: &&Step| {
            matches!(step, Step::Stage { .. } | Step::StageOld | Step::Modify { .. } | Step::ReadMask)
        };
        let declared = list.iter().find_map(|step| match step {
            Step::Loop(lanes) => Some(declare_results(lanes)),
            _ => None,
        });
        let first = list.iter().take_while(setup).map(|step| self.step(step));
        let rest = list.iter().skip_while(setup).map(|step| self.step(step));
        quote! { #(#first)* #declared #(#rest)* }
    }

    fn step(&self, step: &Step) -> TokenStream {
        match step {
            Step::Stage { role, slot: at, dwords, direct } => {
                let (vecs, source) = (vecs(*role), slot(Slot::Source(*at)));
                let dwords = *dwords as usize;
                if *direct {
                    quote! { let #vecs = rt::fast_source(file, #source); }
                } else {
                    quote! { let mut #vecs = rt::stage::<#dwords>(cx, file, #source, #at); }
                }
            }
            Step::StageOld => quote! { let r_old = rt::old_vecs(file, op); },
            Step::Modify { sources } => {
                // Pass the pointers by value in a separate list: the originals stay in registers if nothing
                // is modified.
                let count = sources.len();
                let (list, back): (Vec<_>, Vec<_>) = sources
                    .iter()
                    .enumerate()
                    .map(|(at, (number, role))| {
                        let vecs = vecs(*role);
                        (quote! { (#number, #vecs) }, quote! { #vecs = list[#at].1; })
                    })
                    .unzip();
                quote! {
                    if op.flags & Op::MODIFY != 0 {
                        let mut list: [(usize, *const LaneVec); #count] = [#(#list),*];
                        exec = rt::modify(cx, op, half, exec, &mut list);
                        #(#back)*
                    }
                }
            }
            Step::ReadMask => {
                let bits = self.mask_bits(&quote! { op.src[3] });
                quote! { let vcc_in = #bits; }
            }
            Step::Simd { builtin: Pure::SelectBytes, calls, lanes, .. } => self.call_x8(calls, lanes),
            Step::Simd { builtin, ty, calls, lanes } => self.call_all_lanes(*builtin, *ty, calls, lanes),
            Step::StoreRoom { space, dwords, addresses } => {
                let (dwords, empty) = (*dwords as usize, no_addresses(*space));
                let addresses = addresses.then(|| quote! { let mut addresses = #empty; });
                quote! { #addresses let mut stored = [LaneVec::ZERO; #dwords]; }
            }
            Step::Memory(access) => self.memory(access),
            Step::Loop(lanes) => self.lane_loop(lanes),
            Step::Declare { same, lanes, rows } => {
                let same = same.iter().map(|id| declare_one(self.locals, *id));
                let lanes = lanes.iter().map(|id| declare_lanes(self.locals, *id, false));
                let rows = rows.iter().map(|id| declare_lanes(self.locals, *id, true));
                quote! { #(#same)* #(#lanes)* #(#rows)* }
            }
            Step::Once { reads, body } => {
                let (scalars, statements) = (scalar_reads(reads), Scope::Wave.stmts(body));
                quote! { #scalars #statements }
            }
            Step::If { arms, otherwise } => {
                let mut out = self.block(otherwise);
                for (cond, steps) in arms.iter().rev() {
                    let (cond, steps) = (Scope::Wave.atom(cond), self.block(steps));
                    out = quote! { { if #cond != 0 #steps else #out } };
                }
                out
            }
            Step::For { var, from, to, body } => {
                let (var, from, to) = (local(*var), Scope::Wave.atom(from), Scope::Wave.atom(to));
                let body = self.block(body);
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
            Step::Masked { mask, steps } => {
                let (mask, steps) = (each(*mask), steps.iter().map(|step| self.step(step)));
                quote! { { let exec = exec & rt::lanes_that_hold(&#mask); #(#steps)* } }
            }
            Step::Gather { mask, keep } => {
                let vec = mask_vec(*mask);
                let kept = keep.then(|| {
                    let old = self.mask_bits(&quote! { Source::sgpr(op.d) });
                    quote! { let bits = bits | #old & !exec; }
                });
                let all = match mask {
                    Mask::D0 => format_ident!("all_d0"),
                    Mask::Vcc => format_ident!("all_vcc"),
                    Mask::Exec => format_ident!("new_exec"),
                };
                let place = if self.one {
                    quote! { #all = bits as u64; }
                } else {
                    quote! { #all |= (bits as u64) << lane_base; }
                };
                quote! { let bits = rt::gather(&#vec) & exec; #kept #place }
            }
            Step::Write { dwords, how } => write(*dwords, *how),
        }
    }

    fn block(&self, steps: &[Step]) -> TokenStream {
        let steps = steps.iter().map(|step| self.step(step));
        quote! { { #(#steps)* } }
    }

    /// Emits the declarations of the locals of a loop, with their values in the lane, and the assignments of these after
    /// the body.
    fn loop_locals(&self, lanes: &LaneLoop) -> (TokenStream, TokenStream) {
        let Outer { same, lanes: outer, rows } = &lanes.outer;
        let (mut before, mut after) = (TokenStream::new(), TokenStream::new());
        for (id, of) in self.locals.iter().enumerate() {
            let id = id as LocalId;
            let (name, each) = (local(id), each(id));
            if outer.contains(&id) {
                let is_array = of.len.is_some();
                before.extend(match is_array {
                    true => quote! { let mut #name = rt::Array(#each[l]); },
                    false => quote! { let mut #name = #each[l]; },
                });
                if assigns(&lanes.body, id) {
                    after.extend(match is_array {
                        true => quote! { #each[l] = #name.0; },
                        false => quote! { #each[l] = #name; },
                    });
                }
            } else if !same.contains(&id) && !rows.contains(&id) {
                before.extend(declare_one(self.locals, id));
            }
        }
        (before, after)
    }

    /// Emits a loop that only reads a VGPR, whose number is the same for all lanes, into a local.
    fn indexed_vgpr_read(&self, lanes: &LaneLoop) -> Option<TokenStream> {
        let [Stmt::Set(Var::Local(id), Value { kind: ValueKind::Vgpr { lane, reg }, .. })] = &lanes.body[..]
        else {
            return None;
        };
        let own = lane.kind == ValueKind::State(State::LaneId) && lanes.outer.lanes.contains(id);
        if !own || any_in(reg, &|v| !is_same(v, &lanes.outer)) {
            return None;
        }
        let (to, reg) = (each(*id), Scope::Wave.value(reg));
        Some(quote! { #to = rt::indexed_vgpr_lanes(cx, lane_base, #reg); })
    }

    /// Emits a loop that only converts a component of an element, in a format that is the same for all lanes.
    fn conversion_of_format(&self, lanes: &LaneLoop) -> Option<TokenStream> {
        let [
            Stmt::Set(
                Var::Local(id),
                Value { kind: ValueKind::Pure { builtin: Pure::FromFormat, args, .. }, .. },
            ),
        ] = &lanes.body[..]
        else {
            return None;
        };
        let [format, Value { kind: ValueKind::Var(Var::Local(from)), .. }, index] = &args[..] else {
            return None;
        };
        let shared = lanes.outer.lanes.contains(id) && lanes.outer.lanes.contains(from);
        if !shared || [format, index].iter().any(|v| any_in(v, &|v| !is_same(v, &lanes.outer))) {
            return None;
        }
        let (to, from) = (each(*id), each(*from));
        let (format, index) = (Scope::Wave.value(format), Scope::Wave.value(index));
        Some(quote! { rt::from_format_lanes(#format, #index, exec, &#from, &mut #to); })
    }

    /// Emits a read of a mask's bits for these lanes.
    fn mask_bits(&self, source: &TokenStream) -> TokenStream {
        if self.one {
            quote! { rt::half_mask(cx, #source) }
        } else {
            quote! { rt::read_mask_half(cx, #source, half) }
        }
    }

    fn reads(&self, lanes: &LaneLoop) -> TokenStream {
        lanes.reads.iter().map(read).collect()
    }

    fn lane_loop(&self, lanes: &LaneLoop) -> TokenStream {
        let whole = self.indexed_vgpr_write(lanes).or_else(|| self.indexed_vgpr_read(lanes));
        if let Some(whole) = whole.or_else(|| self.conversion_of_format(lanes)) {
            return whole;
        }
        let guard = lanes.active_only.then(|| quote! { if exec >> l & 1 == 0 { continue; } });
        // Scalar operands are read once, so that the compiler hoists what depends only on them.
        let (scalars, vectors): (Vec<Read>, Vec<Read>) =
            lanes.reads.iter().partition(|read| operands::is_scalar(read.role));
        let (scalars, reads): (TokenStream, TokenStream) =
            (scalar_reads(&scalars), vectors.iter().map(read).collect());
        let (locals, keep) = self.loop_locals(lanes);
        let start = lanes.result.map(|result| {
            let host_width = host_width(HostWidth::of(result.width));
            match result.start {
                Start::Zero => quote! { let mut d0: #host_width = 0; },
                Start::Old => {
                    let value = read_vecs(&format_ident!("r_old"), result.width);
                    quote! { let mut d0: #host_width = #value as #host_width; }
                }
                Start::OldHalf => {
                    quote! { let mut d0: #host_width = rt::old_half(op, (*r_old.add(0)).0[l]); }
                }
            }
        });
        let bits = lanes.bits.iter().map(|mask| mask_bit(*mask));
        let set_bits = lanes.bits.iter().map(|mask| {
            let (bit, vec) = (mask_bit(*mask), mask_vec(*mask));
            quote! { #vec.0[l] = (#bit & 1) << l; }
        });
        let mut body = Scope::Lane.stmts(&lanes.body);
        if lanes.leaves {
            body = quote! { 'body: { #body } };
        }
        if lanes.retries {
            body = quote! { let mut loaded: u128 = 0; 'retry: loop { #body break; } };
        }
        let results = written(lanes).map(|result| {
            let each = (0..result.dwords()).map(|k| {
                let (name, shift) = (format_ident!("o{k}"), 32 * k);
                quote! { #name.0[l] = (d0 >> #shift) as u32; }
            });
            quote! { #(#each)* }
        });
        let each = quote! {
            for l in 0..32usize {
                #guard
                let lane: u32 = lane_base + l as u32;
                #reads
                #start
                #(let mut #bits: u32 = 0;)*
                #locals
                #body
                #keep
                #results
                #(#set_bits)*
            }
        };
        // EXEC is compared in memory if it is read after the operation, which the compiler does not move.
        let exec = read_exec();
        match self.in_order(lanes) {
            Some(call) => quote! {
                #[cfg(target_arch = "x86_64")]
                {
                    if M::DIRECT { #call }
                }
                if !M::DIRECT { #each }
                #exec
            },
            None => quote! { #scalars #each },
        }
    }

    /// Emits a single f32 operation on lane vectors of the file, if its host instruction must not be left to the
    /// compiler, which would exchange its operands.
    fn in_order(&self, lanes: &LaneLoop) -> Option<TokenStream> {
        if !self.direct || !self.one || lanes.active_only || !lanes.bits.is_empty() {
            return None;
        }
        let source = |role: Role| match role {
            Role::S0 | Role::S1 | Role::S2 => Some(slot(operands::slot(role))),
            _ => None,
        };
        let (op, roles) = single_operation(lanes)?;
        let call = match (op, &roles[..]) {
            (FloatOp::Add, [a, b]) => {
                let (a, b) = (source(*a)?, source(*b)?);
                quote! { add_f32(file, #a, #b) }
            }
            (FloatOp::Mul, [a, b]) => {
                let (a, b) = (source(*a)?, source(*b)?);
                quote! { mul_f32(file, #a, #b) }
            }
            (FloatOp::Fma, [a, b, Role::D0]) => {
                let (a, b) = (source(*a)?, source(*b)?);
                quote! { fmac_f32(file, #a, #b, r_old) }
            }
            (FloatOp::Fma, [a, b, c]) => {
                let (a, b, c) = (source(*a)?, source(*b)?, source(*c)?);
                quote! { fma_f32(file, #a, #b, #c) }
            }
            _ => return None,
        };
        Some(quote! { o0 = rt::ordered::#call; })
    }

    /// Emits a loop whose only effect is a write of one VGPR, in each active lane. The VGPR's number is the
    /// same for all lanes.
    fn indexed_vgpr_write(&self, lanes: &LaneLoop) -> Option<TokenStream> {
        let [Stmt::SetVgpr { lane, reg, value }] = &lanes.body[..] else { return None };
        let is_pure = |v: &Value| {
            !matches!(
                v.kind,
                ValueKind::Vgpr { .. }
                    | ValueKind::OperandLane { .. }
                    | ValueKind::Load { .. }
                    | ValueKind::Control { .. }
            )
        };
        let varies = |v: &Value| !is_pure(v) || !is_same(v, &lanes.outer);
        let effects = lanes.result.is_some() || !lanes.bits.is_empty() || lanes.leaves || lanes.retries;
        if effects || lane.kind != ValueKind::State(State::LaneId) || any_in(reg, &varies) {
            return None;
        }
        if any_in(value, &|v| !is_pure(v)) {
            return None;
        }
        let (read, reg, value) = (self.reads(lanes), Scope::Wave.value(reg), Scope::Lane.value(value));
        let locals = (!lanes.outer.is_empty()).then(|| self.loop_locals(lanes).0);
        let write = quote! {
            let mut new = LaneVec::ZERO;
            for l in 0..32usize {
                let lane: u32 = lane_base + l as u32;
                #read
                #locals
                new.0[l] = #value;
            }
            rt::set_active_lanes(cx, file, exec, #reg, &new);
        };
        Some(if lanes.outer.is_empty() {
            write
        } else {
            quote! { { #write } }
        })
    }

    /// Emits calls of functions of one argument that process all lanes in place.
    fn call_all_lanes(&self, builtin: Pure, ty: Ty, calls: &[Vec<Value>], lanes: &LaneLoop) -> TokenStream {
        let (read, statements) = (self.reads(lanes), Scope::Lane.stmts(&lanes.body));
        let locals = self.loop_locals(lanes).0;
        let vecs: Vec<Ident> = (0..calls.len()).map(|at| format_ident!("simd{at}")).collect();
        let values = calls.iter().flat_map(|args| Scope::Lane.values(args));
        let function = format_ident!("{}_{}_vec", builtin.def().name, float_suffix(ty));
        quote! {
            #(let mut #vecs = LaneVec::ZERO;)*
            for l in 0..32usize {
                let lane: u32 = lane_base + l as u32;
                #read
                #locals
                #statements
                #(#vecs.0[l] = #values;)*
            }
            #(rt::#function(m, &mut #vecs);)*
        }
    }

    fn call_x8(&self, calls: &[Vec<Value>], lanes: &LaneLoop) -> TokenStream {
        let (read, statements) = (self.reads(lanes), Scope::Lane.stmts(&lanes.body));
        let locals = self.loop_locals(lanes).0;
        let (mut vecs, mut lists) = (TokenStream::new(), TokenStream::new());
        let (mut fill, mut call) = (TokenStream::new(), TokenStream::new());
        for (at, args) in calls.iter().enumerate() {
            let (vec, list) = (format_ident!("simd{at}"), format_ident!("args{at}"));
            let (count, nth, values) = (args.len(), 0..args.len(), Scope::Lane.values(args));
            vecs.extend(quote! { let mut #vec = LaneVec::ZERO; });
            lists.extend(quote! { let mut #list = [rt::U32x8::ZERO; #count]; });
            fill.extend(quote! { #(#list[#nth].0[k] = #values;)* });
            call.extend(quote! { rt::select_bytes_x8(m, #list).put(&mut #vec, vector); });
        }
        quote! {
            #vecs
            for vector in 0..4usize {
                #lists
                for k in 0..8usize {
                    let l = 8 * vector + k;
                    let lane: u32 = lane_base + l as u32;
                    #read
                    #locals
                    #statements
                    #fill
                }
                #call
            }
        }
    }

    /// Emits a loop that computes every lane's address.
    fn addresses(&self, space: Space, lanes: &LaneLoop, stage: &[Step]) -> TokenStream {
        let (empty, stage) = (no_addresses(space), stage.iter().map(|step| self.step(step)));
        let lane_loop = self.lane_loop(lanes);
        quote! { let mut addresses = #empty; #(#stage)* #lane_loop }
    }

    fn memory(&self, access: &Memory) -> TokenStream {
        let space = access.space;
        let call = match &access.addresses {
            Addresses::Set => access_call(access),
            Addresses::Computed(lanes) => {
                let (addresses, call) = (self.addresses(space, lanes, &[]), access_call(access));
                quote! { { #addresses #call } }
            }
            Addresses::Sum(sum) => {
                let (bytes, dwords) = (access.bytes as usize, access.dwords as usize);
                let (offsets, base) = (vecs(sum.offsets), base(&Scope::Wave.value(&sum.saddr), &sum.base));
                let scale = sum.scale.map(|scale| {
                    let scale = scale_of(scale);
                    quote! { let scale = #scale; }
                });
                let scaled = scale.as_ref().map(|_| quote! { scale, });
                let (function, stored) = match (access.store, &scale) {
                    (false, None) => ("load_offsets", None),
                    (false, Some(_)) => ("load_scaled_offsets", None),
                    (true, None) => ("store_offsets", Some(quote! { &stored })),
                    (true, Some(_)) => ("store_scaled_offsets", Some(quote! { &stored })),
                };
                let function = format_ident!("{function}");
                let call = quote! {
                    #scale
                    rt::#function::<#bytes, #dwords>(cx, base, #offsets, #scaled exec, lane_base, #stored)
                };
                match &sum.unless {
                    Some((unless, lanes)) => {
                        let (unless, addresses) =
                            (Scope::Wave.atom(unless), self.addresses(space, lanes, &sum.stage));
                        let otherwise = access_call(access);
                        quote! { if #unless != 0 { #addresses #otherwise } else { #base #call } }
                    }
                    None => quote! { { #base #call } },
                }
            }
        };
        if access.store {
            return quote! { if let Err(flow) = #call { return flow; } };
        }
        let loaded = format_ident!("loaded{}", access.number);
        quote! {
            let #loaded = match #call {
                Ok(vecs) => vecs,
                Err(flow) => return flow,
            };
        }
    }
}

/// Emits the read of EXEC's bits for the context's half.
fn read_exec() -> TokenStream {
    quote! { let exec = file.exec(); }
}

/// Emits the access at `addresses`.
fn access_call(access: &Memory) -> TokenStream {
    let (bytes, dwords, space) = (access.bytes as usize, access.dwords as usize, variant(access.space));
    match (access.space, access.store) {
        (Space::Lds, true) => {
            quote! { rt::store_lds::<#bytes, #dwords>(cx, &addresses, exec, lane_base, &stored) }
        }
        (Space::Lds, false) => quote! { rt::load_lds::<#bytes, #dwords>(cx, &addresses, exec, lane_base) },
        (Space::Buffer, true) => {
            quote! { rt::store_buffer::<#bytes, #dwords>(cx, &addresses, exec, lane_base, &stored) }
        }
        (Space::Buffer, false) => {
            quote! { rt::load_buffer::<#bytes, #dwords>(cx, &addresses, exec, lane_base) }
        }
        (_, true) => quote! {
            rt::store_vecs::<#bytes, #dwords>(cx, rt::Space::#space, &addresses, exec, lane_base, &stored)
        },
        (_, false) => quote! {
            rt::load_vecs::<#bytes, #dwords>(cx, rt::Space::#space, &addresses, exec, lane_base)
        },
    }
}

/// Emits an empty vector of addresses. LDS is small: its addresses are 32-bit offsets.
fn no_addresses(space: Space) -> TokenStream {
    match space {
        Space::Lds => quote! { LaneVec::ZERO },
        _ => quote! { [0u64; 32] },
    }
}

/// Emits what the lanes' part of an address is multiplied by.
fn scale_of(Scale { field: of, factor }: Scale) -> TokenStream {
    let field = field(of);
    quote! { if #field != 0 { #factor } else { 1u32 } }
}

/// Emits the uniform part of an address, given the read of the scalar base.
fn base(saddr: &TokenStream, terms: &[Value]) -> TokenStream {
    let terms = Scope::Wave.values(terms);
    quote! {
        let saddr = #saddr;
        let base = 0u64 #(.wrapping_add(#terms))*;
    }
}

/// Emits a block copy: tries to copy, and otherwise calls `otherwise`. With `watched`, it copies in the
/// memory of an access watch, which logs the access, instead of the wave's own. If the address is not a
/// scalar base plus 32 bits of each lane, it calls `address64`.
pub fn block(block: &Block, watched: bool, otherwise: &Ident, address64: &Ident) -> TokenStream {
    let (before, moved) = match block {
        Block::Global { base: terms, scale, unless, .. } => {
            let base = base(&quote! { unsafe { rt::fast_scalar2(cx, op.src[1]) } }, terms);
            let unless = unless.as_ref().map(|unless| {
                let unless = Scope::Wave.atom(unless);
                quote! { if #unless != 0 { return unsafe { #address64(cx, op) }; } }
            });
            let scaled = scale.map(|scale| {
                let field = field(scale.field);
                quote! { let scaled = #field != 0; }
            });
            (quote! { #unless #base #scaled }, global_block(block, watched, false))
        }
        Block::Lds { lanes, plus, store, dwords } => {
            let (lanes, dwords, plus) = (source(*lanes), *dwords as usize, Scope::Wave.values(plus));
            let moved = if *store {
                let data = source(isa_spec::tables::Role::Data);
                quote! { rt::store_lds_block::<#watched, #dwords>(cx, #lanes, #(#plus)*, #data) }
            } else {
                let count = plus.len();
                quote! { rt::load_lds_block::<#watched, #count, #dwords>(cx, #lanes, [#(#plus),*], op.d) }
            };
            (quote! {}, moved)
        }
    };
    quote! {
        #before
        if unsafe { #moved } { Flow::NEXT } else { unsafe { #otherwise(cx, op) } }
    }
}

/// Emits the variant of [`block`] for addresses of 64 bits per lane, if the block has such addresses.
pub fn address64_block(block: &Block, watched: bool, otherwise: &Ident) -> Option<TokenStream> {
    let Block::Global { address64: Some(terms), .. } = block else { return None };
    let terms = Scope::Wave.values(terms);
    let moved = global_block(block, watched, true);
    Some(quote! {
        let base = 0u64 #(.wrapping_add(#terms))*;
        if unsafe { #moved } { Flow::NEXT } else { unsafe { #otherwise(cx, op) } }
    })
}

fn global_block(block: &Block, watched: bool, address64: bool) -> TokenStream {
    match block {
        Block::Global { offsets, scale, store, dwords, .. } => {
            let (offsets, dwords) = (source(*offsets), *dwords as usize);
            let (factor, scaled) = match scale.filter(|_| !address64) {
                Some(Scale { factor, .. }) => (factor as usize, quote! { scaled }),
                None => (1, quote! { false }),
            };
            if *store {
                let data = source(isa_spec::tables::Role::Data);
                quote! {
                    rt::store_block::<#watched, #address64, #factor, #dwords>(cx, base, #offsets, #scaled, #data)
                }
            } else {
                quote! {
                    rt::load_block::<#watched, #address64, #factor, #dwords>(cx, base, #offsets, #scaled, op.d)
                }
            }
        }
        Block::Lds { .. } => quote! { false },
    }
}

fn source(role: isa_spec::tables::Role) -> TokenStream {
    slot(isa_lower::lower::operands::slot(role))
}

fn vecs(role: isa_spec::tables::Role) -> Ident {
    format_ident!("r_{}", role_name(role))
}

fn mask_vec(mask: Mask) -> Ident {
    format_ident!("k_{}", mask_name(mask))
}

fn written(lanes: &LaneLoop) -> Option<LaneResult> {
    lanes.result.filter(|result| result.written)
}

/// Declares the lane vectors that a loop writes.
fn declare_results(lanes: &LaneLoop) -> TokenStream {
    let results = (0..written(lanes).map_or(0, |result| result.dwords())).map(|k| format_ident!("o{k}"));
    let masks = lanes.bits.iter().map(|mask| mask_vec(*mask));
    quote! {
        #(let mut #results = LaneVec::ZERO;)*
        #(let mut #masks = LaneVec::ZERO;)*
    }
}

/// Returns whether a value itself is the same in all lanes of a loop.
fn is_same(value: &Value, outer: &Outer) -> bool {
    match &value.kind {
        ValueKind::Var(Var::Local(id)) | ValueKind::Element(id, _) => outer.same.contains(id),
        ValueKind::Var(_)
        | ValueKind::State(State::LaneId)
        | ValueKind::LaneBit(_)
        | ValueKind::LaneElement(..) => false,
        _ => true,
    }
}

/// Returns whether statements assign a local.
fn assigns(body: &[Stmt], id: LocalId) -> bool {
    any_stmt(body, &|stmt| match stmt {
        Stmt::Set(Var::Local(of), _) | Stmt::SetLow { var: Var::Local(of), .. } => *of == id,
        Stmt::SetElement { id: of, .. } | Stmt::For { var: of, .. } => *of == id,
        _ => false,
    })
}

/// Emits the declarations of scalar operands' values.
fn scalar_reads(reads: &[Read]) -> TokenStream {
    if reads.is_empty() {
        return TokenStream::new();
    }
    let names: Vec<Ident> = reads.iter().map(|read| role_name(read.role)).collect();
    let values: TokenStream = reads.iter().map(read).collect();
    quote! { let (#(#names,)*) = { let l = 0usize; #values (#(#names,)*) }; }
}

/// Emits the declaration of an operand's value in a lane.
fn read(read: &Read) -> TokenStream {
    let (name, value) = (role_name(read.role), read_vecs(&vecs(read.role), read.width));
    quote! { let #name = #value; }
}

/// Emits the value of a lane in consecutive lane vectors.
fn read_vecs(vecs: &Ident, width: u32) -> TokenStream {
    match width.div_ceil(32) {
        0 | 1 => quote! { (*#vecs.add(0)).0[l] },
        2 => quote! { ((*#vecs.add(0)).0[l] as u64 | ((*#vecs.add(1)).0[l] as u64) << 32) },
        n => {
            let parts = (0..n as usize).map(|k| {
                let shift = 32 * k as u32;
                quote! { ((*#vecs.add(#k)).0[l] as u128) << #shift }
            });
            quote! { (#(#parts)|*) }
        }
    }
}

fn write(dwords: u32, how: WriteBack) -> TokenStream {
    let names = (0..dwords).map(|k| format_ident!("o{k}"));
    let count = dwords as usize;
    match how {
        WriteBack::Half { output } => {
            let output = variant(output);
            quote! { rt::write_half(cx, file, op, exec, rt::Out::#output, [#(#names),*]); }
        }
        WriteBack::General { output } => {
            let output = variant(output);
            quote! { rt::write::<#count>(cx, file, op, exec, rt::Out::#output, [#(#names),*]); }
        }
        WriteBack::Fast { flushing, direct } => {
            let direct = direct.then(|| {
                quote! { if M::FLUSH_VECS { return rt::flushing_write(cx, file, op, exec, o0); } }
            });
            let mark = if flushing {
                quote! {
                    if M::FLUSH { rt::flushed(file, op, exec); } else { rt::written::<#count>(file, op.d); }
                }
            } else {
                quote! { rt::written::<#count>(file, op.d); }
            };
            quote! { #direct rt::fast_write::<#count>(file, op, exec, [#(#names),*]); #mark }
        }
    }
}
