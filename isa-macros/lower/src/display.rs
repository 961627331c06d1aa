//! Prints the lane-loop representation, for `wavesim isa ir NAME` and golden tests. Values are written as in
//! Rust, with the host width if it does not follow from the operands.

use crate::ir::*;
use isa_spec::pcode::ir::Local;
use isa_spec::tables::Role;
use std::fmt::{Display, Formatter, Result};

impl Display for HostWidth {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "u{}", self.bits())
    }
}

impl Display for Int {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}{}", if self.signed { "i" } else { "u" }, self.width)
    }
}

impl Display for Mask {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Mask::D0 => "d0",
            Mask::Vcc => "vcc",
            Mask::Exec => "exec",
        })
    }
}

impl Display for Slot {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Slot::Source(at) => write!(f, "src[{at}]"),
            Slot::Fifth => f.write_str("src[4]"),
            Slot::ScalarResult => f.write_str("dst.scalar"),
            Slot::VectorResult => f.write_str("dst.lanes"),
        }
    }
}

fn role(role: Role) -> String {
    format!("{role:?}").to_lowercase()
}

impl Display for Var {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Var::Local(id) => write!(f, "t{id}"),
            Var::Operand(of) => f.write_str(&role(*of)),
            Var::Whole => f.write_str("whole"),
        }
    }
}

fn list<T: Display>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let host_width = self.host_width;
        match &self.kind {
            ValueKind::Const(v) if *v < 10 => write!(f, "{v}"),
            ValueKind::Const(v) => write!(f, "0x{v:x}"),
            ValueKind::Var(var) => write!(f, "{var}"),
            ValueKind::Element(id, at) => write!(f, "t{id}[{at}]"),
            ValueKind::LaneElement(id, at) => write!(f, "t{id}.lane[{at}]"),
            ValueKind::Field(name) => write!(f, "field.{}", name.to_lowercase()),
            ValueKind::SourceBit { field, source } => write!(f, "field.{}[{source}]", field.to_lowercase()),
            ValueKind::OperandNumber(slot) => write!(f, "number({slot})"),
            ValueKind::State(state) => write!(f, "wave.{}", format!("{state:?}").to_lowercase()),
            ValueKind::LaneBit(mask) => write!(f, "{mask}[lane]"),
            ValueKind::MaskOperand(mask) => write!(f, "{mask}.mask"),
            ValueKind::Scalar { slot, dwords, how } => match how {
                Scalar::Any => write!(f, "scalar({slot}, {dwords})"),
                Scalar::Direct => write!(f, "scalar.direct({slot}, {dwords})"),
                Scalar::Modified(source) => write!(f, "scalar.modified({slot}, {dwords}, {source})"),
            },
            ValueKind::StagedLane { role: of, lane } => write!(f, "{}.lane[{lane}]", role(*of)),
            ValueKind::StagedDword { role: of, index } => write!(f, "{}.dword[{index}]", role(*of)),
            ValueKind::OperandLane { slot, lane, index } => write!(f, "{slot}.lane[{lane}].dword[{index}]"),
            ValueKind::Vgpr { lane, reg } => write!(f, "vgpr[{reg}].lane[{lane}]"),
            ValueKind::Sgpr { reg } => write!(f, "sgpr[{reg}]"),
            ValueKind::Load { space, addr, bytes, retry } => {
                let kind = if *retry { "load.retry" } else { "load" };
                write!(f, "{kind} {space:?}[{addr}], {bytes} bytes")
            }
            ValueKind::Loaded { access, .. } => write!(f, "loaded{access}[lane]"),
            ValueKind::VectorRead { read, at: VectorAt::Own } => write!(f, "x{read}[i]"),
            ValueKind::VectorRead { read, at: VectorAt::Same } => write!(f, "x{read}"),
            ValueKind::VectorRead { read, at: VectorAt::Lane(lane) } => write!(f, "x{read}.lane[{lane}]"),
            ValueKind::SimdResult { call } => write!(f, "simd{call}[lane]"),
            ValueKind::WordAddress(addr) => write!(f, "word_address({addr})"),
            ValueKind::Resize(value) => write!(f, "{host_width}({value})"),
            ValueKind::SignExtend { value, width } => write!(f, "{host_width}.sign_extend{width}({value})"),
            ValueKind::Op1(op, x) => match op {
                Op1::Not => write!(f, "!{x}"),
                Op1::Neg => write!(f, "-{x}"),
                Op1::IsZero => write!(f, "({x} == 0)"),
                Op1::CountOnes => write!(f, "count_ones({x})"),
                Op1::LeadingZeros { width } => write!(f, "leading_zeros{width}({x})"),
                Op1::TrailingZeros { width } => write!(f, "trailing_zeros{width}({x})"),
                Op1::ReverseBits { width } => write!(f, "reverse_bits{width}({x})"),
            },
            ValueKind::Op2(op, a, b) => {
                let op = match op {
                    Op2::Add => "+",
                    Op2::Sub => "-",
                    Op2::Mul => "*",
                    Op2::And => "&",
                    Op2::Or => "|",
                    Op2::Xor => "^",
                };
                write!(f, "({a} {op} {b})")
            }
            ValueKind::Div { int, remainder, a, b } => {
                write!(f, "{}.{int}({a}, {b})", if *remainder { "rem" } else { "div" })
            }
            ValueKind::ShlConst(x, n) => write!(f, "({x} << {n})"),
            ValueKind::ShrConst(x, n) => write!(f, "({x} >> {n})"),
            ValueKind::Shl(x, n) => write!(f, "shl({x}, {n})"),
            ValueKind::Shr(x, n) => write!(f, "shr({x}, {n})"),
            ValueKind::Sar { value, count, width } => write!(f, "sar{width}({value}, {count})"),
            ValueKind::Compare { op, int, a, b } => {
                let op = match op {
                    Compare::Eq => "==",
                    Compare::Ne => "!=",
                    Compare::Lt => "<",
                    Compare::Le => "<=",
                    Compare::Gt => ">",
                    Compare::Ge => ">=",
                };
                write!(f, "({a} {op}.{int} {b})")
            }
            ValueKind::LogicalAnd(a, b) => write!(f, "({a} && {b})"),
            ValueKind::LogicalOr(a, b) => write!(f, "({a} || {b})"),
            ValueKind::Select(c, a, b) => write!(f, "({c} ? {a} : {b})"),
            ValueKind::Extract { value, lo } => write!(f, "{host_width}.extract({value}, {lo})"),
            ValueKind::Insert { old, value, lo, width } => write!(f, "insert{width}({old}, {value}, {lo})"),
            ValueKind::Concat(parts) => {
                let parts: Vec<String> = parts.iter().map(|(part, lo)| format!("{part} << {lo}")).collect();
                write!(f, "{host_width}.concat({})", parts.join(", "))
            }
            ValueKind::Saturate { value, from, to } => write!(f, "saturate.{from}.{to}({value})"),
            ValueKind::Float { op, ty, args } => {
                write!(
                    f,
                    "{}.{}({})",
                    format!("{op:?}").to_lowercase(),
                    format!("{ty:?}").to_lowercase(),
                    list(args)
                )
            }
            ValueKind::FloatBits { op, ty, value } => {
                write!(
                    f,
                    "{}.{}({value})",
                    format!("{op:?}").to_lowercase(),
                    format!("{ty:?}").to_lowercase()
                )
            }
            ValueKind::Conversion(conversion, x) => {
                write!(f, "{}({x})", format!("{conversion:?}").to_lowercase())
            }
            ValueKind::Convert { value, from, to } => write!(f, "convert.{from:?}.{to:?}({value})"),
            ValueKind::Pow { base, power, .. } => write!(f, "pow({base}, {power})"),
            ValueKind::Simd { builtin, args, .. } | ValueKind::Pure { builtin, args, .. } => {
                write!(f, "{}({})", builtin.def().name, list(args))
            }
            ValueKind::Control { builtin, args } => write!(f, "{}({})", builtin.def().name, list(args)),
        }
    }
}

fn locals<'a>(ids: impl IntoIterator<Item = &'a u32>) -> String {
    ids.into_iter().map(|id| format!("t{id}")).collect::<Vec<_>>().join(" ")
}

/// Writer of indented lines.
struct Lines<'a, 'b> {
    f: &'a mut Formatter<'b>,
    depth: usize,
}

impl Lines<'_, '_> {
    fn line(&mut self, text: impl Display) -> Result {
        writeln!(self.f, "{:1$}{text}", "", 2 * self.depth)
    }

    fn inner(&mut self, write: impl FnOnce(&mut Self) -> Result) -> Result {
        self.depth += 1;
        let result = write(self);
        self.depth -= 1;
        result
    }

    fn stmts(&mut self, list: &[Stmt]) -> Result {
        self.inner(|l| list.iter().try_for_each(|stmt| l.stmt(stmt)))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result {
        match stmt {
            Stmt::Set(var, value) => self.line(format_args!("{var} = {value}")),
            Stmt::SetLow { var, width, value, .. } => self.line(format_args!("{var}[{width} low] = {value}")),
            Stmt::SetElement { id, index, value } => self.line(format_args!("t{id}[{index}] = {value}")),
            Stmt::SetLaneElement { id, index, value } => {
                self.line(format_args!("t{id}.lane[{index}] = {value}"))
            }
            Stmt::SetBit(mask, value) => self.line(format_args!("{mask}[lane] = {value}")),
            Stmt::SetState(state, value) => {
                self.line(format_args!("wave.{} = {value}", format!("{state:?}").to_lowercase()))
            }
            Stmt::SetVgpr { lane, reg, value } => {
                self.line(format_args!("vgpr[{reg}].lane[{lane}] = {value}"))
            }
            Stmt::SetSgpr { reg, value } => self.line(format_args!("sgpr[{reg}] = {value}")),
            Stmt::SetScalar { dwords, direct, value } => {
                let how = if *direct { ".direct" } else { "" };
                self.line(format_args!("scalar{how}(dst, {dwords}) = {value}"))
            }
            Stmt::SetMaskOperand(value) => self.line(format_args!("vcc.mask = {value}")),
            Stmt::Parts { value, parts } => {
                self.line(format_args!("parts of {value}"))?;
                self.stmts(parts)
            }
            Stmt::Store { space, addr, bytes, value } => {
                self.line(format_args!("store {space:?}[{addr}], {bytes} bytes = {value}"))
            }
            Stmt::Exchange { space, addr, bytes, value } => {
                self.line(format_args!("exchange {space:?}[{addr}], {bytes} bytes = {value}"))
            }
            Stmt::SetStored { address, value, .. } => {
                if let Some((_, addr)) = address {
                    self.line(format_args!("addresses[lane] = {addr}"))?;
                }
                self.line(format_args!("stored[lane] = {value}"))
            }
            Stmt::SetAddress { addr, .. } => self.line(format_args!("addresses[lane] = {addr}")),
            Stmt::If { arms, otherwise } => {
                for (at, (cond, body)) in arms.iter().enumerate() {
                    self.line(format_args!("{} {cond}", if at == 0 { "if" } else { "else if" }))?;
                    self.stmts(body)?;
                }
                if !otherwise.is_empty() {
                    self.line("else")?;
                    self.stmts(otherwise)?;
                }
                Ok(())
            }
            Stmt::For { var, from, to, body } => {
                self.line(format_args!("for t{var} in {from}..={to}"))?;
                self.stmts(body)
            }
            Stmt::While { cond, body } => {
                self.line(format_args!("while {cond}"))?;
                self.stmts(body)
            }
            Stmt::Vector(vector) => self.vector(vector),
            Stmt::Product(product) => {
                let Product { element, depth, rows, columns, a, b, sparse_rows, d } = &**product;
                let part = |of: &ProductPart| {
                    format!("t{}[{} + {} k + {} row..]", of.id, of.start, of.depth, of.row)
                };
                let how = match element {
                    ElementType::F32 => "",
                    ElementType::F32Nearest => ", nearest",
                    ElementType::Integer => ", integers",
                };
                let (a, mut b, d) = (part(a), part(b), part(d));
                if let Some(SparseRows { numbers, stride }) = sparse_rows {
                    b = format!("{b} at {stride} * {}", part(numbers));
                }
                self.line(format_args!(
                    "product of {rows} x {depth} and {depth} x {columns}{how}: {d} += {a} * {b}"
                ))
            }
            Stmt::MoveLanes(moves) => {
                let MoveLanes { direction, lanes, source, to } = &**moves;
                let source = match source {
                    MoveSource::Operand(slot) => format!("{slot}"),
                    MoveSource::Vgpr(register) => format!("vgpr[{register}]"),
                };
                match direction {
                    MoveDirection::Pull { fetch, bound } => self.line(format_args!(
                        "vgpr[{to}] = {source} pulled from lanes, fetch {fetch}, bound {bound}"
                    ))?,
                    MoveDirection::Push => {
                        self.line(format_args!("vgpr[{to}] = {source} pushed to lanes"))?
                    }
                }
                self.inner(|l| l.vector(lanes))
            }
            Stmt::Leave => self.line("leave"),
            Stmt::Control { builtin, args } => {
                self.line(format_args!("{}({})", builtin.def().name, list(args)))
            }
        }
    }

    fn vector(&mut self, vector: &Vector) -> Result {
        let place = |place: &VectorPlace| match place {
            VectorPlace::Elements { id, start } => format!("t{id}[{start}..]"),
            VectorPlace::Vgpr { lane, reg } => format!("vgpr[{reg}].lane[{lane}..]"),
        };
        let of = if vector.lanes { " of each half" } else { "" };
        self.line(format_args!("vector t{} in {} from {}{of}", vector.var, vector.count, vector.from))?;
        self.inner(|l| {
            for (at, read) in vector.reads.iter().enumerate() {
                match read {
                    VectorRead::Place(of) => l.line(format_args!("x{at} = {}", place(of)))?,
                    VectorRead::Lanes { slot, lane, index } => {
                        l.line(format_args!("x{at} = {slot:?}[{index}].lane[{lane}..]"))?
                    }
                    VectorRead::Wave { slot, index } => {
                        l.line(format_args!("x{at} = {slot:?}[{index}], all lanes"))?
                    }
                    VectorRead::WaveVgpr { reg } => l.line(format_args!("x{at} = vgpr[{reg}], all lanes"))?,
                    VectorRead::Same(value) => l.line(format_args!("x{at} = {value}"))?,
                    VectorRead::Active => l.line(format_args!("x{at} = active lanes"))?,
                    VectorRead::Converted(conversion, value) => l.line(format_args!(
                        "x{at}[i] = {}({value})",
                        format!("{conversion:?}").to_lowercase()
                    ))?,
                }
            }
            vector.writes.iter().try_for_each(|write| {
                let when = write.when.as_ref().map_or(String::new(), |when| format!(" where {when}"));
                l.line(format_args!("{} = {}{when}", place(&write.to), write.value))
            })
        })
    }

    fn lane_loop(&mut self, head: &str, lanes: &LaneLoop) -> Result {
        let flags =
            [(lanes.active_only, " active only"), (lanes.leaves, " leaves"), (lanes.retries, " retries")];
        let mut flags: String = flags.iter().filter_map(|(set, name)| set.then_some(*name)).collect();
        let Outer { lanes: outer, rows, .. } = &lanes.outer;
        if !outer.is_empty() || !rows.is_empty() {
            flags += &format!(" of {}", locals(outer.iter().chain(rows)));
        }
        self.line(format_args!("{head}{flags}"))?;
        self.inner(|l| {
            for read in &lanes.reads {
                l.line(format_args!("{} = lanes.{}, {} bits", role(read.role), role(read.role), read.width))?;
            }
            if let Some(result) = lanes.result {
                let start = match result.start {
                    Start::Zero => "0",
                    Start::Old => "old",
                    Start::OldHalf => "old half",
                };
                l.line(format_args!("d0 = {start}, {} bits", result.width))?;
            }
            lanes.body.iter().try_for_each(|stmt| l.stmt(stmt))
        })
    }

    fn steps(&mut self, steps: &[Step]) -> Result {
        self.inner(|l| steps.iter().try_for_each(|step| l.step(step)))
    }

    fn step(&mut self, step: &Step) -> Result {
        match step {
            Step::Stage { role: of, slot, dwords, direct } => {
                let how = if *direct { "as it is" } else { "broadcast" };
                self.line(format_args!("stage {} = src[{slot}], {dwords} dwords, {how}", role(*of)))
            }
            Step::StageOld => self.line("stage old = dst"),
            Step::Modify { sources } => {
                let sources: Vec<String> =
                    sources.iter().map(|(at, of)| format!("{} ({at})", role(*of))).collect();
                self.line(format_args!("modify exec {}", sources.join(", ")).to_string().trim_end())
            }
            Step::ReadMask => self.line("vcc = mask src[3]"),
            Step::Simd { builtin, calls, lanes, .. } => {
                self.lane_loop("for lane in 32, together", lanes)?;
                self.inner(|l| {
                    calls.iter().enumerate().try_for_each(|(at, args)| {
                        l.line(format_args!("simd{at} = {}({})", builtin.def().name, list(args)))
                    })
                })
            }
            Step::StoreRoom { dwords, addresses, .. } => {
                let addresses = if *addresses { " and addresses" } else { "" };
                self.line(format_args!("room for {dwords} stored dwords{addresses}"))
            }
            Step::Memory(access) => self.memory(access),
            Step::Loop(lanes) => self.lane_loop("for lane in 32", lanes),
            Step::Declare { same, lanes, rows } => {
                let kinds = [("same", same), ("of each lane", lanes), ("rows", rows)];
                kinds
                    .into_iter()
                    .filter(|(_, ids)| !ids.is_empty())
                    .try_for_each(|(kind, ids)| self.line(format_args!("declare {kind}: {}", locals(ids))))
            }
            Step::Once { body, .. } => {
                self.line("once")?;
                self.stmts(body)
            }
            Step::If { arms, otherwise } => {
                for (at, (cond, steps)) in arms.iter().enumerate() {
                    self.line(format_args!("{} {cond}", if at == 0 { "if" } else { "else if" }))?;
                    self.steps(steps)?;
                }
                if otherwise.is_empty() {
                    return Ok(());
                }
                self.line("else")?;
                self.steps(otherwise)
            }
            Step::For { var, from, to, body } => {
                self.line(format_args!("for t{var} in {from}..={to}"))?;
                self.steps(body)
            }
            Step::Masked { mask, steps } => {
                self.line(format_args!("where t{mask}"))?;
                self.steps(steps)
            }
            Step::Gather { mask, keep } => {
                self.line(format_args!("gather {mask}{}", if *keep { ", keeping inactive bits" } else { "" }))
            }
            Step::Write { dwords, how } => self.line(match how {
                WriteBack::General { output } => {
                    format!("write {dwords} dwords, output modifiers {output:?}")
                }
                WriteBack::Half { output } => format!("write half, output modifiers {output:?}"),
                WriteBack::Fast { flushing: false, .. } => format!("write {dwords} dwords"),
                WriteBack::Fast { direct: false, .. } => format!("write {dwords} dwords, flushed"),
                WriteBack::Fast { direct: true, .. } => format!("write {dwords} dwords, flushing"),
            }),
        }
    }

    fn memory(&mut self, access: &Memory) -> Result {
        let head = match access.store {
            true => format!("store {:?}, {} bytes", access.space, access.bytes),
            false => format!("loaded{} = load {:?}, {} bytes", access.number, access.space, access.bytes),
        };
        match &access.addresses {
            Addresses::Set => self.line(format_args!("{head}, at addresses")),
            Addresses::Computed(lanes) => {
                self.line(format_args!("{head}, at addresses of"))?;
                self.inner(|l| l.lane_loop("for lane in 32", lanes))
            }
            Addresses::Sum(sum) => {
                self.line(format_args!("{head}, at {}", sum_text(&sum.base, sum.offsets, sum.scale)))?;
                self.inner(|l| {
                    l.line(format_args!("saddr = {}", sum.saddr))?;
                    let Some((unless, lanes)) = &sum.unless else { return Ok(()) };
                    l.line(format_args!("unless {unless}: at addresses of"))?;
                    l.inner(|l| {
                        sum.stage.iter().try_for_each(|step| l.step(step))?;
                        l.lane_loop("for lane in 32", lanes)
                    })
                })
            }
        }
    }

    fn lanes(&mut self, name: &str, lanes: &Lanes) -> Result {
        let halves = match lanes.halves {
            Halves::One => "the half at hand",
            Halves::Each => "each half of the wave",
            Halves::Given => "the half given",
        };
        self.line(format_args!("{name}: for {halves}"))?;
        self.inner(|l| {
            if lanes.broadcast {
                l.line("broadcast scalars")?;
            }
            lanes.steps.iter().try_for_each(|step| l.step(step))?;
            lanes.masks.iter().try_for_each(|mask| l.line(format_args!("after all halves: write {mask}")))
        })
    }

    fn once(&mut self, name: &str, once: &Once) -> Result {
        self.line(format_args!("{name}: once a wave"))?;
        self.inner(|l| {
            for (of, value) in &once.operands {
                l.line(format_args!("{} = {value}", role(*of)))?;
            }
            once.body.iter().try_for_each(|stmt| l.stmt(stmt))?;
            if let Some(body) = &once.with_vectors {
                l.line("with vectors")?;
                l.stmts(body)?;
            }
            if once.changes_mode { l.line("mode may have changed") } else { Ok(()) }
        })
    }

    fn block(&mut self, block: &Block) -> Result {
        self.line("fast: a copy, if all lanes are active and addresses are coalesced")?;
        self.inner(|l| match block {
            Block::Global { base, offsets, scale, unless, address64, store, dwords } => {
                if let Some(unless) = unless {
                    l.line(format_args!("unless {unless}"))?;
                }
                if let Some(address64) = address64 {
                    let address = sum_text(address64, *offsets, None);
                    l.line(format_args!(
                        "then {} {dwords} dwords Global[{address}: 64 bits]",
                        direction(*store)
                    ))?;
                }
                l.line(format_args!(
                    "{} {dwords} dwords Global[{}]",
                    direction(*store),
                    sum_text(base, *offsets, *scale)
                ))
            }
            Block::Lds { lanes, plus, store, dwords } => plus.iter().try_for_each(|number| {
                l.line(format_args!("{} {dwords} dwords Lds[{} + {number}]", direction(*store), role(*lanes)))
            }),
        })
    }
}

fn direction(store: bool) -> &'static str {
    if store { "store" } else { "load" }
}

fn sum_text(base: &[Value], offsets: Role, scale: Option<Scale>) -> String {
    let terms: Vec<String> = base.iter().map(Value::to_string).collect();
    let scale = scale.map_or(String::new(), |Scale { field, factor }| {
        format!(" * {factor} if field.{}", field.to_lowercase())
    });
    format!("{} + {} of each lane{scale}", terms.join(" + "), role(offsets))
}

fn local_text(id: usize, local: &Local) -> String {
    let len = local.len.map_or(String::new(), |n| format!("[{n}]"));
    format!("local t{id}{len}: {} `{}`", HostWidth::of(local.ty.width()), local.name)
}

impl Display for Handlers {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut l = Lines { f, depth: 0 };
        l.line(format_args!("{} ({:?})", self.name, self.shape))?;
        l.inner(|l| {
            self.locals.iter().enumerate().try_for_each(|(id, local)| l.line(local_text(id, local)))?;
            match &self.fast {
                Fast::None => {}
                Fast::Lanes(lanes) => l.lanes("fast", lanes)?,
                Fast::Scalar(once) => l.once("fast", once)?,
                Fast::Block(block) => l.block(block)?,
            }
            if let Some(flushing) = &self.flushing {
                let what = if flushing.direct { "one operation" } else { "several operations" };
                l.line(format_args!("flushing: {what} on {}", list(&flushing.sources)))?;
            }
            match &self.general {
                Body::Lanes(lanes) => l.lanes("general", lanes),
                Body::Once(once) => l.once("general", once),
            }
        })
    }
}
