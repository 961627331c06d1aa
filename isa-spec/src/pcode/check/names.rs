//! Resolves names to locals, operands, state, or encoding fields.

use super::{Checker, R, TExpr};
use crate::diag::{Diagnostic, MAX_SHOWN, nearest};
use crate::pcode::builtins::FIELDS;
use crate::pcode::ir::{Expr, ExprKind, State, Ty};
use crate::pcode::sig::Family;
use crate::source::Span;
use crate::tables::Role;

/// Architectural state by name, with its type.
const STATE: &[(&str, State, Ty)] = &[
    ("EXEC", State::Exec, Ty::U(64)),
    ("EXEC_LO", State::ExecLo, Ty::U(32)),
    ("EXEC_HI", State::ExecHi, Ty::U(32)),
    ("VCC", State::Vcc, Ty::U(64)),
    ("VCC_LO", State::VccLo, Ty::U(32)),
    ("VCC_HI", State::VccHi, Ty::U(32)),
    ("VCCZ", State::Vccz, Ty::U(1)),
    ("EXECZ", State::Execz, Ty::U(1)),
    ("SCC", State::Scc, Ty::U(1)),
    ("M0", State::M0, Ty::U(32)),
    ("PC", State::Pc, Ty::I(64)),
    ("INST_SIZE", State::InstSize, Ty::U(32)),
    ("MODE", State::Mode, Ty::U(32)),
    ("STATUS", State::Status, Ty::U(32)),
    ("laneId", State::LaneId, Ty::U(32)),
    ("laneID", State::LaneId, Ty::U(32)),
    ("WAVE32", State::Wave32, Ty::U(1)),
    ("wave32", State::Wave32, Ty::U(1)),
    ("WAVE64", State::Wave64, Ty::U(1)),
    ("wave64", State::Wave64, Ty::U(1)),
    ("WAVE_SIZE", State::WaveSize, Ty::U(32)),
    ("VGPR_SIZE", State::VgprSize, Ty::U(32)),
    ("WAVE_ID", State::WaveId, Ty::U(32)),
    ("LDS_SIZE", State::LdsSize, Ty::U(32)),
    ("SCRATCH_BASE", State::ScratchBase, Ty::U(64)),
    ("SHARED_BASE", State::SharedBase, Ty::U(64)),
    ("PRIVATE_BASE", State::PrivateBase, Ty::U(64)),
    ("TBA", State::TrapBase, Ty::U(64)),
];

/// What a reserved name denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reserved {
    /// The value of an operand.
    Operand,
    /// The number of an operand's register.
    Number,
    /// A register file or a memory, which is indexed, or the rounding mode.
    Storage,
}

/// Names that are reserved in the bodies of all instructions, also of those without such an operand. (The
/// names of [`STATE`] are reserved, too.)
const RESERVED: &[(&str, Reserved)] = &[
    ("D0", Reserved::Operand),
    ("D1", Reserved::Operand),
    ("S0", Reserved::Operand),
    ("S1", Reserved::Operand),
    ("S2", Reserved::Operand),
    ("S3", Reserved::Operand),
    ("S4", Reserved::Operand),
    ("VDATA", Reserved::Operand),
    ("SDATA", Reserved::Operand),
    ("RETURN_DATA", Reserved::Operand),
    ("SRC0", Reserved::Number),
    ("SRC1", Reserved::Number),
    ("SRC2", Reserved::Number),
    ("SRC3", Reserved::Number),
    ("VDST", Reserved::Number),
    ("SDST", Reserved::Number),
    ("DST", Reserved::Number),
    ("MEM", Reserved::Storage),
    ("BUFFER", Reserved::Storage),
    ("LDS", Reserved::Storage),
    ("SCRATCH", Reserved::Storage),
    ("DMEM", Reserved::Storage),
    ("GLOBAL", Reserved::Storage),
    ("VGPR", Reserved::Storage),
    ("SGPR", Reserved::Storage),
    ("TTMP", Reserved::Storage),
    ("ROUND_MODE", Reserved::Storage),
];

/// Names that the manuals declare although they are encoding fields or operands.
pub(super) const MANUAL_DECLARATIONS: &[&str] = &["S", "OFFSET", "OFFSET0", "OFFSET1", "DATA0", "VDST"];

/// Returns what a reserved name denotes.
pub(super) fn reserved(name: &str) -> Option<Reserved> {
    RESERVED.iter().find(|(n, _)| *n == name).map(|&(_, what)| what)
}

impl Checker<'_> {
    /// Returns the operand that a name denotes in this instruction; `write` means as the target of an
    /// assignment.
    pub(super) fn operand_role(&self, name: &str, write: bool) -> Option<Role> {
        let has = |role: Role| self.sig().permissive || self.sig().operands.contains_key(&role);
        let writable = |role: Role| {
            self.sig().permissive
                || self.sig().operands.get(&role).is_some_and(|o| o.output || role == Role::D0)
        };
        let first = |roles: &[Role]| roles.iter().copied().find(|r| has(*r));
        match name {
            "D0" | "D" => first(&[Role::D0]),
            "D1" => first(&[Role::D1, Role::Vcc]),
            "S0" => first(&[Role::S0]),
            "S1" => first(&[Role::S1]),
            "S2" => first(&[Role::S2]),
            "S3" => first(&[Role::S3]),
            "S4" => first(&[Role::S4]),
            "SRC0" => first(&[Role::S0]),
            "SRC1" => first(&[Role::S1]),
            "SRC2" => first(&[Role::S2]),
            "VDST" | "SDST" | "DST" | "RETURN_DATA" => first(&[Role::D0, Role::S0]),
            "VDATA" | "SDATA" if write => first(&[Role::D0]),
            "VDATA" | "SDATA" => first(&[Role::Data, Role::D0]),
            "DATA" | "DATA0" | "VSRC" => {
                if has(Role::Data) {
                    Some(Role::Data)
                } else if writable(Role::D0) {
                    first(&[Role::D0])
                } else {
                    None
                }
            }
            "DATA1" | "DATA2" => first(&[Role::Data1]),
            "VADDR" | "ADDR_BASE" | "v_addr" | "vgpr_a" => first(&[Role::VAddr]),
            "SADDR" | "SGPR_ADDR" | "s_saddr" | "s_addr" | "SBASE" | "sgpr_base" | "SRSRC" | "RSRC" => {
                first(&[Role::SAddr])
            }
            "SOFFSET" | "sgpr_o" => first(&[Role::SOffset]),
            "VCC" if self.sig().family == Family::Vector => first(&[Role::Vcc]),
            _ => None,
        }
    }

    /// Returns the whole operand as raw bits.
    pub(super) fn operand(&self, role: Role, span: Span) -> TExpr {
        let width = self.operand_width(role);
        TExpr::of(ExprKind::Operand(role), Ty::B(width), span)
    }

    pub(super) fn operand_width(&self, role: Role) -> u16 {
        match self.sig().operands.get(&role) {
            Some(info) if role == Role::VAddr => info.width.max(64),
            Some(info) if role == Role::Vcc => info.width.max(64),
            // A scalar register is read as a whole, even if the operand is its low half.
            Some(info) if self.sig().family == Family::Scalar => info.width.clamp(32, 128),
            Some(info) => info.width.clamp(1, 128),
            None if role == Role::Vcc => 64,
            None => 128,
        }
    }

    pub(super) fn state(name: &str) -> Option<(State, Ty)> {
        STATE.iter().find(|(n, ..)| *n == name).map(|&(_, state, ty)| (state, ty))
    }

    pub(super) fn field(name: &str) -> Option<(&'static str, Ty)> {
        let (canonical, _) = FIELDS.iter().find(|(n, aliases)| *n == name || aliases.contains(&name))?;
        let width = match *canonical {
            "NEG" | "NEG_HI" | "ABS" | "OPSEL_HI" | "CBSZ" | "BLGP" | "DIM" => 3,
            "OPSEL" | "ABID" | "DMASK" => 4,
            "CLAMP" | "IDXEN" | "OFFEN" | "SVE" | "GLC" | "TO_LDS" => 1,
            "A16" | "D16" | "UNORM" | "R128" | "TFE" | "LWE" | "NSA" => 1,
            "OMOD" => 2,
            "SIMM16" => 16,
            "SIMM4" => 8,
            "OFFSET0" | "OFFSET1" => 8,
            "OFFSET" | "SIMM32" => 32,
            _ => 32,
        };
        let ty = match *canonical {
            // Signed if the encoding's offset is signed.
            "OFFSET" => Ty::I(32),
            "SIMM16" | "SIMM4" | "SIMM32" => Ty::B(width),
            _ => Ty::U(width),
        };
        Some((canonical, ty))
    }

    /// Returns the offset and width of a MODE field, given its name in the manuals.
    fn mode_bits(name: &str) -> Option<(u32, u32)> {
        Some(match name {
            "WAVE_MODE.IEEE" | "MODE.IEEE" => (9, 1),
            "WAVE_MODE.DX10_CLAMP" | "MODE.DX10_CLAMP" => (8, 1),
            "MODE.fp_round" | "ROUND_MODE" => (0, 2),
            "MODE.FP16_OVFL" | "WAVE_MODE.FP16_OVFL" => (23, 1),
            _ => return None,
        })
    }

    /// Resolves a name that is read as a value.
    pub(super) fn name_value(&mut self, name: &str, span: Span) -> R<TExpr> {
        if let Some(found) = self.lookup_binding(name, span) {
            return Ok(found);
        }
        if let Some(value) = self.record_field(name, span) {
            return value;
        }
        if let Some(value) = self.manual_constant(name, span) {
            return Ok(value);
        }
        if reserved(name) == Some(Reserved::Number)
            && let Some(role) = self.operand_role(name, false)
        {
            return Ok(TExpr::of(ExprKind::OperandIndex(role), Ty::U(32), span));
        }
        if name == "ADDR" && matches!(self.sig().family, Family::Memory(_)) {
            return self.effective_address(span);
        }
        if let Some(role) = self.operand_role(name, false) {
            return Ok(self.operand(role, span));
        }
        // The source of SOPK instructions is their immediate.
        if name == "S0" && self.sig().family == Family::Scalar && self.sig().operands.contains_key(&Role::Imm)
        {
            return self.name_value("SIMM16", span);
        }
        if let Some((state, ty)) = Self::state(name) {
            return Ok(TExpr::of(ExprKind::State(state), ty, span));
        }
        if let Some((field, ty)) = Self::field(name) {
            return Ok(TExpr::of(ExprKind::Field(field), ty, span));
        }
        if let Some((lo, width)) = Self::mode_bits(name) {
            let base = Expr { kind: ExprKind::State(State::Mode), ty: Ty::U(32), span };
            let lo = super::convert::constant(lo as u128, Ty::U(32), span);
            let kind = ExprKind::Slice { base: Box::new(base), lo: Box::new(lo) };
            return Ok(TExpr::of(kind, Ty::U(width as u16), span));
        }
        self.unknown_name(name, span)
    }

    pub(super) fn unknown_name<T>(&mut self, name: &str, span: Span) -> R<T> {
        if self.unreadable.contains(name) {
            return Err(());
        }
        let operand_like = matches!(reserved(name), Some(Reserved::Operand | Reserved::Number))
            || (name.starts_with('S') && name.len() == 2 && name.as_bytes()[1].is_ascii_digit());
        let operands = self.operand_names();
        if operand_like {
            let instruction = if self.sig().name.is_empty() {
                "this instruction".to_string()
            } else {
                self.sig().name.clone()
            };
            let mut error = Diagnostic::error(span, format!("`{name}` is not an operand of {instruction}"))
                .label(format!("operands are {}", operands.join(", ")));
            if let Some(near) = nearest(name, operands.iter().copied()) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            self.errors.push(error);
            return Err(());
        }
        let mut error =
            Diagnostic::error(span, format!("unknown name `{name}`")).label("not a local, operand or state");
        if self.errors.len() >= MAX_SHOWN {
            self.errors.push(error);
            return Err(());
        }
        let mut known: Vec<String> = operands.iter().map(|s| s.to_string()).collect();
        known.extend(STATE.iter().map(|s| s.0.to_string()));
        known.extend(FIELDS.iter().map(|f| f.0.to_string()));
        known.extend(self.frames.iter().flat_map(|f| f.names.keys().cloned()));
        if let Some(near) = nearest(name, known.iter().map(|s| s.as_str())) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        self.errors.push(error);
        Err(())
    }

    fn operand_names(&self) -> Vec<&'static str> {
        let all =
            ["D0", "D1", "S0", "S1", "S2", "S3", "S4", "VCC", "VADDR", "SADDR", "SOFFSET", "DATA", "DATA1"];
        let mut roles = std::collections::BTreeSet::new();
        // List each operand under one name: `DATA` may be an alias of `D0`.
        let named = |n: &&str| self.operand_role(n, false).is_some_and(|role| roles.insert(role));
        if self.sig().permissive { all.to_vec() } else { all.into_iter().filter(named).collect() }
    }
}
