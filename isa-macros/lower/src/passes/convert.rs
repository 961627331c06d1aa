//! Hoists conversions out of vector statements if hosts have vector instructions that compilers do not
//! select: each distinct argument is converted for the whole vector, before the iterations.

use crate::ir::*;
use crate::visit::parts_mut;

/// Hoists the conversions of a body; runs after [`super::vector`].
pub fn run(once: &mut Once) {
    list(&mut once.body);
}

fn list(body: &mut [Stmt]) {
    for stmt in body {
        if let Stmt::Vector(vector) = stmt {
            let Vector { reads, writes, .. } = &mut **vector;
            for write in writes {
                write.when.iter_mut().for_each(|when| hoist(when, reads));
                hoist(&mut write.value, reads);
            }
        }
        crate::visit::stmt_lists_mut(stmt, &mut |inner| list(inner));
    }
}

fn hoist(value: &mut Value, reads: &mut Vec<VectorRead>) {
    parts_mut(value, &mut |part| hoist(part, reads));
    let ValueKind::Conversion(conversion @ (Conversion::F16ToF32 | Conversion::F32ToF16), argument) =
        &mut value.kind
    else {
        return;
    };
    let argument = std::mem::replace(&mut **argument, Value::new(ValueKind::Const(0), HostWidth::W32));
    let read = VectorRead::Converted(*conversion, argument);
    value.kind = ValueKind::VectorRead { read: super::vector::add_read(reads, read), at: VectorAt::Own };
}
