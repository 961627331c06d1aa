//! Random loads, from buffers, constant tables, private arrays and LDS.

use super::expr::{Access, Expressions, LDS, Variable};
use super::tree::Scalar::*;
use super::tree::{Expr, Ty};

impl Expressions<'_> {
    /// The index or byte offset of an access, before it is reduced to the size of the array.
    pub(super) fn index(&mut self, size: u32, uniform: bool) -> Expr {
        // Coalesced, strided and uniform addresses.
        let fits = |v: &&Variable| v.ty == Ty::from(U32) && (v.uniform || !uniform) && !v.name.contains('>');
        let names: Vec<&Variable> = self.scope.iter().filter(fits).collect();
        if !names.is_empty() && self.rng.chance(2) {
            let latest = names.len() - 1;
            let index = if self.rng.chance(2) { latest } else { self.rng.below(names.len() as u64) as usize };
            let name = names[index].name.clone();
            let text = match self.rng.below(3) {
                0 => name,
                1 => format!("({name} + {})", self.rng.below(20)),
                _ => format!("({name} * {} + {}u)", self.rng.pick(&[2, 3, 4, 5, 8, 16]), self.rng.below(64)),
            };
            return Expr::new(U32, text, Vec::new());
        }
        let scalar = self.rng.pick(&[U32, U32, I32, U64, U8, U16]);
        self.any(scalar.into(), size.min(3), uniform)
    }

    /// A value from memory.
    pub fn load(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        let scalar = ty.scalar;
        if scalar.is_float() && ty.lanes == 1 {
            // Only finite tables and floats made of integers: signalling NaNs are undefined.
            if self.in_kernel && !uniform && self.rng.chance(3) {
                match scalar {
                    F32 if self.lds[4] == Access::Own => {
                        return Expr::new(ty, format!("l->f[{}]", self.own), vec![]);
                    }
                    F32 if self.lds[4] == Access::Read => {
                        let index = self.index(size, false);
                        return Expr::new(ty, "l->f[($0) & 255]", vec![index]);
                    }
                    F32 if self.lds[8] == Access::Read => {
                        let index = self.index(size, false);
                        return Expr::new(ty, "l->e[($0) & 255]", vec![index]);
                    }
                    F32 => {
                        let index = self.index(size, false);
                        return Expr::new(ty, "p->f[($0) & 7]", vec![index]);
                    }
                    F64 if self.lds[9] == Access::Read => {
                        let index = self.index(size, false);
                        return Expr::new(ty, "l->d[($0) & 255]", vec![index]);
                    }
                    _ => {}
                }
            }
            if self.rng.chance(4) && scalar != F16 {
                let index = self.index(size, uniform);
                return Expr::new(ty, format!("table_{}[($0) & 7]", scalar.name()), vec![index]);
            }
            let bits = self.load(scalar.unsigned().into(), size, uniform);
            return Expr::new(ty, format!("make_{}($0)", scalar.name()), vec![bits]);
        }
        if scalar.is_float() {
            let parts =
                (0..ty.lanes.min(4)).map(|_| self.load(scalar.into(), 0, uniform)).collect::<Vec<_>>();
            let list: Vec<String> = (0..ty.lanes).map(|i| format!("${}", i as usize % parts.len())).collect();
            return Expr::new(ty, format!("(({ty})({}))", list.join(", ")), parts);
        }
        if self.in_kernel && !uniform && self.rng.chance(2) {
            return self.load_private(ty, size);
        }
        if self.rng.chance(5) && ty.lanes == 1 && matches!(scalar, U8 | U32 | I16) {
            let index = self.index(size, uniform);
            return Expr::new(ty, format!("table_{}[($0) & 15]", scalar.name()), vec![index]);
        }
        if self.in_kernel && self.rng.chance(3) {
            return self.stream(ty, uniform);
        }
        let buffer = if self.in_kernel { self.rng.pick(&["in", "in", "prev"]) } else { "in" };
        let index = self.index(size, uniform);
        let bytes = ty.scalar.bits() / 8 * ty.lanes.next_power_of_two();
        let text = match self.rng.below(5) {
            0 => format!("LOAD(GLB, {ty}, {buffer} + (($0) & 2047))"),
            1 => format!("((GLB const {ty} *){buffer})[($0) & {}]", (2048 / bytes) - 1),
            2 => format!("((GLB const {ty} *)({buffer} + 2048))[(i64)((i32)($0) % {})]", 1024 / bytes),
            3 => {
                let (stride, offset) = (self.rng.pick(&[1, 2, 4, 3, 8, 12, 16]), self.rng.below(64));
                format!("LOAD(GLB, {ty}, {buffer} + (({stride} * (u32)($0) + {offset}) & 2047))")
            }
            _ => format!("LOAD(GLB, {ty}, {buffer} + {bytes} * (($0) & {}))", (2048 / bytes) - 1),
        };
        Expr::new(ty, text, vec![index])
    }

    /// An integer at an address without masks, as in loops over arrays: a scalar base and an offset that does
    /// not change in the loop.
    pub fn stream(&mut self, ty: Ty, uniform: bool) -> Expr {
        let bytes = ty.scalar.bits() / 8 * ty.lanes.next_power_of_two();
        let mut text = self.rng.below(900).to_string();
        // Loop counters are less than 27, and the kernels' work-items less than 256.
        let counters: Vec<&Variable> = self.scope.iter().filter(|v| v.name.starts_with('k')).collect();
        if let Some(counter) = counters.last().filter(|_| !self.rng.chance(5)) {
            text += &format!(" + {} * {}", counter.name, self.rng.pick(&[1, 1, 2, 4, bytes.min(32), 32]));
        }
        if !uniform && self.rng.chance(2) {
            text += &format!(" + lid * {}", self.rng.pick(&[1, bytes.min(8), bytes.min(8)]));
        }
        let buffer = self.rng.pick(&["in", "in", "prev"]);
        Expr::new(ty, format!("LOAD(GLB, {ty}, {buffer} + ({text}))"), Vec::new())
    }

    /// An integer from a private array, LDS, or a work-item's own bytes of the output.
    pub(super) fn load_private(&mut self, ty: Ty, size: u32) -> Expr {
        let index = self.index(size, false);
        let bytes = ty.scalar.bits() / 8 * ty.lanes.next_power_of_two();
        for (i, (name, element)) in LDS.into_iter().enumerate() {
            if element == ty && self.rng.chance(2) {
                match self.lds[i] {
                    Access::Own => return Expr::new(ty, format!("l->{name}[{}]", self.own), vec![]),
                    Access::Read => return Expr::new(ty, format!("l->{name}[($0) & 255]"), vec![index]),
                    _ => {}
                }
            }
        }
        // Aligned vectors.
        if self.lds[7] == Access::Read && (8..=16).contains(&bytes) && self.rng.chance(3) {
            return Expr::new(
                ty,
                format!("((LDS const {ty} *)l->x)[($0) & {}]", 4096 / bytes - 1),
                vec![index],
            );
        }
        if self.lds[1] == Access::Read && self.rng.chance(3) {
            return Expr::new(ty, format!("LOAD(LDS, {ty}, l->b + (($0) & 127))"), vec![index]);
        }
        if self.rng.chance(3) {
            return Expr::new(
                ty,
                format!("LOAD(GLB, {ty}, own + ((u32)($0) % {}))", 129 - bytes),
                vec![index],
            );
        }
        // Flat accesses: the address space is only known at run time.
        let flat = |place: &str| {
            format!(
                "({{ const u32 *p_ = ($0) & 1 ? (const u32 *)&p->w[($0) >> 1 & 15] : (const u32 *){place}; *p_; }})"
            )
        };
        if ty == U32.into() && size > 0 && self.rng.chance(4) {
            match self.lds[0] {
                Access::Own => return Expr::new(ty, flat(&format!("&l->w[{}]", self.own)), vec![index]),
                Access::Read => return Expr::new(ty, flat("&l->w[($0) >> 4 & 255]"), vec![index]),
                _ => return Expr::new(ty, flat("(in + 4 * (($0) & 255))"), vec![index]),
            }
        }
        let text = match (ty.scalar, ty.lanes) {
            (U32, 1) => self.rng.pick(&["p->w[($0) & 15]", "p->u.w[($0) & 7]", "p->v[($0) & 3].y"]),
            (U16, 1) => self.rng.pick(&["p->u.h[($0) & 15]", "p->t[($0) & 3].b[(($0) >> 2) & 1]"]),
            (U8, 1) => self.rng.pick(&["p->u.b[($0) & 31]", "p->t[($0) & 3].a"]),
            (U64, 1) => self.rng.pick(&["p->u.q[($0) & 3]", "p->t[($0) & 3].c"]),
            (U32, 4) => "p->v[($0) & 3]",
            _ => "",
        };
        if text.is_empty() || size == 0 && text.matches("$0").count() > 1 {
            let space = if bytes <= 32 {
                format!("LOAD(PRIV, {ty}, p->u.b + ((u32)($0) % {}))", 33 - bytes)
            } else {
                format!("LOAD(GLB, {ty}, own + ((u32)($0) % {}))", 129 - bytes)
            };
            return Expr::new(ty, space, vec![index]);
        }
        Expr::new(ty, text, vec![index])
    }
}
