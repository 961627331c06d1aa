//! Random stores to LDS, atomic operations, and copies of memory. The results of atomic operations do not
//! depend on their order: those on shared elements are ignored, and apply one operation between barriers.

use super::expr::{Access, LDS};
use super::generate::{Focus, OWN_BYTES, Statements};
use super::tree::Scalar::{self, *};
use super::tree::{Expr, Stmt, Ty};
use crate::random::Rng;

/// The operations of [`Access::Atomic`].
const ATOMICS: [&str; 6] = ["add", "or", "and", "xor", "min", "max"];

/// Those that return the value before, on a work-item's own element.
const WITH_RESULT: [&str; 7] = ["add", "sub", "or", "and", "xor", "min", "max"];

/// Whether the elements of an array in LDS are sums of small integers.
pub(super) fn is_sum(array: usize) -> bool {
    matches!(LDS[array].0, "d" | "e")
}

/// A small integer as a float: sums of all terms of a program are exact.
pub(super) fn term(float: Scalar, integer: &str) -> String {
    format!("({})((i8)({integer}) >> 4)", float.name())
}

/// A random way in which a phase changes an array in LDS.
pub(super) fn access(rng: &mut Rng, array: usize) -> Access {
    match LDS[array].0 {
        "a" | "c" if !rng.chance(3) => Access::Atomic(rng.pick(&ATOMICS)),
        "d" | "e" => Access::Atomic(rng.pick(&["add", "min", "max"])),
        _ => Access::Own,
    }
}

impl Statements<'_> {
    pub(super) fn lds_store(&mut self, index: Expr) -> Stmt {
        let mut i = self.e.rng.below(LDS.len() as u64) as usize;
        let atomic = |i: &usize| matches!(self.e.lds[*i], Access::Atomic(_));
        if let (Focus::Atomics, Some(array)) = (self.focus, (0..LDS.len()).rfind(atomic)) {
            i = if self.e.rng.chance(2) { array } else { i };
        }
        let (name, ty) = LDS[i];
        let own = self.e.own.clone();
        match self.e.lds[i] {
            Access::Own => match (name, self.e.rng.below(3)) {
                ("q" | "x", 0) => {
                    let parts: &[Ty] = match name {
                        "q" => &[
                            Ty::new(U8, 8),
                            Ty::new(I16, 4),
                            Ty::new(U32, 2),
                            Ty::new(U16, 2),
                            Ty::new(U16, 1),
                        ],
                        _ => &[
                            Ty::new(U32, 2),
                            Ty::new(U32, 3),
                            Ty::new(U8, 16),
                            Ty::new(F32, 4),
                            Ty::new(U64, 2),
                        ],
                    };
                    let part = self.e.rng.pick(parts);
                    let value = self.e.any(part, 4, false);
                    Stmt::new(format!("*(LDS {part} *)&l->{name}[{own}] = $0;"), vec![value])
                }
                ("w" | "q" | "a" | "c", 1) => {
                    let operation = self.e.rng.pick(&WITH_RESULT);
                    let value = self.e.any(ty, 3, false);
                    let text = format!(
                        "s->{ty}_1 = __scoped_atomic_fetch_{operation}(&l->{name}[{own}], $0, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);"
                    );
                    Stmt::new(text, vec![value])
                }
                ("a", 0) => {
                    let f = self.e.rng.pick(&["INC", "DEC"]);
                    let value = self.e.any(ty, 3, false);
                    Stmt::new(
                        format!("{{ u32 v_ = $0; s->u32_0 = ATOMIC_{f}(&l->a[{own}], v_); }}"),
                        vec![value],
                    )
                }
                _ => {
                    let value = self.e.any(ty, 4, false);
                    Stmt::new(format!("l->{name}[{own}] = $0;"), vec![value])
                }
            },
            Access::Atomic(operation) => {
                // All work-items at the same element, or at a few.
                let place = match self.e.rng.below(3) {
                    0 => format!("&l->{name}[{}]", self.e.rng.below(16)),
                    _ => format!("&l->{name}[($0) & 15]"),
                };
                if name == "a" && operation == "add" && self.e.rng.chance(3) {
                    let f = self.e.rng.pick(&["APPEND", "CONSUME"]);
                    return Stmt::new(format!("{f}(&l->a[{}]);", self.e.rng.below(16)), Vec::new());
                }
                let (of, operand) = match is_sum(i) {
                    true => (I8.into(), term(ty.scalar, "$1")),
                    false => (ty, "$1".to_string()),
                };
                let value = self.e.any(of, 3, false);
                let text = format!(
                    "__scoped_atomic_fetch_{operation}({place}, {operand}, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);"
                );
                Stmt::new(text, vec![index, value])
            }
            _ => self.assign(),
        }
    }

    /// An atomic operation on a work-item's own bytes of the output: of small integers, floats, and operations
    /// that wrap at a limit or exchange values.
    pub(super) fn own_atomic(&mut self) -> Stmt {
        let f = self.e.rng.pick(&[F32, F64]);
        let scalar = self.e.rng.pick(&[U8, I8, U16, I16, U32, U64]);
        let place = |s: Scalar, rng: &mut Rng| {
            let bytes = s.bits() as u64 / 8;
            format!("(GLB {} *)(own + {})", s.name(), bytes * rng.below(OWN_BYTES as u64 / bytes))
        };
        match self.e.rng.below(4) {
            0 => {
                let (place, n) = (place(f, self.e.rng), f.name());
                let operation = self.e.rng.pick(&["add", "sub", "min", "max"]);
                let (first, second) = (self.e.any(I8.into(), 2, false), self.e.any(I8.into(), 2, false));
                let text = format!(
                    "{{ GLB {n} *a_ = {place}; *a_ = ({n})($0);                      s->{n}_0 = __scoped_atomic_fetch_{operation}(a_, ({n})($1), __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE); s->{n}_1 = *a_; }}"
                );
                Stmt::new(text, vec![first, second])
            }
            1 => {
                let place = place(U32, self.e.rng);
                let f = self.e.rng.pick(&["INC", "DEC"]);
                let value = self.e.any(U32.into(), 2, false);
                Stmt::new(format!("{{ u32 v_ = $0; s->u32_1 = ATOMIC_{f}({place}, v_); }}"), vec![value])
            }
            2 => {
                let (place, n) = (place(scalar, self.e.rng), scalar.name());
                let value = self.e.any(scalar.into(), 3, false);
                let text = format!(
                    "s->{n}_1 = __scoped_atomic_exchange_n({place}, $0, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);"
                );
                Stmt::new(text, vec![value])
            }
            _ => {
                let (place, n) = (place(scalar, self.e.rng), scalar.name());
                let value = self.e.any(scalar.into(), 3, false);
                let operation = self.e.rng.pick(&WITH_RESULT);
                let text = format!(
                    "s->{n}_0 = __scoped_atomic_fetch_{operation}({place}, $0, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);"
                );
                Stmt::new(text, vec![value])
            }
        }
    }

    /// Copies or fills bytes.
    pub(super) fn copy(&mut self, index: Expr) -> Stmt {
        let size = match self.e.rng.below(2) {
            0 => self.e.rng.pick(&["1", "3", "4", "7", "8", "12", "16", "31"]).to_string(),
            _ => "(($0) & 31)".to_string(),
        };
        let [to, from] = [(); 2].map(|()| self.e.rng.below(OWN_BYTES as u64 - 31));
        let text = match self.e.rng.below(6) {
            0 => format!("__builtin_memcpy(own + {to}, in + (($1) & 2047), {size});"),
            1 => format!("__builtin_memcpy(p->u.b, in + {from}, {size});"),
            2 => format!("__builtin_memcpy(own + {to}, p->u.b, {size});"),
            3 => format!("__builtin_memmove(own + {to}, own + {from}, {size});"),
            4 => format!("__builtin_memset(own + {to}, (i32)($1), {size});"),
            _ => format!("__builtin_memset(p->u.b, (i32)($1), {size});"),
        };
        let value = self.e.any(U32.into(), 2, false);
        Stmt::new(text, vec![index, value])
    }

    /// An atomic operation on global memory: on elements that are only for this operation, or, with a
    /// result, on a work-item's own element.
    pub(super) fn global_atomic(&mut self, index: Expr) -> Stmt {
        let scalar = self.e.rng.pick(&[U32, I32, U64, I64]);
        let value = self.e.any(scalar.into(), 3, false);
        let name = scalar.name();
        if self.e.rng.chance(3) {
            let operation = self.e.rng.pick(&WITH_RESULT);
            let slot = 8 * self.e.rng.below(OWN_BYTES as u64 / 8);
            let text = format!(
                "s->{name}_0 = __scoped_atomic_fetch_{operation}((GLB {name} *)(own + {slot}), $0, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);"
            );
            return Stmt::new(text, vec![value]);
        }
        let kind = self.e.rng.below(ATOMICS.len() as u64 + 1) as usize;
        // Four elements for each operation and type.
        let slot = 4 * (kind + 7 * (scalar as usize - I32 as usize));
        let place = format!("(GLB {name} *)(ga + 2 * ({slot} + (($0) & 3)))");
        let text = match ATOMICS.get(kind) {
            Some(operation) => {
                format!(
                    "__scoped_atomic_fetch_{operation}({place}, $1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);"
                )
            }
            None => format!(
                "{{ GLB {name} *a_ = {place}; {name} f_ = $1, old_ = __scoped_atomic_load_n(a_, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE), new_; do new_ = ({name})((u64)old_ * (2 * (u64)f_ + 1)); \
                 while (!__scoped_atomic_compare_exchange_n(a_, &old_, new_, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)); }}"
            ),
        };
        Stmt::new(text, vec![index, value])
    }
}
