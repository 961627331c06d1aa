//! One operation's handler: operands staged, the body in a loop over lanes or once a wave, results written back.

use super::Host;
use super::block::Block;
use super::eights::Eights;
use super::expr::{Emit, holder, local, role_name};
use super::rows;
use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::*;
use isa_spec::pcode::sig::Family;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    /// Widths of the operation being emitted, by role: what the operands' registers hold.
    static WIDTHS: RefCell<BTreeMap<Role, u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// The source of an operation that a role is; of a result that is read, the register it goes to.
pub fn slot(role: Role) -> TokenStream {
    match role {
        Role::D0 | Role::D1 => quote! { Source::sgpr(op.d) },
        role => {
            let at = slot_index(role);
            quote! { op.src[#at] }
        }
    }
}

/// The same of what runs once a wave and reads lanes.
pub fn lane_slot(role: Role) -> TokenStream {
    match role {
        Role::D0 | Role::D1 => quote! { Source::result(op.d) },
        role => slot(role),
    }
}

/// Which of the `Op`'s sources a role is.
fn slot_index(role: Role) -> usize {
    match role {
        Role::S0 | Role::VAddr => 0,
        Role::S1 | Role::SAddr => 1,
        Role::S2 | Role::Data => 2,
        _ => 3,
    }
}

/// Width in bits of the variable that holds a role's value in a lane body.
pub fn role_width(_sem: &Semantics, role: Role) -> u32 {
    WIDTHS.with(|w| w.borrow().get(&role).copied().unwrap_or(32))
}

/// The widest view of each role in the body, and of D0 also what is assigned.
fn widths(op: &Operation) -> BTreeMap<Role, u32> {
    let mut out: BTreeMap<Role, u32> = BTreeMap::new();
    visit(&op.sem.body, &mut |role, width| {
        if width == 0 {
            return;
        }
        let slot = out.entry(role).or_insert(0);
        *slot = (*slot).max(width);
    });
    for (role, width) in &mut out {
        if let Some(info) = op.sig.operands.get(role)
            && *role == Role::D0
        {
            // Writes of part of a wide result still own all of it.
            *width = (*width).max((info.width as u32).min(128));
            if op.name.starts_with("V_FMA_MIX") {
                *width = 32;
            }
        }
    }
    out
}

fn visit(list: &[Stmt], f: &mut dyn FnMut(Role, u32)) {
    for stmt in list {
        match stmt {
            Stmt::Assign { place, value, .. } => {
                visit_place(place, f);
                visit_expr(value, f);
            }
            Stmt::If { arms, otherwise, .. } => {
                for (cond, body) in arms {
                    visit_expr(cond, f);
                    visit(body, f);
                }
                visit(otherwise, f);
            }
            Stmt::For { from, to, body, .. } => {
                visit_expr(from, f);
                visit_expr(to, f);
                visit(body, f);
            }
            Stmt::While { cond, body, .. } => {
                visit_expr(cond, f);
                visit(body, f);
            }
            Stmt::Return { .. } => {}
            Stmt::Call { args, .. } => args.iter().for_each(|a| visit_expr(a, f)),
        }
    }
}

fn visit_place(place: &Place, f: &mut dyn FnMut(Role, u32)) {
    match &place.kind {
        PlaceKind::Operand(role) => f(*role, place.ty.width()),
        PlaceKind::Slice { base, lo } => {
            visit_place(base, f);
            visit_expr(lo, f);
        }
        PlaceKind::Element(_, e) | PlaceKind::Sgpr { reg: e } | PlaceKind::Mem { addr: e, .. } => {
            visit_expr(e, f)
        }
        PlaceKind::Vgpr { lane, reg } => {
            visit_expr(lane, f);
            visit_expr(reg, f);
        }
        PlaceKind::Concat(parts) => parts.iter().for_each(|p| visit_place(p, f)),
        PlaceKind::Local(_) | PlaceKind::State(_) => {}
    }
}

fn visit_expr(e: &Expr, f: &mut dyn FnMut(Role, u32)) {
    match &e.kind {
        ExprKind::Operand(role) => f(*role, e.ty.width()),
        ExprKind::OperandLane { role, lane, index } => {
            f(*role, 32);
            visit_expr(lane, f);
            visit_expr(index, f);
        }
        ExprKind::Slice { base, lo } => {
            // Only as much of an operand as a constant slice reaches.
            if let (ExprKind::Operand(role), ExprKind::Const(at)) = (&base.kind, &lo.kind) {
                f(*role, (*at as u32 + e.ty.width()).min(base.ty.width()));
            } else {
                visit_expr(base, f);
            }
            visit_expr(lo, f);
        }
        ExprKind::Element(_, a)
        | ExprKind::Unary(_, a)
        | ExprKind::Convert(a)
        | ExprKind::Sgpr { reg: a } => visit_expr(a, f),
        ExprKind::Bits(a) => match &a.kind {
            ExprKind::Operand(role) => f(*role, e.ty.width().min(a.ty.width())),
            _ => visit_expr(a, f),
        },
        ExprKind::Mem { addr, .. } => visit_expr(addr, f),
        ExprKind::Binary(_, a, b) => {
            visit_expr(a, f);
            visit_expr(b, f);
        }
        ExprKind::Vgpr { lane, reg } => {
            visit_expr(lane, f);
            visit_expr(reg, f);
        }
        ExprKind::Select(a, b, c) => {
            visit_expr(a, f);
            visit_expr(b, f);
            visit_expr(c, f);
        }
        ExprKind::Call(_, args) | ExprKind::Concat(args) => args.iter().for_each(|a| visit_expr(a, f)),
        // Width 0: the number, not the value.
        ExprKind::OperandIndex(role) => f(*role, 0),
        ExprKind::Const(_) | ExprKind::Local(_) | ExprKind::Field(_) | ExprKind::State(_) => {}
    }
}

/// Whether some statement at the top level assigns all of D0.
fn assigns_whole(op: &Operation, width: u32) -> bool {
    op.sem.body.iter().any(|s| match s {
        Stmt::Assign { place: Place { kind: PlaceKind::Operand(Role::D0), ty }, .. } => ty.width() >= width,
        Stmt::If { arms, otherwise, .. } => {
            let whole = |list: &[Stmt]| {
                list.iter().any(|s| {
                    matches!(s, Stmt::Assign { place: Place { kind: PlaceKind::Operand(Role::D0), ty }, .. }
                        if ty.width() >= width)
                })
            };
            !otherwise.is_empty() && whole(otherwise) && arms.iter().all(|a| whole(&a.1))
        }
        _ => false,
    })
}

fn has_return(list: &[Stmt]) -> bool {
    list.iter().any(|s| match s {
        Stmt::Return { .. } => true,
        Stmt::If { arms, otherwise, .. } => arms.iter().any(|a| has_return(&a.1)) || has_return(otherwise),
        Stmt::For { body, .. } | Stmt::While { body, .. } => has_return(body),
        _ => false,
    })
}

pub fn handler(at: usize, op: &Operation, host: Host) -> TokenStream {
    let widths = widths(op);
    WIDTHS.with(|w| *w.borrow_mut() = widths.clone());
    let sem = &op.sem;
    let mask_d0 = op.sig.family == Family::Vector
        && op.sig.operands.get(&Role::D0).is_some_and(|d| d.mask)
        && sem.uses.writes.contains(&Role::D0);
    let is_lane = sem.shape == Shape::Lane;
    let accesses = if is_lane { rows::accesses(sem) } else { None };
    let emit = Emit {
        sem,
        lane: is_lane,
        mask_d0,
        returns: has_return(&sem.body),
        atomic: is_lane && sem.uses.memory_read && sem.uses.memory_write,
        once_modified: sem.shape == Shape::Wave && op.sig.family == Family::Vector,
        rows: accesses.as_ref(),
        staged: if sem.shape != Shape::Lane && op.sig.family == Family::Scalar {
            let source = |role: &&Role| !matches!(role, Role::D0 | Role::D1 | Role::Vcc);
            widths
                .iter()
                .filter(|(_, width)| **width > 0)
                .map(|(role, _)| role)
                .filter(source)
                .copied()
                .collect()
        } else {
            Vec::new()
        },
        plain_scalars: false,
        eights: None,
    };
    let body = match sem.shape {
        Shape::Lane => lane(op, &emit, &widths, Path::Any),
        _ => once(&emit),
    };
    // Most instructions, without what they do not use.
    let plain = if is_scalar(op) {
        Some(once(&Emit { plain_scalars: true, ..emit.clone() }))
    } else {
        has_plain(sem).then(|| lane(op, &emit, &widths, Path::Plain))
    };
    let general = format_ident!("op{at}");
    let [keep, flush, base] = ["keep", "flush", "base"].map(|mode| variant(at, op, mode));
    let doc = format!("{} ({:?}).", op.name, sem.shape);
    let features = quote! {
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt"))]
    };
    let short = format_ident!("plain{at}");
    // Memory by rows is a function of each half.
    let halved = emit.rows.is_some();
    // `flushing`: what the plain path reads as f32, if its denormals count as zeros.
    let fast = |name: &Ident, mode: TokenStream, flushing: Option<&[TokenStream]>, plain: bool| {
        if halved {
            let one = format_ident!("{name}_half");
            let any = if is_block(sem) { format_ident!("{name}_general") } else { name.clone() };
            let block = Block::of(sem).map(|block| {
                let watched = format_ident!("{name}_watched");
                let (moved, seen) = (block.tokens(&emit, false, &watched), block.tokens(&emit, true, &any));
                quote! {
                    #features
                    pub unsafe fn #name(cx: &mut Cx<'_>, op: &Op) -> Flow { #moved }
                    #features
                    #[cold]
                    #[inline(never)]
                    unsafe fn #watched(cx: &mut Cx<'_>, op: &Op) -> Flow {
                        if cx.watch.is_none() {
                            return unsafe { #any(cx, op) };
                        }
                        #seen
                    }
                }
            });
            return quote! {
                #block
                #features
                #[inline(never)]
                pub unsafe fn #any(cx: &mut Cx<'_>, op: &Op) -> Flow {
                    if cx.wave.halves() == 1 {
                        return unsafe { #one(cx, op, 0) };
                    }
                    match unsafe { #one(cx, op, 0) } {
                        Flow::NEXT => unsafe { #one(cx, op, 1) },
                        flow => flow,
                    }
                }
                #features
                #[inline(never)]
                unsafe fn #one(cx: &mut Cx<'_>, op: &Op, half: usize) -> Flow {
                    #mode
                    unsafe { #general(cx, op, &m, half) }
                }
            };
        }
        if !plain {
            return quote! {
                #features
                pub unsafe fn #name(cx: &mut Cx<'_>, op: &Op) -> Flow { #mode unsafe { #general(cx, op, &m) } }
            };
        }
        let [slow, scalars] = ["general", "broadcast"].map(|variant| format_ident!("{name}_{variant}"));
        // Nothing but the body's own registers in the first function: what calls others is one of its own, and called last.
        let (shortcut, rest) = match flushing {
            None => (quote! { #mode unsafe { #short(cx, op, &m) } }, quote! {}),
            Some(sources) => {
                let settled = if one_operation(sem) {
                    quote! { FlushRows }
                } else {
                    quote! { FlushOut }
                };
                let unsettled = format_ident!("{name}_unsettled");
                let first = quote! {
                    if unsafe { rt::have_no_denormals(cx, [#(#sources),*]) } {
                        let m = #settled;
                        return unsafe { #short(cx, op, &m) };
                    }
                    unsafe { #unsettled(cx, op) }
                };
                let second = quote! {
                    #features
                    #[inline(never)]
                    unsafe fn #unsettled(cx: &mut Cx<'_>, op: &Op) -> Flow {
                        if unsafe { rt::settle(cx, [#(#sources),*]) } {
                            return unsafe { #name(cx, op) };
                        }
                        #mode
                        rt::passed_on(unsafe { #short(cx, op, &m) })
                    }
                };
                (first, second)
            }
        };
        let broadcasting = (!is_scalar(op)).then(|| {
            quote! {
                #features
                pub unsafe fn #scalars(cx: &mut Cx<'_>, op: &Op) -> Flow {
                    unsafe { rt::plain_broadcast(cx, op) };
                    unsafe { #name(cx, op) }
                }
            }
        });
        quote! {
            #features
            pub unsafe fn #name(cx: &mut Cx<'_>, op: &Op) -> Flow { #shortcut }
            #broadcasting
            #rest
            #features
            pub unsafe fn #slow(cx: &mut Cx<'_>, op: &Op) -> Flow { #mode unsafe { #general(cx, op, &m) } }
        }
    };
    // Results of flushing operations hold no denormals, and most sources are such results.
    let flushing: Option<Vec<TokenStream>> = (flushes(sem) && has_plain(sem)).then(|| {
        let read = sem.uses.reads.iter().filter(|role| widths.contains_key(role));
        read.map(|role| match role {
            Role::D0 => quote! { Source::result(op.d) },
            role => slot(*role),
        })
        .collect()
    });
    let (half, first, second) = match halved {
        true => (
            quote! { , half: usize },
            quote! { , 0 },
            quote! {
                if cx.wave.halves() == 2 {
                    let flow = unsafe { #general(cx, op, &m, 0) };
                    return if flow == Flow::NEXT { unsafe { #general(cx, op, &m, 1) } } else { flow };
                }
            },
        ),
        false => (quote! {}, quote! {}, quote! {}),
    };
    let mut out = quote! {
        #[doc = #doc]
        #[inline(always)]
        unsafe fn #general<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M #half) -> Flow { #body }
    };
    if host == Host::Any {
        // Any float mode, compiled once: rounding modes other than the default are too rare for a third set of vector code.
        let mode = if op.sem.uses.float.is_empty() {
            quote! { Keep }
        } else {
            quote! { cx.general }
        };
        out.extend(quote! {
            pub unsafe fn #base(cx: &mut Cx<'_>, op: &Op) -> Flow {
                let m = #mode;
                #second
                unsafe { #general(cx, op, &m #first) }
            }
        });
        return out;
    }
    let has_plain = plain.is_some();
    if let Some(plain) = plain {
        out.extend(quote! {
            #[inline(always)]
            unsafe fn #short<M: Mode>(cx: &mut Cx<'_>, op: &Op, m: &M) -> Flow { #plain }
        });
    }
    out.extend(fast(&keep, quote! { let m = Keep; }, None, has_plain));
    if flush != keep {
        out.extend(fast(&flush, quote! { let m = Flush; }, flushing.as_deref(), has_plain));
    }
    out
}

/// The function that runs an operation in a mode. Operations without f32 have one for both of the modes that differ in f32 alone.
fn variant(at: usize, op: &Operation, mode: &str) -> Ident {
    let float = &op.sem.uses.float;
    let own = match mode {
        // MODE[5:4] is of both.
        "flush" => float.contains(&Ty::F32) || float.contains(&Ty::BF16),
        _ => true,
    };
    format_ident!("op{at}_{}", if own { mode } else { "keep" })
}

/// The functions that run an operation in a mode, by `Variant`; in waves of 64 (`wide`) each is the one for any operands.
pub fn variants(at: usize, op: &Operation, mode: &str, wide: bool) -> [Ident; 3] {
    let plain = variant(at, op, mode);
    let lanes = has_plain(&op.sem);
    if mode == "base" || !(lanes || is_block(&op.sem) || is_scalar(op)) {
        return [plain.clone(), plain.clone(), plain];
    }
    let [any, scalars] = ["general", "broadcast"].map(|variant| format_ident!("{plain}_{variant}"));
    let scalars = if lanes { scalars } else { any.clone() };
    if wide && !is_scalar(op) { [any.clone(), any.clone(), any] } else { [any, plain, scalars] }
}

fn declare_locals(sem: &Semantics) -> TokenStream {
    sem.locals
        .iter()
        .enumerate()
        .map(|(id, l)| {
            let name = local(id as LocalId);
            let hold = holder(l.ty.width());
            match l.len {
                Some(n) => {
                    let n = n as usize;
                    quote! { let mut #name: [#hold; #n] = [0; #n]; }
                }
                None => quote! { let mut #name: #hold = 0; },
            }
        })
        .collect()
}

/// Once a wave.
fn once(emit: &Emit<'_>) -> TokenStream {
    let locals = declare_locals(emit.sem);
    let body = emit.stmts(&emit.sem.body);
    let staged = emit.staged.iter().map(|role| {
        let (name, value) = (role_name(*role), emit.scalar(*role, role_width(emit.sem, *role)));
        quote! { let #name = #value; }
    });
    let refresh = if changes_mode(emit.sem) {
        quote! { cx.refresh_mode(); flow = Flow::MODE; }
    } else {
        quote! {}
    };
    quote! {
        let mut flow = Flow::NEXT;
        let clamp = rt::clamp(op);
        #(#staged)*
        #locals
        'body: { #body }
        #refresh
        flow
    }
}

/// Whether the body can change MODE.
fn changes_mode(sem: &Semantics) -> bool {
    fn calls(list: &[Stmt]) -> bool {
        list.iter().any(|s| match s {
            Stmt::Call { builtin, .. } => *builtin == Control::SetReg,
            Stmt::If { arms, otherwise, .. } => arms.iter().any(|a| calls(&a.1)) || calls(otherwise),
            Stmt::For { body, .. } | Stmt::While { body, .. } => calls(body),
            _ => false,
        })
    }
    sem.uses.state_writes.contains(&State::Mode) || calls(&sem.body)
}

/// Whether a body that [`flushes`] is a single operation: nothing between its sources and its result.
fn one_operation(sem: &Semantics) -> bool {
    let leaf = |e: &Expr| matches!(e.kind, ExprKind::Operand(_));
    flushes(sem)
        && matches!(&sem.body[..], [Stmt::Assign { value, .. }] if match &value.kind {
            ExprKind::Binary(_, a, b) => leaf(a) && leaf(b),
            ExprKind::Call(_, args) => args.iter().all(leaf),
            _ => false,
        })
}

/// Whether the body is one f32 operation that flushes what it reads and what it gives, and nothing else.
fn flushes(sem: &Semantics) -> bool {
    fn value(e: &Expr) -> bool {
        e.ty == Ty::F32
            && match &e.kind {
                ExprKind::Binary(op, a, b) => {
                    matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul) && read(a) && read(b)
                }
                ExprKind::Call(b, args) => *b == Builtin::Pure(Pure::Fma) && args.iter().all(read),
                _ => false,
            }
    }
    fn read(e: &Expr) -> bool {
        e.ty == Ty::F32 && (matches!(e.kind, ExprKind::Operand(_)) || value(e))
    }
    matches!(&sem.body[..], [Stmt::Assign { place: Place { kind: PlaceKind::Operand(Role::D0), ty: Ty::F32 }, value: v, .. }] if value(v))
}

/// Which operands a lane handler can meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    /// All.
    Any,
    /// Of `Variant::Fast`, in a wave of 32: sources as they stand, no modifiers.
    Plain,
}

/// Whether lanes go one after the other, active ones only: memory, registers by number, control, and bodies too heavy to vectorise.
fn by_lane(sem: &Semantics) -> bool {
    sem.uses.memory_read || sem.uses.memory_write || sem.uses.control || sem.uses.registers || heavy(sem)
}

/// Whether an operation has a plain path.
fn has_plain(sem: &Semantics) -> bool {
    sem.shape == Shape::Lane && !by_lane(sem)
}

/// Whether an operation's plain path is that of a scalar instruction: SGPRs and constants as they stand.
fn is_scalar(op: &Operation) -> bool {
    let uses = &op.sem.uses;
    let widths = widths(op);
    op.sem.shape == Shape::Scalar
        && op.sig.family == Family::Scalar
        && !(uses.memory_read || uses.memory_write || uses.control || uses.registers)
        && !widths.is_empty()
        && widths.iter().all(|(role, width)| *width <= 64 && !matches!(role, Role::D1 | Role::Vcc))
}

/// Whether an operation's plain path is that of a load or store of neighbours.
pub fn is_block(sem: &Semantics) -> bool {
    sem.shape == Shape::Lane && Block::of(sem).is_some()
}

/// Whether an operation has a plain path of whole operands, a lane's or a scalar instruction's.
pub fn is_staged(op: &Operation) -> bool {
    has_plain(&op.sem) || is_scalar(op)
}

/// Registers that handlers read of each source slot.
pub fn sources(op: &Operation) -> [u8; 4] {
    let mut dwords = [0; 4];
    for (role, width) in widths(op) {
        if !matches!(role, Role::D0 | Role::D1 | Role::Vcc) {
            let slot = &mut dwords[slot_index(role)];
            *slot = (*slot).max(width.div_ceil(32) as u8);
        }
    }
    dwords
}

/// Registers that the result has; a mask has none of the lanes'.
pub fn result(op: &Operation) -> u8 {
    if op.sig.family == Family::Vector && op.sig.operands.get(&Role::D0).is_some_and(|d| d.mask) {
        return 0;
    }
    widths(op).get(&Role::D0).map_or(0, |width| width.div_ceil(32) as u8)
}

/// Per lane.
fn lane(op: &Operation, emit: &Emit<'_>, widths: &BTreeMap<Role, u32>, path: Path) -> TokenStream {
    let plain = path == Path::Plain;
    let sem = emit.sem;
    let writes_d0 = sem.uses.writes.contains(&Role::D0) && !emit.mask_d0;
    let writes_vcc = sem.uses.writes.contains(&Role::Vcc);
    let writes_exec = sem.uses.state_writes.contains(&State::Exec);
    let d_width = widths.get(&Role::D0).copied().unwrap_or(32);
    // A 16-bit result is merged into its half by the write-back.
    let half = writes_d0 && d_width <= 16;
    let whole = assigns_whole(op, d_width);
    let preload =
        writes_d0 && (!whole || sem.uses.reads.contains(&Role::D0)) || sem.uses.reads.contains(&Role::D0);
    // Sources.
    let mut stage = TokenStream::new();
    let mut read = TokenStream::new();
    // Of the scalar base, where the rest does without it in rows.
    let mut base = (TokenStream::new(), TokenStream::new());
    let is_sum = emit.rows.is_some_and(rows::Accesses::is_sum);
    for (&role, &width) in widths {
        if matches!(role, Role::D0 | Role::Vcc | Role::D1) {
            continue;
        }
        let rows = format_ident!("r_{}", role_name(role));
        let slot = slot(role);
        let index = slot_index(role);
        let dwords = width.div_ceil(32) as usize;
        let (stage, read) =
            if is_sum && role == Role::SAddr { (&mut base.0, &mut base.1) } else { (&mut stage, &mut read) };
        stage.extend(if plain {
            quote! { let #rows = rt::plain_stage(file, #slot); }
        } else {
            quote! { let mut #rows = rt::stage::<#dwords>(cx, file, #slot, #index, half); }
        });
        let name = role_name(role);
        let value = read_rows(&rows, width);
        read.extend(quote! { let #name = #value; });
    }
    let sources: Vec<(usize, _)> = widths
        .keys()
        .filter_map(|r| {
            let index = match r {
                Role::S0 => 0usize,
                Role::S1 => 1,
                Role::S2 => 2,
                Role::S3 => 3,
                _ => return None,
            };
            Some((index, format_ident!("r_{}", role_name(*r))))
        })
        .collect();
    // Also without sources: DPP's masks switch lanes off.
    let modify = if plain || op.sig.family != Family::Vector {
        quote! {}
    } else {
        // By value in a list of their own: the pointers stay in registers where nothing is modified.
        let count = sources.len();
        let list = sources.iter().map(|(index, rows)| quote! { (#index, #rows) });
        let back = sources.iter().enumerate().map(|(at, (_, rows))| quote! { #rows = list[#at].1; });
        quote! {
            if op.flags & Op::MODIFY != 0 {
                let mut list: [(usize, *const LaneVec); #count] = [#(#list),*];
                exec = rt::modify(cx, op, half, exec, &mut list);
                #(#back)*
            }
        }
    };
    let d_rows = d_width.div_ceil(32) as usize;
    let d_hold = holder(d_width);
    let old = if preload {
        let value = read_rows(&format_ident!("r_old"), d_width);
        if half {
            quote! { let mut d0: #d_hold = rt::old_half(op, (*r_old.add(0)).0[l]); }
        } else {
            quote! { let mut d0: #d_hold = #value as #d_hold; }
        }
    } else if writes_d0 {
        quote! { let mut d0: #d_hold = 0; }
    } else {
        quote! {}
    };
    let old_vecs = if preload {
        quote! { let r_old = rt::old_vecs(cx, file, op, half); }
    } else {
        quote! {}
    };
    let locals = declare_locals(sem);
    let eights = plain.then(|| Eights::of(sem)).flatten();
    let eights_before = eights.as_ref().map(|eights| eights.tokens(emit, &read, &locals));
    let emit = &Emit { eights: eights.as_ref(), ..emit.clone() };
    let body = emit.stmts(emit.rows.map_or(&sem.body[..], |accesses| accesses.loop_of(&sem.body)));
    let body = if emit.returns {
        quote! { 'body: { #body } }
    } else {
        body
    };
    let body = if emit.atomic {
        quote! { let mut loaded: u128 = 0; 'retry: loop { #body break; } }
    } else {
        body
    };
    let results = (0..d_rows).map(|k| {
        let shift = 32 * k as u32;
        let name = format_ident!("o{k}");
        quote! { #name.0[l] = (d0 >> #shift) as u32; }
    });
    let results = if writes_d0 {
        quote! { #(#results)* }
    } else {
        quote! {}
    };
    let declare_results = if writes_d0 {
        let names = (0..d_rows).map(|k| format_ident!("o{k}"));
        quote! { #(let mut #names = LaneVec::ZERO;)* }
    } else {
        quote! {}
    };
    let mut masks = TokenStream::new();
    let mut mask_start = TokenStream::new();
    let mut mask_lane = TokenStream::new();
    let mut mask_end = TokenStream::new();
    let mut mask = |name: &str, end: TokenStream| {
        let (var, row) = (format_ident!("m_{name}"), format_ident!("k_{name}"));
        masks.extend(quote! { let mut #row = LaneVec::ZERO; });
        mask_start.extend(quote! { let mut #var: u32 = 0; });
        mask_lane.extend(quote! { #row.0[l] = (#var & 1) << l; });
        mask_end.extend(quote! { let bits = rt::gather(&#row) & exec; #end });
    };
    if emit.mask_d0 {
        let kept = op.sig.operands.get(&Role::D0).is_some_and(|d| d.input).then(|| {
            quote! { let bits = bits | rt::read_mask_half(cx, Source::sgpr(op.d), half) & !exec; }
        });
        mask("d0", quote! { #kept all_d0 |= (bits as u64) << lane_base; });
    }
    if writes_vcc {
        mask("vcc", quote! { all_vcc |= (bits as u64) << lane_base; });
    }
    if writes_exec {
        mask("exec", quote! { new_exec |= (bits as u64) << lane_base; });
    }
    let vcc_in = if sem.uses.reads.contains(&Role::Vcc) {
        quote! { let vcc_in = rt::read_mask_half(cx, op.src[3], half); }
    } else {
        quote! {}
    };
    let write = if writes_d0 {
        let names = (0..d_rows).map(|k| format_ident!("o{k}"));
        let fmt = out_fmt(op, sem, d_width);
        if half {
            quote! { rt::write_half(cx, file, op, half, exec, #fmt, [#(#names),*]); }
        } else if plain {
            let mark = if flushes(sem) {
                quote! {
                    if M::FLUSH { rt::flushed(cx, op, exec); } else { rt::written::<#d_rows>(cx, op.d); }
                }
            } else {
                quote! { rt::written::<#d_rows>(cx, op.d); }
            };
            let flush = if one_operation(sem) {
                quote! { if M::FLUSH_ROWS { return rt::flushing_write(cx, file, op, exec, o0); } }
            } else {
                quote! {}
            };
            quote! { #flush rt::plain_write::<#d_rows>(cx, file, op, exec, [#(#names),*]); #mark }
        } else {
            quote! { rt::write::<#d_rows>(cx, file, op, half, exec, #fmt, [#(#names),*]); }
        }
    } else {
        quote! {}
    };
    let guard = if by_lane(sem) && emit.rows.is_none() {
        quote! { if exec >> l & 1 == 0 { continue; } }
    } else {
        quote! {}
    };
    let mut exec_end = if writes_exec {
        quote! { cx.wave.set_exec(new_exec); }
    } else {
        quote! {}
    };
    // Masks are written when both halves have read: a source may be the same register.
    if emit.mask_d0 {
        exec_end.extend(quote! { rt::set_mask(cx, op.d, all_d0); });
    }
    if writes_vcc {
        exec_end.extend(quote! { rt::set_mask(cx, op.d1, all_vcc); });
    }
    let (before, after) = match emit.rows {
        Some(accesses) => accesses.tokens(emit, &read, &locals, &base),
        None => (quote! {}, quote! {}),
    };
    let one_half = quote! {
        #stage
        #old_vecs
        #modify
        #vcc_in
        #declare_results
        #masks
        #eights_before
        #before
        for l in 0..32usize {
            #guard
            let lane: u32 = lane_base + l as u32;
            #read
            #old
            #mask_start
            #locals
            #body
            #results
            #mask_lane
        }
        #after
        #mask_end
        #write
    };
    // Lowered for the plain path, run by the general one: a wave of 64, a host without vectors.
    let scalars = if !plain && has_plain(sem) {
        quote! { if op.flags & Op::BROADCAST != 0 { rt::broadcast(cx, op); } }
    } else {
        quote! {}
    };
    let halves = if emit.rows.is_some() {
        // A half of its own: what stays the same for both would only be in the way of a wave of 32.
        quote! {
            let lane_base: u32 = 32 * half as u32;
            let mut exec: u32 = (cx.wave.exec() >> lane_base) as u32;
            #one_half
        }
    } else if plain {
        quote! {
            const half: usize = 0;
            const lane_base: u32 = 0;
            let exec = cx.wave.sgprs[126];
            #one_half
        }
    } else {
        quote! {
            for half in 0..cx.wave.halves() {
                let lane_base: u32 = 32 * half as u32;
                let mut exec: u32 = (cx.wave.exec() >> lane_base) as u32;
                #one_half
            }
        }
    };
    // The clamp bit is not for the plain path.
    let clamp = if plain {
        quote! { const clamp: bool = false; }
    } else {
        quote! { let clamp = rt::clamp(op); }
    };
    quote! {
        let mut flow = Flow::NEXT;
        #clamp
        let (mut new_exec, mut all_d0, mut all_vcc) = (0u64, 0u64, 0u64);
        #scalars
        let file = rt::file(cx);
        #halves
        #exec_end
        flow
    }
}

/// The value of a lane out of consecutive rows.
fn read_rows(rows: &proc_macro2::Ident, width: u32) -> TokenStream {
    match width.div_ceil(32) {
        0 | 1 => quote! { (*#rows.add(0)).0[l] },
        2 => quote! { ((*#rows.add(0)).0[l] as u64 | ((*#rows.add(1)).0[l] as u64) << 32) },
        n => {
            let parts = (0..n as usize).map(|k| {
                let shift = 32 * k as u32;
                quote! { ((*#rows.add(#k)).0[l] as u128) << #shift }
            });
            quote! { (#(#parts)|*) }
        }
    }
}

/// Which output modifiers a result can take.
fn out_fmt(op: &Operation, sem: &Semantics, width: u32) -> TokenStream {
    let mut ty = None;
    find_d0_type(&sem.body, &mut ty);
    // Packed results clamp each half.
    if op.name.starts_with("V_PK_") && op.name.ends_with("F16") || op.name == "V_CVT_PK_RTZ_F16_F32" {
        return quote! { rt::Out::PackedF16 };
    }
    match ty {
        Some(Ty::F32) if width == 32 => quote! { rt::Out::F32 },
        Some(Ty::F64) => quote! { rt::Out::F64 },
        Some(Ty::F16) if width <= 16 => quote! { rt::Out::F16 },
        Some(Ty::BF16) if width <= 16 => quote! { rt::Out::BF16 },
        _ => quote! { rt::Out::Bits },
    }
}

fn find_d0_type(list: &[Stmt], out: &mut Option<Ty>) {
    for s in list {
        match s {
            Stmt::Assign { place: Place { kind: PlaceKind::Operand(Role::D0), ty }, .. }
                if ty.is_float() || out.is_none() =>
            {
                *out = Some(*ty);
            }
            Stmt::If { arms, otherwise, .. } => {
                arms.iter().for_each(|a| find_d0_type(&a.1, out));
                find_d0_type(otherwise, out);
            }
            _ => {}
        }
    }
}

/// Operands whose number the body reads.
pub fn indexed(sem: &Semantics) -> std::collections::BTreeSet<Role> {
    let mut out = std::collections::BTreeSet::new();
    visit(&sem.body, &mut |role, width| {
        if width == 0 {
            out.insert(role);
        }
    });
    out
}

/// Bodies that call out of line per lane.
fn heavy(sem: &Semantics) -> bool {
    fn expr(e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Call(b, args) => {
                let slow = matches!(
                    b,
                    Builtin::Pure(
                        Pure::Exp2
                            | Pure::Log2
                            | Pure::Sin
                            | Pure::Cos
                            | Pure::TrigPreop
                            | Pure::FromFormat
                            | Pure::ToFormat
                    )
                );
                slow || args.iter().any(expr)
            }
            ExprKind::Binary(_, a, b) => expr(a) || expr(b),
            ExprKind::Unary(_, a) | ExprKind::Convert(a) | ExprKind::Bits(a) => expr(a),
            ExprKind::Select(a, b, c) => expr(a) || expr(b) || expr(c),
            _ => false,
        }
    }
    fn stmts(list: &[Stmt]) -> bool {
        list.iter().any(|s| match s {
            Stmt::Assign { value, .. } => expr(value),
            Stmt::If { arms, otherwise, .. } => arms.iter().any(|a| stmts(&a.1)) || stmts(otherwise),
            Stmt::For { .. } | Stmt::While { .. } => true,
            _ => false,
        })
    }
    stmts(&sem.body)
}
