//! Operands of the instruction, taken from its fields: register or constant, with modifiers, DPP and SDWA.

use super::*;

impl RefMachine<'_, '_, '_> {
    pub(super) fn operand_of(&self, role: Role) -> Option<Operand> {
        let list = if self.second { &self.binding.y } else { &self.binding.operands };
        let find = |list: &[Operand]| list.iter().find(|o| o.role == role).copied();
        find(list)
    }

    pub(super) fn field_value(&self, operand: &Operand) -> Option<u32> {
        self.binding.value(self.inst, operand)
    }

    /// Returns the SGPR that holds a mask operand.
    pub(super) fn mask_register(&self, role: Role, output: bool) -> u32 {
        let list = if self.second { &self.binding.y } else { &self.binding.operands };
        let operand = list.iter().find(|o| o.role == role && if output { o.output } else { o.input });
        match operand.and_then(|o| Some(operand::mask_register(o, self.field_value(o)?))) {
            Some(code) => code as u32,
            None => VCC_LO as u32,
        }
    }

    pub(super) fn write_mask(&mut self, role: Role, value: u64) {
        self.note_mask(true, role);
        self.vcc_written |= role == Role::Vcc;
        let reg = self.mask_register(role, true);
        self.wave.set_sgprs(reg, self.wave.size() / 32, value as u128);
    }

    pub(super) fn read_mask(&self, role: Role) -> u64 {
        let reg = self.mask_register(role, false);
        let low = self.wave.sgpr(reg) as u64;
        if self.wave.size() == 64 && reg as usize != NULL {
            low | (self.wave.sgpr(reg + 1) as u64) << 32
        } else {
            low
        }
    }

    /// Returns the SDWA selections, if the instruction has any.
    pub(super) fn sdwa(&self) -> Option<Sdwa> {
        lower::sdwa(self.binding, self.inst, &self.binding.operands)
    }

    pub(super) fn names_field(&self, field: &str) -> bool {
        self.sem.uses.fields.contains(field)
    }

    /// Returns dword `index` of an operand in a lane, before modifiers.
    pub(super) fn dword(&self, operand: &Operand, lane: u32, index: u32) -> u32 {
        let Some(value) = self.field_value(operand) else { return 0 };
        match operand::code(self.arch, operand, value) {
            Code::Vgpr(reg) => {
                let reg = self.binding.register(operand, reg) as u32 + index;
                self.wave.vgpr(lane, reg)
            }
            Code::Fixed(reg) => self.wave.vgpr(lane, reg as u32 + index),
            // All dwords of null are zero, rather than the registers after it.
            Code::Sgpr(code) if code as usize == NULL => 0,
            Code::Sgpr(code) => self.wave.sgpr(code as u32 + index),
            Code::Scc => {
                if index == 0 {
                    self.wave.scc
                } else {
                    0
                }
            }
            Code::Vccz => (index == 0 && self.wave.vcc() == 0) as u32,
            Code::Execz => (index == 0 && self.wave.exec() == 0) as u32,
            Code::SharedBase => [0, (SHARED_BASE >> 32) as u32][index.min(1) as usize],
            Code::PrivateBase => [0, (PRIVATE_BASE >> 32) as u32][index.min(1) as usize],
            Code::SharedLimit | Code::PrivateLimit => {
                if index == 0 {
                    u32::MAX
                } else {
                    0
                }
            }
            code @ (Code::Int(_)
            | Code::Float(_)
            | Code::Literal
            | Code::Literal64
            | Code::ScratchBase { .. }) => self.binding.constant(self.inst, code, operand, index),
            Code::Invalid => 0,
        }
    }

    /// Returns the lane whose register a source reads: DPP permutes the first source. `None` if that lane is
    /// invalid.
    pub(super) fn source_lane(&self, operand: &Operand, lane: u32) -> Option<u32> {
        if operand.role != Role::S0 || !self.binding.has_dpp() {
            return Some(lane);
        }
        let m = &self.binding.mods;
        if let Some(first) = m.lane_sel {
            let from = lane & !7 | self.inst.fields[first as usize + (lane & 7) as usize];
            let fetch = self.binding.get(self.inst, m.src0) == dpp::DPP8_FETCH_INACTIVE;
            return (fetch || self.exec >> from & 1 == 1).then_some(from);
        }
        let from = dpp::source(self.arch, self.binding.get(self.inst, m.dpp_ctrl), lane)?;
        let fetch = self.binding.get(self.inst, m.fi) != 0;
        (fetch || self.exec >> from & 1 == 1).then_some(from)
    }

    /// Determines the lanes that write nothing: masked rows and banks, and invalid sources without bound
    /// control.
    pub(super) fn find_disabled(&mut self) {
        let m = &self.binding.mods;
        if m.dpp_ctrl.is_none() {
            return;
        }
        let row_mask = self.binding.get(self.inst, m.row_mask);
        let bank_mask = self.binding.get(self.inst, m.bank_mask);
        let bound = self.binding.get(self.inst, m.bound_ctrl) != 0;
        let s0 = self.operand_of(Role::S0);
        for lane in 0..self.wave.size() {
            let row = row_mask >> ((lane / 16) & 3) & 1;
            let bank = bank_mask >> ((lane / 4) & 3) & 1;
            let invalid = !bound && s0.is_some_and(|o| self.source_lane(&o, lane).is_none());
            if row == 0 || bank == 0 || invalid {
                self.disabled |= 1 << lane;
            }
        }
    }

    /// Returns an operand's value in a lane, with modifiers applied.
    pub(super) fn value(&self, operand: &Operand, lane: u32) -> u128 {
        let size = operand.size_bits as u32;
        let Some(from) = self.source_lane(operand, lane) else {
            return self.modify(operand, 0);
        };
        let mut bits = 0u128;
        for index in 0..size.div_ceil(32).clamp(1, 4) {
            bits |= (self.dword(operand, from, index) as u128) << (32 * index);
        }
        if let Some(sdwa) = self.sdwa()
            && matches!(operand.role, Role::S0 | Role::S1)
            && let Some(part) = sdwa.sources.get(operand.source as usize)
        {
            bits = part.read(bits as u32, sdwa.signed[operand.source as usize]) as u128;
        }
        if operand.size_bits == 16
            && self.sem.shape != Shape::Scalar
            && !self.names_field("OPSEL")
            && let Some(value) = self.field_value(operand)
        {
            let reg = match operand::code(self.arch, operand, value) {
                Code::Vgpr(reg) => reg,
                _ => 0,
            };
            bits >>= self.binding.half_shift(self.inst, operand, reg, false);
            bits &= 0xffff;
        }
        self.modify(operand, bits)
    }

    pub(super) fn modify(&self, operand: &Operand, bits: u128) -> u128 {
        let m = &self.binding.mods;
        let i = operand.source as u32;
        let numbered = matches!(operand.role, Role::S0 | Role::S1 | Role::S2 | Role::S3);
        if !numbered {
            return bits;
        }
        if self.binding.packed {
            return if operand.size_bits > 32 { bits } else { self.packed(operand, bits as u32) as u128 };
        }
        // Both halves of a dot product's operand are negated together; there is no absolute value.
        let dot = operand.replicated;
        let float = matches!(operand.fmt, Fmt::F16 | Fmt::BF16 | Fmt::F32 | Fmt::F64 | Fmt::Bits);
        if !(float || dot) || operand.size_bits > 64 {
            return bits;
        }
        let sign = if dot { 0x8000_8000 } else { 1u128 << (operand.size_bits.min(64) - 1) };
        let bit = |field| self.binding.get(self.inst, field) >> i & 1 == 1;
        let (dpp_abs, dpp_neg) = match i {
            0 => (m.src0_abs, m.src0_neg),
            1 => (m.src1_abs, m.src1_neg),
            _ => (None, None),
        };
        // VOP3 with DPP encodes the modifiers twice; those in the DPP word are unused there.
        let in_dpp = m.neg.is_none() && m.abs.is_none();
        let abs = bit(m.abs) || in_dpp && self.binding.get(self.inst, dpp_abs) == 1;
        let neg = bit(operand.neg) || in_dpp && self.binding.get(self.inst, dpp_neg) == 1;
        let mut out = bits;
        if abs && !dot && !self.names_field("ABS") {
            out &= !sign;
        }
        if neg && !self.names_field("NEG") {
            out ^= sign;
        }
        out
    }

    /// Applies VOP3P modifiers: selects halves by op_sel and op_sel_hi, flips signs by neg and neg_hi.
    pub(super) fn packed(&self, operand: &Operand, bits: u32) -> u32 {
        let i = operand.source as u32;
        let field = |name| self.binding.named_field(self.inst, self.table, name) >> i & 1 == 1;
        let Fmt::Packed(half) = operand.fmt else {
            let float = matches!(operand.fmt, Fmt::F32);
            let flip = float && field("NEG") && !self.names_field("NEG");
            return if flip { bits ^ 0x8000_0000 } else { bits };
        };
        let (mut lo, mut hi) = (bits & 0xffff, bits >> 16);
        if !self.names_field("OPSEL") {
            let select = |high: bool| if high { bits >> 16 } else { bits & 0xffff };
            lo = select(field("OPSEL"));
            hi = select(field("OPSEL_HI"));
        }
        if half != Half::Int && !self.names_field("NEG") {
            lo ^= (field("NEG") as u32) << 15;
            hi ^= (field("NEG_HI") as u32) << 15;
        }
        hi << 16 | lo
    }

    /// Applies the output modifiers to a float result.
    pub(super) fn output(&self, operand: &Operand, value: u128) -> u128 {
        let ty = match operand.fmt {
            Fmt::F16 => Ty::F16,
            Fmt::F32 => Ty::F32,
            Fmt::F64 => Ty::F64,
            Fmt::BF16 => Ty::BF16,
            Fmt::Packed(Half::F16) if operand.size_bits == 32 => {
                let clamp = |h: u128| self.clamp_float(h & 0xffff, Ty::F16);
                return if self.clamp() { clamp(value) | clamp(value >> 16) << 16 } else { value };
            }
            _ => return value,
        };
        let omod = self.binding.get(self.inst, self.binding.mods.omod);
        let mut out = output::omod(value, ty, omod, self.wave.mode, self.arch);
        if self.clamp() && !self.names_field("CLAMP") {
            out = self.clamp_float(out, ty);
        }
        out
    }

    pub(super) fn clamp_float(&self, value: u128, ty: Ty) -> u128 {
        output::clamp(value, ty, self.wave.mode, self.arch)
    }
}
