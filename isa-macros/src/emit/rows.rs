//! Bodies that reach memory once a lane, whatever the lane: their accesses are made for 32 lanes at once, so that addresses are
//! computed and values distributed in vector loops, and neighbouring elements move as a block.

use super::expr::Emit;
use isa_spec::pcode::ir::*;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// The accesses of a body, in order: loads, or one store.
pub struct Accesses<'a>(Vec<Access<'a>>);

struct Access<'a> {
    store: bool,
    space: Space,
    addr: &'a Expr,
    width: u32,
    /// Statements that the address may depend on.
    before: &'a [Stmt],
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
                Some(Access { store: true, space: *space, addr, width: place.ty.width(), before })
            }
            (PlaceKind::Mem { .. }, Some(_)) => return None,
            (_, Some((space, addr, width))) => Some(Access { store: false, space, addr, width, before }),
            (_, None) => None,
        };
        found.extend(here);
    }
    let one_way = found.len() == 1 || !found.is_empty() && found.iter().all(|a| !a.store);
    let plain = found.iter().all(|a| load(a.addr).is_some_and(|inner| inner.is_none()));
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

    /// What comes before the lane loop, and what behind it.
    pub fn tokens(
        &self,
        emit: &Emit<'_>,
        read: &TokenStream,
        locals: &TokenStream,
    ) -> (TokenStream, TokenStream) {
        self.0.iter().map(|a| a.tokens(self, emit, read, locals)).unzip()
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
    ) -> (TokenStream, TokenStream) {
        let (bytes, dwords) = (self.width.div_ceil(8) as usize, self.width.div_ceil(32) as usize);
        let space = format_ident!("{}", format!("{:?}", self.space));
        // LDS is small: its addresses are 32-bit offsets.
        let lds = self.space == Space::Lds;
        let addresses = if lds {
            quote! { Row::ZERO }
        } else {
            quote! { [0u64; 32] }
        };
        if self.store {
            let call = if lds {
                quote! { rt::store_lds::<#bytes, #dwords>(cx, &addresses, exec, lane_base, &stored) }
            } else {
                quote! { rt::store_rows::<#bytes, #dwords>(cx, rt::Space::#space, &addresses, exec, lane_base, &stored) }
            };
            let before = quote! {
                let mut addresses = #addresses;
                let mut stored = [Row::ZERO; #dwords];
            };
            return (before, quote! { if let Err(flow) = #call { return flow; } });
        }
        let (statements, addr) = (emit.stmts(self.before), emit.address(self.space, self.addr));
        let loaded = all.loaded(self.addr);
        let set = set_address(self.space, addr);
        let call = if lds {
            quote! { rt::load_lds::<#bytes, #dwords>(cx, &addresses, exec, lane_base) }
        } else {
            quote! { rt::load_rows::<#bytes, #dwords>(cx, rt::Space::#space, &addresses, exec, lane_base) }
        };
        let before = quote! {
            let mut addresses = #addresses;
            for l in 0..32usize {
                let lane: u32 = lane_base + l as u32;
                #read
                #locals
                #statements
                #set
            }
            let #loaded = match #call {
                Ok(rows) => rows,
                Err(flow) => return flow,
            };
        };
        (before, quote! {})
    }
}
