//! Binding of the facts of semantics to the operands of an instruction.

use super::*;

/// An instruction, or half of one, and the facts of its semantics.
pub(super) struct Bind<'a> {
    pub(super) arch: Arch,
    pub(super) inst: &'a Inst,
    pub(super) binding: &'static Binding,
    pub(super) operands: &'static [Operand],
    pub(super) second: bool,
    pub(super) wave_size: u32,
    pub(super) facts: &'a Facts,
}

impl Bind<'_> {
    pub(super) fn add(&self, out: &mut Effects) {
        for touch in self.facts.registers.iter().filter(|t| self.holds(&t.conditions)) {
            // An atomic without return writes no result.
            if touch.write
                && touch.resource == Resource::Operand(Role::D0)
                && !self.binding.returns(self.inst)
            {
                continue;
            }
            let list = if touch.write { &mut out.writes } else { &mut out.reads };
            self.bind(touch, list);
        }
        self.add_preserved_bits(out);
        join(&mut out.reads);
        join(&mut out.writes);
    }

    /// A mask that is also an input keeps the bits of inactive lanes.
    fn add_preserved_bits(&self, out: &mut Effects) {
        let d0 = self.operands.iter().find(|o| o.role == Role::D0);
        let Some(operand) = d0.filter(|o| o.fmt == Fmt::Mask && o.input) else { return };
        let lanes = |t: &&Access| {
            t.write && t.resource == Resource::Operand(Role::D0) && t.lanes == facts::Lanes::Own
        };
        if self.facts.registers.iter().any(|t| lanes(&t)) {
            self.mask(operand, true, &mut out.reads);
        }
    }

    pub(super) fn holds(&self, when: &[facts::Condition]) -> bool {
        when.iter().all(|condition| condition.holds(|of| self.encoded(of)))
    }

    /// Returns a number that the encoded instruction determines.
    fn encoded(&self, of: EncodedValue) -> u32 {
        match of {
            EncodedValue::Field(name) => self.binding.named_field(self.inst, self.arch.table(), name),
            EncodedValue::RegisterNumber(role) => self.index(role),
        }
    }

    /// Returns the number of an operand's register; null's number if the operand is not a register.
    fn index(&self, role: Role) -> u32 {
        match self.operand(role).and_then(|o| self.code(o)) {
            Some(Code::Vgpr(reg) | Code::Fixed(reg) | Code::Sgpr(reg)) => reg as u32,
            _ => NULL as u32,
        }
    }

    fn operand(&self, role: Role) -> Option<&'static Operand> {
        self.operands.iter().find(|o| o.role == role)
    }

    fn code(&self, operand: &Operand) -> Option<Code> {
        Some(operand::code(self.arch, operand, self.binding.value(self.inst, operand)?))
    }

    fn bind(&self, touch: &Access, out: &mut Vec<Use>) {
        let start = Use {
            file: File::Sgpr,
            first: 0,
            count: 1,
            bits: u32::MAX,
            lanes: Lanes::All,
            role: Role::State,
            relative: None,
            always: touch.always,
            second: self.second,
        };
        match touch.resource {
            Resource::Operand(role) => self.bind_operand(role, touch, start, out),
            Resource::Dwords { role, first, count } => {
                let Some(operand) = self.operand(role) else { return };
                self.registers(operand, first as u16, count as u16, touch, start, out);
            }
            Resource::State(state) => out.extend(self.state(state, touch, start)),
            Resource::Vgpr(number) => out.extend(self.number(File::Vgpr, number, touch, start)),
            Resource::Sgpr(number) => out.extend(self.number(File::Sgpr, number, touch, start)),
            Resource::AnyVgpr | Resource::AnySgpr => out.push(Use {
                file: if touch.resource == Resource::AnyVgpr { File::Vgpr } else { File::Sgpr },
                relative: Some(Relative::Any),
                lanes: Lanes::Data,
                role: Role::Other,
                ..start
            }),
        }
    }

    fn bind_operand(&self, role: Role, touch: &Access, start: Use, out: &mut Vec<Use>) {
        let side = |o: &&Operand| o.role == role && if touch.write { o.output } else { o.input };
        if role == Role::Vcc {
            match self.operands.iter().find(side) {
                Some(operand) => self.mask(operand, touch.always, out),
                None => out.push(Use { first: VCC_LO as u16, count: self.mask_words(), role, ..start }),
            }
            return;
        }
        let Some(operand) = self.operand(role) else { return };
        if operand.fmt == Fmt::Mask {
            return self.mask(operand, touch.always, out);
        }
        let bits = self.selected_bits(operand, touch);
        for k in 0..4 {
            let bits = (bits >> (32 * k)) as u32;
            if bits != 0 {
                self.registers(operand, k, 1, touch, Use { bits, ..start }, out);
            }
        }
    }

    /// Returns the accessed bits, moved to the half that op_sel selects.
    fn selected_bits(&self, operand: &Operand, touch: &Access) -> u128 {
        let named = self.facts.fields.contains(&"OPSEL");
        let result = touch.write || operand.role == Role::D0;
        // The semantics access more than the half that the operand list declares.
        if operand.size_bits == 16 && touch.bits > 0xffff {
            return touch.bits;
        }
        if operand.size_bits == 16 && !self.binding.packed && (result || !named) {
            let reg = match self.code(operand) {
                Some(Code::Vgpr(reg)) => reg,
                _ => 0,
            };
            return (touch.bits & 0xffff) << self.binding.half_shift(self.inst, operand, reg, result);
        }
        let numbered = matches!(operand.role, Role::S0 | Role::S1 | Role::S2 | Role::S3);
        if touch.write
            || named
            || !numbered
            || operand.size_bits > 32
            || !matches!(operand.fmt, Fmt::Packed(_))
        {
            return touch.bits;
        }
        if !self.binding.packed {
            return touch.bits;
        }
        let half = |field, bits: u128| {
            let high =
                self.binding.named_field(self.inst, self.arch.table(), field) >> operand.source & 1 == 1;
            (bits & 0xffff) << if high { 16 } else { 0 }
        };
        half("OPSEL", touch.bits) | half("OPSEL_HI", touch.bits >> 16)
    }

    fn mask_words(&self) -> u16 {
        (self.wave_size / 32) as u16
    }

    /// Adds the registers of a lane mask.
    fn mask(&self, operand: &Operand, always: bool, out: &mut Vec<Use>) {
        let first = match self.binding.value(self.inst, operand) {
            Some(value) => operand::mask_register(operand, value),
            // A mask operand that is implied by the encoding.
            None => VCC_LO as u16,
        };
        if first as usize != NULL && first as usize <= EXEC_HI {
            out.push(Use {
                file: File::Sgpr,
                first,
                count: self.mask_words(),
                bits: u32::MAX,
                lanes: Lanes::All,
                role: operand.role,
                relative: None,
                always,
                second: self.second,
            });
        }
    }

    /// Adds `count` dwords of an operand from dword `at` on; nothing for constants and null.
    fn registers(
        &self,
        operand: &Operand,
        index: u16,
        count: u16,
        touch: &Access,
        start: Use,
        out: &mut Vec<Use>,
    ) {
        let used = Use { count, role: operand.role, ..start };
        let lanes = self.lanes(touch.lanes, operand.role == Role::S0 && !touch.write);
        match self.code(operand) {
            Some(Code::Vgpr(reg)) => {
                let first = self.binding.register(operand, reg) + index;
                let always = used.always && !(touch.write && self.preserves_lanes());
                let msb = operand.msb.map(|position| Relative::Msb { position });
                let relative = used.relative.or(msb);
                out.push(Use { file: File::Vgpr, first, lanes, always, relative, ..used });
            }
            Some(Code::Fixed(reg)) if !touch.write => {
                out.push(Use { file: File::Vgpr, first: reg + index, lanes, ..used });
            }
            Some(Code::Sgpr(reg)) if reg as usize == NULL => {}
            // A 16-bit scalar result clears the upper half.
            Some(Code::Sgpr(reg)) if reg as usize <= EXEC_HI => {
                let bits = if touch.write { u32::MAX } else { used.bits };
                out.push(Use { file: File::Sgpr, first: reg + index, bits, ..used });
            }
            Some(Code::Scc) if index == 0 && !touch.write => out.push(Use { file: File::Scc, ..used }),
            Some(code @ (Code::Vccz | Code::Execz)) if index == 0 && !touch.write => {
                let first = if code == Code::Vccz { VCC_LO } else { EXEC_LO } as u16;
                out.push(Use { first, count: self.mask_words(), bits: u32::MAX, ..used });
            }
            _ => {}
        }
    }

    fn lanes(&self, lanes: facts::Lanes, moved: bool) -> Lanes {
        match lanes {
            facts::Lanes::Own if moved && self.binding.has_dpp() => self.dpp(),
            facts::Lanes::Own | facts::Lanes::Active => Lanes::Active,
            facts::Lanes::All => Lanes::All,
            facts::Lanes::Once => Lanes::Selected(Select::Lane(0)),
            facts::Lanes::Lane(lane) => Lanes::Selected(Select::Lane(lane)),
            facts::Lanes::LowestActive => Lanes::FirstActive,
            facts::Lanes::Selected(role) => match self.operand(role).and_then(|o| self.code(o)) {
                Some(Code::Sgpr(reg)) => Lanes::Selected(Select::Sgpr(reg)),
                Some(Code::Int(lane)) => Lanes::Selected(Select::Lane(lane as u32)),
                _ => Lanes::Data,
            },
            facts::Lanes::Any => Lanes::Data,
        }
    }

    fn dpp(&self) -> Lanes {
        let m = &self.binding.mods;
        match m.lane_sel {
            Some(first) => Lanes::Dpp8 {
                lanes: std::array::from_fn(|k| self.inst.fields[first as usize + k] as u8),
                fetch: self.binding.get(self.inst, m.src0) == dpp::DPP8_FETCH_INACTIVE,
            },
            None => Lanes::Dpp16 {
                arch: self.arch,
                ctrl: self.binding.get(self.inst, m.dpp_ctrl) as u16,
                fetch: self.binding.get(self.inst, m.fi) != 0,
            },
        }
    }

    /// Returns whether DPP may leave active lanes of the result unchanged.
    fn preserves_lanes(&self) -> bool {
        let m = &self.binding.mods;
        if m.dpp_ctrl.is_none() || m.lane_sel.is_some() {
            return false;
        }
        let get = |field| self.binding.get(self.inst, field);
        let all_lanes = get(m.row_mask) == 0xf && get(m.bank_mask) == 0xf;
        let is_inside = |lane| dpp::source(self.arch, get(m.dpp_ctrl), lane).is_some();
        let has_source = || get(m.fi) != 0 && (0..self.wave_size).all(is_inside);
        !(all_lanes && (get(m.bound_ctrl) != 0 || has_source()))
    }

    /// Returns the use of state that semantics name, if it is in a register.
    fn state(&self, state: State, touch: &Access, start: Use) -> Option<Use> {
        let words = self.mask_words();
        let (file, first, count) = match state {
            State::Scc => (File::Scc, 0, 1),
            State::Vcc | State::Vccz => (File::Sgpr, VCC_LO, words),
            State::VccLo => (File::Sgpr, VCC_LO, 1),
            State::VccHi => (File::Sgpr, VCC_HI, 1),
            State::Exec | State::Execz => (File::Sgpr, EXEC_LO, words),
            State::ExecLo => (File::Sgpr, EXEC_LO, 1),
            State::ExecHi => (File::Sgpr, EXEC_HI, 1),
            State::M0 => (File::Sgpr, M0, 1),
            State::Pc
            | State::InstSize
            | State::Mode
            | State::Status
            | State::LaneId
            | State::Wave32
            | State::Wave64
            | State::WaveSize
            | State::VgprSize
            | State::WaveId
            | State::LdsSize
            | State::ScratchBase
            | State::SharedBase
            | State::PrivateBase
            | State::TrapBase => return None,
        };
        let bits = match state {
            // A single bit that depends on all bits of the mask.
            State::Vccz | State::Execz => u32::MAX,
            _ if count == 1 => touch.bits as u32,
            _ => u32::MAX,
        };
        Some(Use { file, first: first as u16, count, bits, ..start })
    }

    /// Returns the use of registers accessed by number.
    fn number(&self, file: File, number: RegisterRange, touch: &Access, start: Use) -> Option<Use> {
        let base = number.base.map_or(0, |of| self.encoded(of) & number.mask);
        // Writes to null are dropped.
        let alone = number.index.is_none() && number.count == 1;
        if file == File::Sgpr && alone && base.wrapping_add(number.first) as usize == NULL {
            return None;
        }
        let relative = number.index.map(|index| Relative::M0 {
            index,
            // A VGPR that the wave does not have reads as v0.
            otherwise: if file == File::Vgpr { 0 } else { number.fallback.unwrap_or(0) as u16 },
        });
        let first = u16::try_from(base.wrapping_add(number.first)).ok()?;
        let lanes = if file == File::Vgpr { self.lanes(touch.lanes, false) } else { Lanes::All };
        let (count, bits) = (number.count as u16, touch.bits as u32);
        Some(Use {
            file,
            first,
            count,
            bits,
            lanes,
            role: match number.base {
                Some(EncodedValue::RegisterNumber(role)) => role,
                _ => Role::Other,
            },
            relative,
            ..start
        })
    }
}

/// Merges adjacent uses of consecutive registers that are otherwise equal.
fn join(list: &mut Vec<Use>) {
    list.dedup_by(|next, last| {
        let alike = Use { first: last.first, count: last.count, ..*next } == *last;
        let is_adjacent =
            next.relative.is_none() && last.first + last.count == next.first && next.file != File::Scc;
        if alike && is_adjacent {
            last.count += next.count;
        }
        alike && is_adjacent
    });
}
