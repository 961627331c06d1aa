//! Bodies that reach memory once a lane, whatever the lane: their accesses are made for 32 lanes at once, so that addresses are
//! computed and values distributed in vector loops, and neighbouring elements move as a block.

use super::expr::Emit;
use isa_spec::pcode::ir::*;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// The accesses of a body, in order: loads, or one store.
pub struct Accesses<'a>(pub(super) Vec<Access<'a>>);

pub(super) struct Access<'a> {
    pub store: bool,
    pub space: Space,
    pub addr: &'a Expr,
    pub width: u32,
    /// Statements that the address may depend on.
    before: &'a [Stmt],
    pub sum: Option<Sum<'a>>,
}

/// An address that is one number of the wave and 32 bits of each lane: the lanes' part stays a row as it is.
pub(super) struct Sum<'a> {
    /// Where this holds, the same for all lanes, the address is something else.
    pub unless: Option<&'a Expr>,
    /// What the wave adds.
    base: Vec<&'a Expr>,
    /// The lanes' part.
    pub offsets: Role,
}

impl<'a> Sum<'a> {
    fn of(addr: &'a Expr) -> Option<Sum<'a>> {
        match &addr.kind {
            ExprKind::Select(unless, _, sum) if is_uniform(unless) => {
                Some(Sum { unless: Some(unless), ..Sum::of(sum)? })
            }
            _ => {
                let mut sum = Sum { unless: None, base: Vec::new(), offsets: Role::Other };
                (sum.add(addr) && sum.offsets != Role::Other).then_some(sum)
            }
        }
    }

    /// `base`, with the scalar part of the address as it is read.
    pub fn base(&self, emit: &Emit<'_>, saddr: TokenStream) -> TokenStream {
        let terms = self.base.iter().map(|term| emit.expr(term));
        quote! {
            let saddr = #saddr;
            let base = 0u64 #(.wrapping_add(#terms))*;
        }
    }

    /// Adds a term; false if it is of another kind.
    fn add(&mut self, e: &'a Expr) -> bool {
        if e.ty.width() != 64 {
            return false;
        }
        match &e.kind {
            _ if is_uniform(e) => {
                self.base.push(e);
                true
            }
            ExprKind::Binary(BinOp::Add, a, b) => self.add(a) && self.add(b),
            ExprKind::Convert(lane) if self.offsets == Role::Other && lane.ty == Ty::U(32) => {
                if let ExprKind::Operand(role) = lane.kind {
                    self.offsets = role;
                }
                self.offsets != Role::Other
            }
            _ => false,
        }
    }
}

/// Whether statements look at a local once, and not at the scalar base.
fn reads_once(list: &[Stmt], id: LocalId) -> bool {
    fn count(e: &Expr, id: LocalId) -> u32 {
        match &e.kind {
            ExprKind::Local(other) => (*other == id) as u32,
            ExprKind::Unary(_, a) | ExprKind::Convert(a) | ExprKind::Bits(a) => count(a, id),
            ExprKind::Mem { addr, .. } => count(addr, id),
            ExprKind::Slice { base, lo } => count(base, id) + count(lo, id),
            ExprKind::Binary(_, a, b) => count(a, id) + count(b, id),
            ExprKind::Operand(Role::SAddr) => 2,
            ExprKind::Operand(_) | ExprKind::Const(_) | ExprKind::Field(_) => 0,
            // Rare, and not looked into.
            _ => 2,
        }
    }
    let [Stmt::Assign { place, value, .. }] = list else { return false };
    let place = match &place.kind {
        PlaceKind::Operand(_) => 0,
        PlaceKind::Mem { addr, .. } => count(addr, id),
        PlaceKind::Slice { base, lo } if matches!(base.kind, PlaceKind::Operand(_)) => count(lo, id),
        _ => 2,
    };
    place + count(value, id) == 1
}

/// The same in all lanes: made of the scalar base, fields and constants.
pub(super) fn is_uniform(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Const(_) | ExprKind::Field(_) | ExprKind::OperandIndex(_) => true,
        ExprKind::Operand(role) => *role == Role::SAddr,
        ExprKind::Unary(_, a) | ExprKind::Convert(a) | ExprKind::Bits(a) => is_uniform(a),
        ExprKind::Binary(_, a, b) => is_uniform(a) && is_uniform(b),
        ExprKind::Select(a, b, c) => is_uniform(a) && is_uniform(b) && is_uniform(c),
        _ => false,
    }
}

/// The accesses, if they are outside of branches and loops and the body does nothing else to the machine. Of stores one only: two would
/// reach memory in another order than lane by lane.
pub fn accesses(sem: &Semantics) -> Option<Accesses<'_>> {
    if sem.uses.control || !sem.uses.state_writes.is_empty() || sem.uses.memory_read == sem.uses.memory_write
    {
        return None;
    }
    let mut found: Vec<Access<'_>> = Vec::new();
    for (at, stmt) in sem.body.iter().enumerate() {
        let Stmt::Assign { place, value, .. } = stmt else {
            if mentions(stmt) {
                return None;
            }
            continue;
        };
        let before = &sem.body[..at];
        let here = match (&place.kind, load(value)?) {
            (PlaceKind::Mem { space, addr }, None) => {
                Some(Access { store: true, space: *space, addr, width: place.ty.width(), before, sum: None })
            }
            (PlaceKind::Mem { .. }, Some(_)) => return None,
            (_, Some((space, addr, width))) => {
                Some(Access { store: false, space, addr, width, before, sum: None })
            }
            (_, None) => None,
        };
        found.extend(here);
    }
    let one_way = found.len() == 1 || !found.is_empty() && found.iter().all(|a| !a.store);
    let plain = found.iter().all(|a| load(a.addr).is_some_and(|inner| inner.is_none()));
    if let [only] = &mut found[..]
        && only.space == Space::Global
        && let [Stmt::Assign { place: Place { kind: PlaceKind::Local(id), .. }, value, .. }, rest @ ..] =
            &sem.body[..]
        && only.before.len() == 1
        && matches!(only.addr.kind, ExprKind::Local(address) if address == *id)
        && reads_once(rest, *id)
    {
        only.sum = Sum::of(value);
    }
    (one_way && plain).then_some(Accesses(found))
}

/// The load in an expression, if it has one that always happens; outer `None` if there are several, or one under a condition.
type Load<'a> = Option<(Space, &'a Expr, u32)>;

fn load(e: &Expr) -> Option<Load<'_>> {
    let all = |parts: &mut dyn Iterator<Item = &'_ Expr>| -> Option<bool> {
        let mut any = false;
        for part in parts {
            any |= load(part)?.is_some();
        }
        Some(any)
    };
    Some(match &e.kind {
        ExprKind::Mem { space, addr } => {
            load(addr)?.is_none().then_some(())?;
            Some((*space, addr, e.ty.width()))
        }
        ExprKind::Unary(_, a) | ExprKind::Convert(a) | ExprKind::Bits(a) => load(a)?,
        ExprKind::Slice { base, lo } => {
            load(lo)?.is_none().then_some(())?;
            load(base)?
        }
        ExprKind::Binary(_, a, b) => match (load(a)?, load(b)?) {
            (Some(_), Some(_)) => return None,
            (a, b) => a.or(b),
        },
        ExprKind::Select(a, b, c) => {
            (!all(&mut [&**a, b, c].into_iter())?).then_some(())?;
            None
        }
        ExprKind::Call(_, args) | ExprKind::Concat(args) => {
            (!all(&mut args.iter())?).then_some(())?;
            None
        }
        ExprKind::Element(_, a) | ExprKind::Sgpr { reg: a } => {
            load(a)?.is_none().then_some(())?;
            None
        }
        // Other lanes' registers: not a matter of one lane.
        ExprKind::Vgpr { .. } | ExprKind::OperandLane { .. } => return None,
        ExprKind::Const(_)
        | ExprKind::Local(_)
        | ExprKind::Operand(_)
        | ExprKind::OperandIndex(_)
        | ExprKind::Field(_)
        | ExprKind::State(_) => None,
    })
}

/// Whether a statement that is no assignment reaches memory, or ends the body.
fn mentions(stmt: &Stmt) -> bool {
    let expr = |e: &Expr| !matches!(load(e), Some(None));
    match stmt {
        Stmt::Assign { place, value, .. } => matches!(place.kind, PlaceKind::Mem { .. }) || expr(value),
        Stmt::If { arms, otherwise, .. } => {
            arms.iter().any(|(cond, body)| expr(cond) || body.iter().any(mentions))
                || otherwise.iter().any(mentions)
        }
        _ => true,
    }
}

impl Accesses<'_> {
    /// The rows that hold what was loaded from an address of the body.
    pub fn loaded(&self, addr: &Expr) -> Option<Ident> {
        let at = self.0.iter().position(|a| !a.store && std::ptr::eq(a.addr, addr))?;
        Some(format_ident!("loaded{at}"))
    }

    /// Whether the address is a sum: its scalar part need not be in rows, and the lane loop has nothing to do with it.
    pub fn is_sum(&self) -> bool {
        self.0.iter().any(|a| a.sum.is_some())
    }

    /// What the lane loop does of a body: not the address, if that is a sum.
    pub fn loop_of<'b>(&self, body: &'b [Stmt]) -> &'b [Stmt] {
        if self.is_sum() { &body[1..] } else { body }
    }

    /// What comes before the lane loop, and what behind it. `base`: how the scalar base is put in rows and read from there, where the
    /// address is a sum.
    pub fn tokens(
        &self,
        emit: &Emit<'_>,
        read: &TokenStream,
        locals: &TokenStream,
        base: &(TokenStream, TokenStream),
    ) -> (TokenStream, TokenStream) {
        self.0.iter().map(|a| a.tokens(self, emit, read, locals, base)).unzip()
    }
}

/// Puts a lane's address in the list of all.
pub fn set_address(space: Space, addr: TokenStream) -> TokenStream {
    match space {
        Space::Lds => quote! { addresses.0[l] = rt::lds_offset(#addr); },
        _ => quote! { addresses[l] = #addr; },
    }
}

impl Access<'_> {
    fn tokens(
        &self,
        all: &Accesses<'_>,
        emit: &Emit<'_>,
        read: &TokenStream,
        locals: &TokenStream,
        base: &(TokenStream, TokenStream),
    ) -> (TokenStream, TokenStream) {
        let dwords = self.width.div_ceil(32) as usize;
        let addresses = self.addresses(emit, read, locals, base);
        if self.store {
            let stored = quote! { let mut stored = [LaneVec::ZERO; #dwords]; };
            let (before, call) = match &self.sum {
                // What it stores to is not the lane loop's matter.
                Some(sum) => (stored, self.either(sum, emit, &addresses)),
                None => {
                    let empty = self.no_addresses();
                    (quote! { let mut addresses = #empty; #stored }, self.call())
                }
            };
            return (before, quote! { if let Err(flow) = #call { return flow; } });
        }
        let loaded = all.loaded(self.addr);
        let call = match &self.sum {
            Some(sum) => self.either(sum, emit, &addresses),
            None => {
                let call = self.call();
                quote! { { #addresses #call } }
            }
        };
        let before = quote! {
            let #loaded = match #call {
                Ok(rows) => rows,
                Err(flow) => return flow,
            };
        };
        (before, quote! {})
    }

    /// LDS is small: its addresses are 32-bit offsets.
    fn no_addresses(&self) -> TokenStream {
        match self.space {
            Space::Lds => quote! { LaneVec::ZERO },
            _ => quote! { [0u64; 32] },
        }
    }

    /// A loop that fills in every lane's address.
    fn addresses(
        &self,
        emit: &Emit<'_>,
        read: &TokenStream,
        locals: &TokenStream,
        (stage_base, read_base): &(TokenStream, TokenStream),
    ) -> TokenStream {
        let (statements, addr) = (emit.stmts(self.before), emit.address(self.space, self.addr));
        let (empty, set) = (self.no_addresses(), set_address(self.space, addr));
        quote! {
            let mut addresses = #empty;
            #stage_base
            for l in 0..32usize {
                let lane: u32 = lane_base + l as u32;
                #read
                #read_base
                #locals
                #statements
                #set
            }
        }
    }

    /// The access at `addresses`.
    fn call(&self) -> TokenStream {
        let (bytes, dwords) = (self.width.div_ceil(8) as usize, self.width.div_ceil(32) as usize);
        let space = format_ident!("{}", format!("{:?}", self.space));
        match (self.space, self.store) {
            (Space::Lds, true) => {
                quote! { rt::store_lds::<#bytes, #dwords>(cx, &addresses, exec, lane_base, &stored) }
            }
            (Space::Lds, false) => {
                quote! { rt::load_lds::<#bytes, #dwords>(cx, &addresses, exec, lane_base) }
            }
            (_, true) => {
                quote! { rt::store_vecs::<#bytes, #dwords>(cx, rt::Space::#space, &addresses, exec, lane_base, &stored) }
            }
            (_, false) => {
                quote! { rt::load_vecs::<#bytes, #dwords>(cx, rt::Space::#space, &addresses, exec, lane_base) }
            }
        }
    }

    /// The access at a base and the lanes' offsets, or at `addresses` where the address is something else.
    fn either(&self, sum: &Sum<'_>, emit: &Emit<'_>, addresses: &TokenStream) -> TokenStream {
        let (bytes, dwords) = (self.width.div_ceil(8) as usize, self.width.div_ceil(32) as usize);
        let offsets = format_ident!("r_{}", super::expr::role_name(sum.offsets));
        let saddr = emit.scalar(Role::SAddr, super::handler::role_width(emit.sem, Role::SAddr));
        let base = sum.base(emit, saddr);
        let window = if self.store {
            quote! { rt::store_offsets::<#bytes, #dwords>(cx, base, #offsets, exec, lane_base, &stored) }
        } else {
            quote! { rt::load_offsets::<#bytes, #dwords>(cx, base, #offsets, exec, lane_base) }
        };
        let call = self.call();
        match sum.unless {
            Some(unless) => {
                let unless = emit.expr(unless);
                quote! { if #unless != 0 { #addresses #call } else { #base #window } }
            }
            None => quote! { { #base #window } },
        }
    }
}
