//! Statements of a body in C.

use super::expr::{c_type, constant, fit, part};
use super::names::{destination, operand, role, space};
use isa_spec::pcode::ir::*;
use std::fmt::Write;

/// Writes the function of one body.
pub(super) struct Writer<'a> {
    pub sem: &'a Semantics,
    out: String,
    depth: usize,
    /// The number of temporary variables.
    temporaries: u32,
    /// The body depends on MODE.
    pub uses_mode: bool,
}

/// Returns the statements of a body, with the declarations that they need.
pub(super) fn body(sem: &Semantics) -> String {
    let mut writer = Writer { sem, out: String::new(), depth: 1, temporaries: 0, uses_mode: false };
    writer.stmts(&sem.body);
    let mut text = String::new();
    if writer.uses_mode {
        text.push_str("    const uint32_t mode = m->mode;\n");
    }
    for (id, local) in (0..).zip(&sem.locals) {
        let (ty, name) = (c_type(local.ty.width()), writer.local(id));
        let _ = match local.len {
            Some(count) => writeln!(text, "    {ty} {name}[{}] = {{0}};", count.max(1)),
            None => writeln!(text, "    {ty} {name} = 0;"),
        };
    }
    for id in 0..sem.locals.len() as u32 {
        let _ = writeln!(text, "    (void){};", writer.local(id));
    }
    text + &writer.out
}

impl Writer<'_> {
    /// The name of a variable: the number keeps it apart from others and from words of C.
    pub fn local(&self, id: LocalId) -> String {
        let name: String = self.sem.locals[id as usize]
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        format!("{}{name}_{id}", if name.starts_with(|c: char| c.is_ascii_digit()) { "v" } else { "" })
    }

    fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.out, "{:indent$}{}", "", text.as_ref(), indent = 4 * self.depth);
    }

    fn stmts(&mut self, list: &[Stmt]) {
        for stmt in list {
            self.stmt(stmt);
        }
    }

    fn block(&mut self, list: &[Stmt]) {
        self.depth += 1;
        self.stmts(list);
        self.depth -= 1;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { place, value, .. } => {
                let text = fit(self.expr(value), value.ty.width(), place.ty.width());
                self.assign(place, text);
            }
            Stmt::If { arms, otherwise, .. } => {
                for (at, (cond, body)) in arms.iter().enumerate() {
                    let cond = self.condition(cond);
                    self.line(format!("{}if {cond} {{", if at > 0 { "} else " } else { "" }));
                    self.block(body);
                }
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.block(otherwise);
                }
                self.line("}");
            }
            Stmt::For { var, from, to, body, .. } => {
                let (from, to) = (self.dword(from), self.dword(to));
                let (i, end) = (self.temporary(), self.temporary());
                let local = self.local(*var);
                self.line(format!(
                    "for (int64_t {i} = (int32_t){from}, {end} = (int32_t){to}; {i} <= {end}; {i}++) {{"
                ));
                self.depth += 1;
                self.line(format!("{local} = (uint32_t){i};"));
                self.depth -= 1;
                self.block(body);
                self.line("}");
            }
            Stmt::While { cond, body, .. } => {
                let cond = self.condition(cond);
                self.line(format!("while {cond} {{"));
                self.block(body);
                self.line("}");
            }
            Stmt::Return { .. } => self.line("return;"),
            Stmt::Call { builtin, args, .. } => {
                let call = self.control(*builtin, args);
                self.line(format!("(void){call};"));
                self.line("if (m->stop)");
                self.line("    return;");
            }
        }
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("t{}", self.temporaries)
    }

    /// Stores a value of the place's width.
    fn assign(&mut self, place: &Place, value: String) {
        let width = place.ty.width();
        match &place.kind {
            PlaceKind::Local(id) => {
                let own = self.sem.locals[*id as usize].ty.width();
                let (name, value) = (self.local(*id), fit(value, width, own));
                if name != value {
                    self.line(format!("{name} = {value};"));
                }
            }
            PlaceKind::Element(id, index) => {
                let local = &self.sem.locals[*id as usize];
                let (own, count) = (local.ty.width(), local.len.unwrap_or(1));
                let name = if own <= 64 { "isa_set_element64" } else { "isa_set_element" };
                let (index, value) = (self.expr(index), fit(value, width, own));
                let array = self.local(*id);
                self.line(format!("{name}({array}, {count}, {index}, {value});"));
            }
            PlaceKind::Operand(one) => {
                self.line(format!("isa_write(m, {}, {width}, {value});", destination(*one)));
            }
            PlaceKind::State(state) => self.set_state(*state, &fit(value, width, 64)),
            PlaceKind::Slice { base, lo } => {
                let of = base.ty.width();
                let (old, lo) = (self.old(base), self.expr(lo));
                let whole = format!("isa_insert({old}, {value}, {lo}, {width}, {of})");
                let whole = if of <= 64 { format!("(isa_u64){whole}") } else { whole };
                self.assign(base, whole);
            }
            PlaceKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.dword(lane), self.dword(reg));
                self.line(format!("m->set_vgpr(m, {lane}, {reg}, (uint32_t){value});"));
            }
            PlaceKind::Sgpr { reg } => {
                let reg = self.dword(reg);
                self.line(format!("m->set_sgpr(m, {reg}, (uint32_t){value});"));
            }
            PlaceKind::Mem { space: of, addr } => {
                let address = fit(self.expr(addr), addr.ty.width(), 64);
                let bytes = width.div_ceil(8);
                self.line(format!("m->store(m, {}, {address}, {bytes}, {value});", space(*of)));
            }
            PlaceKind::Concat(parts) => {
                let whole = self.temporary();
                self.line("{");
                self.depth += 1;
                self.line(format!("const {} {whole} = {value};", c_type(width)));
                let mut lo = 0;
                // The last part holds the lowest bits.
                for one in parts.iter().rev() {
                    let own = one.ty.width();
                    let bits = part(&whole, width, lo, own);
                    self.assign(one, bits);
                    lo += own;
                }
                self.depth -= 1;
                self.line("}");
            }
        }
    }

    fn set_state(&mut self, state: State, value: &str) {
        let low = "UINT64_C(0xffffffff)";
        let lane = self.sem.shape == Shape::Lane;
        let (text, bit) = match state {
            State::Exec if lane => (format!("m->exec_out = {value};"), "EXEC"),
            State::Exec => (format!("m->exec = {value};"), "EXEC"),
            State::ExecLo => (format!("m->exec = (m->exec & ~{low}) | {value};"), "EXEC"),
            State::ExecHi => (format!("m->exec = (m->exec & {low}) | {value} << 32;"), "EXEC"),
            State::Vcc => (format!("m->vcc = {value};"), "VCC"),
            State::VccLo => (format!("m->vcc = (m->vcc & ~{low}) | {value};"), "VCC"),
            State::VccHi => (format!("m->vcc = (m->vcc & {low}) | {value} << 32;"), "VCC"),
            State::Scc => (format!("m->scc = (uint32_t){value};"), "SCC"),
            State::M0 => (format!("m->m0 = (uint32_t){value};"), "M0"),
            State::Pc => (format!("m->pc = {value};"), "PC"),
            State::Mode => (format!("m->mode = (uint32_t){value};"), "MODE"),
            // The pseudocode has no other state that can be written.
            _ => return self.line("m->stop = true;"),
        };
        self.line(text);
        self.line(format!("m->states |= ISA_WROTE_{bit};"));
    }

    /// The current value of a whole place.
    fn old(&mut self, place: &Place) -> String {
        let width = place.ty.width();
        match &place.kind {
            PlaceKind::Local(id) => {
                let own = self.sem.locals[*id as usize].ty.width();
                fit(self.local(*id), own, width)
            }
            PlaceKind::Element(id, index) => {
                let own = self.sem.locals[*id as usize].ty.width();
                let element = self.element(*id, index);
                fit(element, own, width)
            }
            PlaceKind::Operand(Role::Vcc) => operand(destination(Role::Vcc), width),
            PlaceKind::Operand(one) => operand(role(*one), width),
            PlaceKind::State(State::Exec) if self.sem.shape == Shape::Lane => {
                fit("m->exec_out".to_string(), 64, width)
            }
            PlaceKind::State(state) => self.state(*state, width),
            PlaceKind::Slice { base, lo } => {
                let (of, text) = (base.ty.width(), self.old(base));
                self.slice(text, of, lo, width)
            }
            PlaceKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.dword(lane), self.dword(reg));
                fit(format!("(isa_u64)m->vgpr(m, {lane}, {reg})"), 32, width)
            }
            PlaceKind::Sgpr { reg } => {
                let reg = self.dword(reg);
                fit(format!("(isa_u64)m->sgpr(m, {reg})"), 32, width)
            }
            PlaceKind::Mem { space, addr } => self.load(*space, addr, width),
            PlaceKind::Concat(parts) => {
                let mut lo = 0;
                let mut texts = Vec::new();
                for part in parts.iter().rev() {
                    let text = fit(self.old(part), part.ty.width(), width);
                    texts.push(if lo == 0 { text } else { format!("{text} << {lo}") });
                    lo += part.ty.width();
                }
                texts.reverse();
                if texts.is_empty() { constant(0, width) } else { format!("({})", texts.join(" | ")) }
            }
        }
    }
}
