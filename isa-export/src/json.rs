//! The instructions of all architectures in JSON: encodings, operands, and the typed bodies. `docs/isa-export.md`
//! describes the form, and `docs/isa-export.schema.json` is its schema.

use crate::{Export, role_name, snake};
use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::*;
use isa_spec::tables::{ArchTable, Entry, Instruction};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The version of the form, which changes when a reader would notice.
pub const SCHEMA: &str = "wavesim-isa-1";

impl Export<'_> {
    /// Writes the document in JSON: a line for each instruction and operation, in the order of the tables.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{{\"schema\":\"{SCHEMA}\",\"architectures\":[")?;
        for (number, table) in self.tables.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            writeln!(
                out,
                "{comma}{{\"name\":{},\"title\":{},\"instructions\":[",
                json!(table.name),
                json!(table.full_name)
            )?;
            let exported =
                table.instructions.iter().enumerate().filter(|(_, one)| (self.is_exported)(one.name));
            for (count, (at, instruction)) in exported.enumerate() {
                let comma = if count > 0 { "," } else { "" };
                writeln!(out, "{comma}{}", self.instruction(table, number, at, instruction))?;
            }
            writeln!(out, "]}}")?;
        }
        writeln!(out, "],\"operations\":[")?;
        for (at, operation) in self.operations.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            writeln!(out, "{comma}{}", self.body(operation))?;
        }
        writeln!(out, "]}}")
    }

    fn instruction(
        &self,
        table: &ArchTable,
        number: usize,
        index: usize,
        instruction: &Instruction,
    ) -> Value {
        let entries = &table.entries[instruction.entries.0 as usize..][..instruction.entries.1 as usize];
        let encodings: Vec<Value> = entries.iter().map(|one| entry(table, one)).collect();
        let operation = (self.operation)(number, index);
        let mut value = json!({
            "name": instruction.name, "group": instruction.group(), "operation": operation, "encodings": encodings,
        });
        if operation.is_none() {
            value["reason"] = json!((self.reason)(instruction.name));
        }
        value
    }

    fn body(&self, operation: &Operation) -> Value {
        let sem = &operation.sem;
        let (file, line) = (self.place)(operation);
        let roles =
            |list: &std::collections::BTreeSet<Role>| list.iter().map(|r| role_name(*r)).collect::<Vec<_>>();
        let states =
            |list: &std::collections::BTreeSet<State>| list.iter().map(|s| state(*s)).collect::<Vec<_>>();
        let uses = &sem.uses;
        json!({
            "name": operation.name,
            "shape": match sem.shape { Shape::Scalar => "scalar", Shape::Lane => "lane", Shape::Wave => "wave" },
            "file": file, "line": line, "text": sem.text,
            "reads": roles(&uses.reads), "writes": roles(&uses.writes), "indexed": roles(&uses.indexed),
            "state_reads": states(&uses.state_reads), "state_writes": states(&uses.state_writes),
            "fields": uses.fields, "memory_read": uses.memory_read, "memory_write": uses.memory_write,
            "float": uses.float.iter().map(Ty::to_string).collect::<Vec<_>>(),
            "exactness": isa_exactness::Exactness::of(sem).json(),
            "locals": locals(sem), "body": stmts(&sem.body),
        })
    }
}

/// The locals and statements of a body, in the form of the document.
pub fn body(sem: &Semantics) -> Value {
    json!({ "locals": locals(sem), "body": stmts(&sem.body) })
}

fn locals(sem: &Semantics) -> Vec<Value> {
    let local = |local: &Local| match local.len {
        Some(len) => json!([local.name, local.ty.to_string(), len]),
        None => json!([local.name, local.ty.to_string()]),
    };
    sem.locals.iter().map(local).collect()
}

fn entry(table: &ArchTable, entry: &Entry) -> Value {
    let encoding = &table.encodings[entry.enc as usize];
    let operands: Vec<Value> = table.signatures[entry.sig as usize]
        .iter()
        .map(|operand| {
            json!({
                "role": role_name(operand.role),
                "field": operand.field.map(|field| encoding.fields[field as usize].name),
                "type": table.operand_types[operand.ty as usize].name,
                "format": table.formats[operand.format as usize].name,
                "bits": operand.size_bits, "input": operand.input, "output": operand.output,
                "implicit": operand.implicit,
            })
        })
        .collect();
    json!({
        "encoding": encoding.name, "bits": encoding.bits, "condition": encoding.conditions[entry.cond as usize].name,
        "opcode": entry.opcode, "operands": operands,
    })
}

fn state(state: State) -> String {
    snake(&format!("{state:?}"))
}

fn space(space: Space) -> String {
    snake(&format!("{space:?}"))
}

fn stmts(list: &[Stmt]) -> Value {
    list.iter().map(stmt).collect()
}

fn stmt(stmt: &Stmt) -> Value {
    match stmt {
        Stmt::Assign { place: to, value, .. } => json!(["assign", place(to), expr(value)]),
        Stmt::If { arms, otherwise, .. } => {
            let arms: Vec<Value> = arms.iter().map(|(cond, body)| json!([expr(cond), stmts(body)])).collect();
            json!(["if", arms, stmts(otherwise)])
        }
        Stmt::For { var, from, to, body, .. } => json!(["for", var, expr(from), expr(to), stmts(body)]),
        Stmt::While { cond, body, .. } => json!(["while", expr(cond), stmts(body)]),
        Stmt::Return { .. } => json!(["return"]),
        Stmt::Call { builtin, args, .. } => json!(["call", builtin.def().name, exprs(args)]),
    }
}

fn exprs(list: &[Expr]) -> Value {
    list.iter().map(expr).collect()
}

fn place(place_: &Place) -> Value {
    let t = place_.ty.to_string();
    match &place_.kind {
        PlaceKind::Local(id) => json!(["local", t, id]),
        PlaceKind::Element(id, index) => json!(["element", t, id, expr(index)]),
        PlaceKind::Operand(one) => json!(["operand", t, role_name(*one)]),
        PlaceKind::State(one) => json!(["state", t, state(*one)]),
        PlaceKind::Slice { base, lo } => json!(["slice", t, place(base), expr(lo)]),
        PlaceKind::Vgpr { lane, reg } => json!(["vgpr", t, expr(lane), expr(reg)]),
        PlaceKind::Sgpr { reg } => json!(["sgpr", t, expr(reg)]),
        PlaceKind::Mem { space: one, addr } => json!(["mem", t, space(*one), expr(addr)]),
        PlaceKind::Concat(parts) => json!(["concat", t, parts.iter().map(place).collect::<Value>()]),
    }
}

fn expr(e: &Expr) -> Value {
    let t = e.ty.to_string();
    match &e.kind {
        ExprKind::Const(bits) => json!(["const", t, format!("{bits:#x}")]),
        ExprKind::Local(id) => json!(["local", t, id]),
        ExprKind::Element(id, index) => json!(["element", t, id, expr(index)]),
        ExprKind::Operand(one) => json!(["operand", t, role_name(*one)]),
        ExprKind::OperandIndex(one) => json!(["operand_index", t, role_name(*one)]),
        ExprKind::OperandLane { role: one, lane, index } => {
            json!(["operand_lane", t, role_name(*one), expr(lane), expr(index)])
        }
        ExprKind::Field(name) => json!(["field", t, name]),
        ExprKind::State(one) => json!(["state", t, state(*one)]),
        ExprKind::Slice { base, lo } => json!(["slice", t, expr(base), expr(lo)]),
        ExprKind::Unary(op, a) => json!([snake(&format!("{op:?}")), t, expr(a)]),
        ExprKind::Binary(op, a, b) => json!([snake(&format!("{op:?}")), t, expr(a), expr(b)]),
        ExprKind::Select(c, a, b) => json!(["select", t, expr(c), expr(a), expr(b)]),
        ExprKind::Convert(a) => json!(["convert", t, expr(a)]),
        ExprKind::Bits(a) => json!(["bits", t, expr(a)]),
        ExprKind::Call(builtin, args) => json!(["call", t, builtin.def().name, exprs(args)]),
        ExprKind::Vgpr { lane, reg } => json!(["vgpr", t, expr(lane), expr(reg)]),
        ExprKind::Sgpr { reg } => json!(["sgpr", t, expr(reg)]),
        ExprKind::Mem { space: one, addr } => json!(["mem", t, space(*one), expr(addr)]),
        ExprKind::Concat(parts) => json!(["concat", t, exprs(parts)]),
    }
}
