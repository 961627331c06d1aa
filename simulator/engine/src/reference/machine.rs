//! The machine interface of the evaluator: operands, state, registers, memory.

use super::*;

impl RefMachine<'_, '_, '_> {
    fn memory_fault<T>(&mut self, place: Place, e: MemError, lane: Option<u32>) -> Result<T, Stop> {
        let event = match place {
            Place::Scratch(_) => Event::scratch_overflow(e, self.context.scratch_stride, lane),
            _ => Event::out_of_bounds(self.context.memory, e, lane),
        };
        self.stop(event)
    }

    /// Resolves an address to a location.
    fn place(&self, space: Space, addr: u64) -> Place {
        Place::of(space, in_bytes(space, addr))
    }

    fn lds(&mut self, address: u64, size: u32) -> Result<&mut [u8], MemError> {
        let error = MemError { address, size_bytes: size, write: false };
        let at = usize::try_from(address).map_err(|_| error)?;
        self.context.lds.get_mut(at..at.saturating_add(size as usize)).ok_or(error)
    }
}

impl Machine for RefMachine<'_, '_, '_> {
    fn reading(&mut self, role: Role, lane: Option<u32>, bits: u128) {
        if self.access_set.is_some() {
            self.note_operand(role, lane, bits);
        }
    }

    fn operand(&mut self, role: Role, lane: Option<u32>) -> u128 {
        if role == Role::Vcc {
            return self.read_mask(role) as u128;
        }
        let Some(operand) = self.operand_of(role) else { return 0 };
        if role == Role::D0 {
            return self.destination(role, lane);
        }
        if operand.fmt == Fmt::Mask {
            return self.read_mask(role) as u128;
        }
        self.value(&operand, lane.unwrap_or(0))
    }

    fn destination(&mut self, role: Role, lane: Option<u32>) -> u128 {
        let target = if role == Role::Vcc { MaskTarget::Vcc } else { MaskTarget::D0 };
        if let Some(mask) = self.masks.get(&target) {
            return *mask as u128;
        }
        let Some(operand) = self.operand_of(role) else { return 0 };
        let lane_number = lane.unwrap_or(0);
        let Some(value) = self.field_value(&operand) else { return 0 };
        let size = operand.size_bits as u32;
        let mut bits = 0u128;
        // Partial writes may reach beyond the listed size (VDATA of D16 forms).
        for index in 0..size.div_ceil(32).clamp(1, 4) {
            let dword = match operand::code(self.arch, &operand, value) {
                Code::Vgpr(reg) => {
                    let reg = self.binding.register(&operand, reg) as u32 + index;
                    self.writes.get(&(lane_number, reg)).copied().unwrap_or(self.wave.vgpr(lane_number, reg))
                }
                Code::Sgpr(code) if code as usize == NULL => 0,
                Code::Sgpr(code) => self.wave.sgpr(code as u32 + index),
                _ => 0,
            };
            bits |= (dword as u128) << (32 * index);
        }
        if size == 16
            && !self.binding.packed
            && let Code::Vgpr(reg) = operand::code(self.arch, &operand, value)
        {
            bits = bits >> self.binding.half_shift(self.inst, &operand, reg, true) & 0xffff;
        }
        bits
    }

    fn set_operand(&mut self, role: Role, lane: Option<u32>, value: u128, width: u32) {
        let target = if role == Role::Vcc { MaskTarget::Vcc } else { MaskTarget::D0 };
        if let Some(mask) = self.masks.get_mut(&target) {
            *mask = value as u64;
            return;
        }
        let Some(operand) = self.operand_of(role) else { return };
        if role == Role::D0 && !self.binding.returns(self.inst) {
            return;
        }
        if operand.fmt == Fmt::Mask {
            return self.write_mask(role, value as u64);
        }
        self.result_written |= role == Role::D0;
        let value = self.output(&operand, value);
        let Some(field) = self.field_value(&operand) else { return };
        let size = operand.size_bits as u32;
        for k in 0..width.div_ceil(32) {
            self.note_dword(true, &operand, lane.unwrap_or(0), k);
        }
        match operand::code(self.arch, &operand, field) {
            Code::Vgpr(reg) => {
                let lane = lane.unwrap_or(0);
                let base = self.binding.register(&operand, reg) as u32;
                if let Some(sdwa) = self.sdwa().filter(|s| s.result != Part::WHOLE && width <= 32)
                    && role == Role::D0
                {
                    let new = sdwa.result.write(value as u32, self.wave.vgpr(lane, base), sdwa.rest);
                    self.writes.insert((lane, base), new);
                    return;
                }
                if size == 16 && width <= 16 {
                    let shift = self.binding.half_shift(self.inst, &operand, reg, true);
                    let old = self.writes.get(&(lane, base)).copied().unwrap_or(self.wave.vgpr(lane, base));
                    let new = old & !(0xffff << shift) | (value as u32 & 0xffff) << shift;
                    self.writes.insert((lane, base), new);
                    return;
                }
                if width < 32 {
                    let mask = (1u32 << width) - 1;
                    let old = self.writes.get(&(lane, base)).copied().unwrap_or(self.wave.vgpr(lane, base));
                    self.writes.insert((lane, base), old & !mask | value as u32 & mask);
                    return;
                }
                for index in 0..width.div_ceil(32) {
                    self.writes.insert((lane, base + index), (value >> (32 * index)) as u32);
                }
            }
            Code::Sgpr(code) => {
                // A 16-bit scalar result clears the upper half.
                self.wave.set_sgprs(code as u32, width.div_ceil(32), value);
            }
            _ => {}
        }
    }

    fn operand_index(&mut self, role: Role) -> u32 {
        let Some(operand) = self.operand_of(role) else { return 0 };
        let Some(value) = self.field_value(&operand) else { return 0 };
        match operand::code(self.arch, &operand, value) {
            Code::Vgpr(reg) | Code::Fixed(reg) | Code::Sgpr(reg) => reg as u32,
            // Operands other than registers have no number.
            _ => NULL as u32,
        }
    }

    fn operand_lane(&mut self, role: Role, lane: u32, index: u32) -> u32 {
        self.note_lane(role, lane, index);
        let Some(operand) = self.operand_of(role) else { return 0 };
        if index == 0 && operand.size_bits <= 32 && self.sem.shape == Shape::Lane {
            return self.value(&operand, lane) as u32;
        }
        if lane >= self.wave.size() {
            return 0;
        }
        self.dword(&operand, lane, index)
    }

    fn field(&mut self, name: &str) -> u32 {
        self.binding.named_field(self.inst, self.table, name)
    }

    fn state(&mut self, state: State, lane: Option<u32>) -> u128 {
        self.note_state(false, state);
        let wave = &*self.wave;
        (match state {
            // Per-lane semantics see the initial EXEC; semantics that run once see their own writes.
            State::Exec if self.sem.shape == Shape::Lane => self.exec,
            State::Exec => wave.exec(),
            State::ExecLo => wave.sgprs[EXEC_LO] as u64,
            State::ExecHi => wave.sgprs[EXEC_LO + 1] as u64,
            State::Vcc => wave.vcc(),
            State::VccLo => wave.sgprs[VCC_LO] as u64,
            State::VccHi => wave.sgprs[VCC_LO + 1] as u64,
            State::Vccz => (wave.vcc() == 0) as u64,
            State::Execz => (wave.exec() == 0) as u64,
            State::Scc => wave.scc as u64,
            State::M0 => wave.sgprs[M0] as u64,
            State::Pc => wave.code_base.wrapping_add(wave.pc),
            State::InstSize => self.inst.size as u64,
            State::Mode => wave.mode as u64,
            State::Status => hwreg::status(self.arch, wave, self.context.workgroup) as u64,
            State::LaneId => lane.unwrap_or(0) as u64,
            State::Wave32 => (wave.size() == 32) as u64,
            State::Wave64 => (wave.size() == 64) as u64,
            State::WaveSize => wave.size() as u64,
            State::VgprSize => wave.vgpr_count() as u64,
            State::WaveId => wave.id as u64,
            State::LdsSize => {
                // In an observed run, only the watch has access to LDS.
                let watched = self.watch.as_ref().map_or(0, |watch| watch.lds.len());
                self.context.lds.len().max(watched) as u64
            }
            State::ScratchBase | State::TrapBase => 0,
            State::SharedBase => SHARED_BASE,
            State::PrivateBase => PRIVATE_BASE,
        }) as u128
    }

    fn state_destination(&mut self, state: State) -> u128 {
        if state == State::Exec
            && let Some(mask) = self.masks.get(&MaskTarget::Exec)
        {
            return *mask as u128;
        }
        let access_set = self.access_set.take();
        let value = self.state(state, None);
        self.access_set = access_set;
        value
    }

    fn set_state(&mut self, state: State, value: u128) -> Result<(), Stop> {
        self.note_state(true, state);
        let wave = &mut *self.wave;
        match state {
            State::Exec => match self.masks.get_mut(&MaskTarget::Exec) {
                Some(mask) => *mask = value as u64,
                None => wave.set_exec(value as u64),
            },
            State::ExecLo => wave.set_sgpr(EXEC_LO as u32, value as u32),
            State::ExecHi => wave.set_sgpr(EXEC_LO as u32 + 1, value as u32),
            State::Vcc => {
                wave.sgprs[VCC_LO] = value as u32;
                if wave.size() == 64 {
                    wave.sgprs[VCC_LO + 1] = (value >> 32) as u32;
                }
            }
            State::VccLo => wave.sgprs[VCC_LO] = value as u32,
            State::VccHi => wave.sgprs[VCC_LO + 1] = value as u32,
            State::Scc => wave.scc = value as u32 & 1,
            State::M0 => wave.sgprs[M0] = value as u32,
            State::Mode => wave.mode = value as u32,
            State::Pc => self.jump = Some((value as u64).wrapping_sub(wave.code_base)),
            _ => {
                return self
                    .stop(Event::fault(FaultKind::Other, "the pseudocode writes state that is read-only"));
            }
        }
        Ok(())
    }

    fn vgpr(&mut self, lane: u32, reg: u32) -> u32 {
        self.note_vgpr(false, lane, reg);
        self.old_vgpr(lane, reg)
    }

    fn old_vgpr(&mut self, lane: u32, reg: u32) -> u32 {
        self.writes.get(&(lane, reg)).copied().unwrap_or_else(|| self.wave.indexed_vgpr(lane, reg))
    }

    fn set_vgpr(&mut self, lane: u32, reg: u32, value: u32) {
        self.note_vgpr(true, lane, reg);
        // All lanes read before any of them writes.
        if self.sem.shape != Shape::Lane {
            self.wave.set_indexed_vgpr(lane, reg, value);
        } else if self.wave.has_vgpr(reg) {
            self.writes.insert((lane, reg), value);
        }
    }

    fn sgpr(&mut self, reg: u32) -> u32 {
        self.note_sgpr(false, reg);
        self.wave.sgpr(reg)
    }

    fn set_sgpr(&mut self, reg: u32, value: u32) {
        self.note_sgpr(true, reg);
        self.wave.set_sgpr(reg, value);
    }

    fn load(&mut self, space: Space, addr: u64, size: u32, lane: Option<u32>) -> Result<u128, Stop> {
        self.note_memory(space, size, false);
        if let Some(watch) = self.watch.as_deref_mut() {
            let mut bytes = [0; 16];
            let loaded = watch.load(space, in_bytes(space, addr), lane, &mut bytes[..size as usize]);
            return loaded.map(|()| u128::from_le_bytes(bytes)).or_else(|event| self.stop(event));
        }
        let place = self.place(space, addr);
        let result = match place {
            Place::Nowhere => return Ok(0),
            Place::Global(addr) => self.context.memory.load_value(addr, size),
            Place::Lds(at) => self.lds(at, size).map(|slice| {
                let mut bytes = [0; 16];
                bytes[..slice.len()].copy_from_slice(slice);
                u128::from_le_bytes(bytes)
            }),
            Place::Scratch(at) => {
                let Context { scratch, scratch_stride, .. } = &self.context;
                let mut bytes = [0; 16];
                let read = scratch::read(
                    scratch,
                    *scratch_stride,
                    lane.unwrap_or(0),
                    at,
                    &mut bytes[..size as usize],
                );
                let error = MemError { address: at, size_bytes: size, write: false };
                read.map(|()| u128::from_le_bytes(bytes)).ok_or(error)
            }
        };
        match result {
            Ok(value) => Ok(value),
            // LDS reads beyond the allocation return zero, as on hardware.
            Err(_) if matches!(place, Place::Lds(_)) => Ok(0),
            Err(e) => self.memory_fault(place, e, lane),
        }
    }

    fn store(
        &mut self,
        space: Space,
        addr: u64,
        size: u32,
        value: u128,
        lane: Option<u32>,
    ) -> Result<(), Stop> {
        self.note_memory(space, size, true);
        let place = self.place(space, addr);
        if let Place::Global(address) = place
            && self.binding.atomic
            && !address.is_multiple_of(size as u64)
        {
            return self.stop(Event::misaligned(MemError { address, size_bytes: size, write: true }, lane));
        }
        if let Some(watch) = self.watch.as_deref_mut() {
            let bytes = &value.to_le_bytes()[..size as usize];
            let stored = watch.store(space, in_bytes(space, addr), lane, bytes);
            return stored.or_else(|event| self.stop(event));
        }
        let result = match place {
            Place::Nowhere => return Ok(()),
            Place::Global(addr) => {
                let stored = self.context.memory.store_value(addr, size, value);
                if stored.is_ok() && space == Space::Word {
                    self.context.memory.touch(addr, 1);
                }
                stored
            }
            Place::Lds(at) => self.lds(at, size).map(|slice| {
                let len = slice.len();
                slice.copy_from_slice(&value.to_le_bytes()[..len]);
            }),
            Place::Scratch(at) => {
                let Context { scratch, scratch_stride, .. } = &mut self.context;
                let bytes = &value.to_le_bytes()[..size as usize];
                let written = scratch::write(scratch, *scratch_stride, lane.unwrap_or(0), at, bytes);
                written.ok_or(MemError { address: at, size_bytes: size, write: false })
            }
        };
        match result {
            Ok(()) => Ok(()),
            Err(_) if matches!(place, Place::Lds(_)) => Ok(()),
            Err(mut e) => {
                e.write = true;
                self.memory_fault(place, e, lane)
            }
        }
    }

    fn control(&mut self, builtin: Control, args: &[u128]) -> Result<u128, Stop> {
        if let Some(watch) = self.watch.as_deref_mut() {
            watch.logs.calls.push((builtin, args.first().map_or(0, |a| *a as u32)));
        }
        let instructions = self.context.instructions;
        match machine_ops::control(self.arch, self.wave, self.context.workgroup, instructions, builtin, args)
        {
            Ok(value) => Ok(value),
            Err(event) => self.stop(event),
        }
    }

    fn env(&self) -> FloatEnv {
        self.env
    }

    fn clamp(&self) -> bool {
        self.binding.get(self.inst, self.binding.mods.clamp) != 0
    }
}

/// Converts addresses of machines that count words to bytes.
fn in_bytes(space: Space, addr: u64) -> u64 {
    if space == Space::Word { memory::word_address(addr) } else { addr }
}
