//! The reference executor: one instruction on one wave through the evaluator, operands read lane by lane straight from the
//! instruction's fields. Slow, obvious, and independent of the interpreter's staging and handlers.

mod touched;

pub use touched::Touched;

use crate::interp;
use isa_spec::arith::FloatEnv;
use isa_spec::eval::{self, Machine, Stop};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Role, Semantics, Shape, Space, State, Ty, Uses};
use isa_spec::source::Span;
use isa_spec::tables::ArchTable;
use std::collections::{BTreeMap, BTreeSet};
use wavesim_isa::arch::Arch;
use wavesim_isa::dpp;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Code, Fmt, Half, Operand, Plan};
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::hwreg;
use wavesim_machine::exec::lower;
use wavesim_machine::exec::machine_ops::{self, Event};
use wavesim_machine::exec::op::{Part, Sdwa};
use wavesim_machine::exec::output;
use wavesim_machine::fault::FaultKind;
use wavesim_machine::memory::{self, MemError, Memory, PRIVATE_BASE, Place, SHARED_BASE};
use wavesim_machine::state::wave::{EXEC_LO, M0, NULL, VCC_LO};
use wavesim_machine::state::{Wave, Workgroup};

/// Executes `inst` with `sem` (its first half's meaning) and, for VOPD, `sem_y`. The wave's PC moves on, or jumps.
pub fn step(
    arch: Arch,
    inst: &Inst,
    sem: &Semantics,
    sem_y: Option<&Semantics>,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Result<(), Event> {
    run(arch, inst, sem, sem_y, wave, context, None)
}

/// As [`step`], with what the bodies touched.
pub fn step_observed(
    arch: Arch,
    inst: &Inst,
    sem: &Semantics,
    sem_y: Option<&Semantics>,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> (Result<(), Event>, Touched) {
    let mut touched = Touched::default();
    let result = run(arch, inst, sem, sem_y, wave, context, Some(&mut touched));
    (result, touched)
}

fn run(
    arch: Arch,
    inst: &Inst,
    sem: &Semantics,
    sem_y: Option<&Semantics>,
    wave: &mut Wave,
    context: &mut Context<'_>,
    mut touched: Option<&mut Touched>,
) -> Result<(), Event> {
    let pc = wave.pc;
    let mut writes = BTreeMap::new();
    let mut event = Ok(());
    let mut jumped = None;
    for (at, sem) in [Some(sem), sem_y].into_iter().flatten().enumerate() {
        let mut machine = RefMachine {
            arch,
            table: arch.table(),
            inst,
            plan: operand::plan(arch, if at == 0 { inst.entry } else { inst.entry_y }),
            second: at == 1,
            exec: wave.exec(),
            env: FloatEnv::from_mode(wave.mode),
            sem,
            wave: &mut *wave,
            context: &mut *context,
            writes: BTreeMap::new(),
            masks: BTreeMap::new(),
            disabled: 0,
            jump: None,
            event: None,
            vcc_written: false,
            result_written: false,
            states_written: BTreeSet::new(),
            touched: touched.as_deref_mut(),
        };
        event = machine.run();
        jumped = machine.jump;
        // Both halves read before either writes.
        writes.append(&mut machine.writes);
        if event.is_err() {
            break;
        }
    }
    for ((lane, reg), value) in writes {
        wave.set_vgpr(lane, reg, value);
    }
    wave.pc = jumped.unwrap_or(pc + inst.size as u64);
    event
}

/// What the body of an instruction sees of an operand in a lane, with DPP, halves and modifiers applied; `None` if the instruction
/// has no such operand. Of its body, only the shape and the encoding fields that it names count. `second`: of VOPD's second half.
pub fn operand(
    arch: Arch,
    inst: &Inst,
    (shape, fields): (Shape, &[&'static str]),
    second: bool,
    wave: &Wave,
    role: Role,
    lane: u32,
) -> Option<u128> {
    let uses = Uses { fields: fields.iter().copied().collect(), ..Uses::default() };
    let sem = Semantics {
        names: Vec::new(),
        shape,
        locals: Vec::new(),
        body: Vec::new(),
        uses,
        text: String::new(),
        span: Span::default(),
    };
    let (memory, mut workgroup) = (Memory::empty(), Workgroup::default());
    let mut context = Context {
        memory: &memory,
        lds: &mut [],
        scratch: &mut [],
        scratch_stride: 0,
        workgroup: &mut workgroup,
        instructions: 0,
        cancel: None,
    };
    let mut wave = wave.clone();
    let mut machine = RefMachine {
        arch,
        table: arch.table(),
        inst,
        plan: operand::plan(arch, if second { inst.entry_y } else { inst.entry }),
        second,
        exec: wave.exec(),
        env: FloatEnv::from_mode(wave.mode),
        sem: &sem,
        wave: &mut wave,
        context: &mut context,
        writes: BTreeMap::new(),
        masks: BTreeMap::new(),
        disabled: 0,
        jump: None,
        event: None,
        vcc_written: false,
        result_written: false,
        states_written: BTreeSet::new(),
        touched: None,
    };
    let there = role == Role::Vcc || machine.operand_of(role).is_some();
    there.then(|| Machine::operand(&mut machine, role, Some(lane)))
}

struct RefMachine<'a, 'c> {
    arch: Arch,
    table: &'static ArchTable,
    inst: &'a Inst,
    plan: &'static Plan,
    /// Second half of VOPD.
    second: bool,
    /// EXEC when the instruction started.
    exec: u64,
    env: FloatEnv,
    sem: &'a Semantics,
    wave: &'a mut Wave,
    context: &'a mut Context<'c>,
    /// VGPR writes of lane-shaped bodies, applied at the end: sources are read before any result is written.
    writes: BTreeMap<(u32, u32), u32>,
    /// Lane masks being built.
    masks: BTreeMap<MaskTarget, u64>,
    /// Lanes that DPP switched off.
    disabled: u64,
    jump: Option<u64>,
    event: Option<Event>,
    /// A body that runs once has assigned its mask operand.
    vcc_written: bool,
    /// The body has assigned D0, in this lane.
    result_written: bool,
    states_written: BTreeSet<State>,
    touched: Option<&'a mut Touched>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MaskTarget {
    D0,
    Vcc,
    Exec,
}

impl RefMachine<'_, '_> {
    fn run(&mut self) -> Result<(), Event> {
        match self.sem.shape {
            Shape::Lane => {
                let uses = &self.sem.uses;
                if uses.writes.contains(&Role::D0)
                    && let Some(o) = self.operand_of(Role::D0).filter(|o| o.fmt == Fmt::Mask)
                {
                    // A mask that is read too keeps the bits of lanes that are switched off.
                    if o.input {
                        self.note_mask(false, Role::D0);
                    }
                    let old = if o.input { self.read_mask(Role::D0) & !self.exec } else { 0 };
                    self.masks.insert(MaskTarget::D0, old);
                }
                if uses.writes.contains(&Role::Vcc) {
                    self.masks.insert(MaskTarget::Vcc, 0);
                }
                if uses.state_writes.contains(&State::Exec) {
                    self.masks.insert(MaskTarget::Exec, 0);
                }
                self.find_disabled();
                for lane in 0..self.wave.size {
                    if self.exec >> lane & 1 == 0 || self.disabled >> lane & 1 == 1 {
                        continue;
                    }
                    // A lane may take long.
                    if self.context.is_cancelled() {
                        return Err(Event::fault(FaultKind::Interrupted, "stopped within an instruction"));
                    }
                    self.result_written = false;
                    self.finish(Some(lane))?;
                }
                for (target, value) in std::mem::take(&mut self.masks) {
                    match target {
                        MaskTarget::Exec => {
                            self.note_state(true, State::Exec);
                            self.wave.set_exec(value);
                        }
                        MaskTarget::D0 => self.write_mask(Role::D0, value),
                        MaskTarget::Vcc => self.write_mask(Role::Vcc, value),
                    }
                }
                Ok(())
            }
            Shape::Wave if self.plan.has_dpp() => {
                Err(interp::no_dpp(Some(self.inst.instruction(self.table).name)))
            }
            Shape::Wave | Shape::Scalar => self.finish(None),
        }
    }

    fn finish(&mut self, lane: Option<u32>) -> Result<(), Event> {
        let sem = self.sem;
        match eval::eval(sem, self, lane) {
            Ok(()) | Err(Stop::Return) => Ok(()),
            Err(Stop::Machine(_)) => Err(self.event.take().unwrap_or(Event::EndPgm)),
            Err(Stop::TooLong) => {
                Err(Event::fault(FaultKind::Other, "the instruction's pseudocode does not come to an end"))
            }
        }
    }

    fn stop<T>(&mut self, event: Event) -> Result<T, Stop> {
        self.event = Some(event);
        Err(Stop::Machine(0))
    }

    fn operand_of(&self, role: Role) -> Option<Operand> {
        let list = if self.second { &self.plan.y } else { &self.plan.operands };
        let find = |list: &[Operand]| list.iter().find(|o| o.role == role).copied();
        find(list)
    }

    fn field_value(&self, operand: &Operand) -> Option<u32> {
        self.plan.value(self.inst, operand)
    }

    /// SGPR holding a mask operand.
    fn mask_register(&self, role: Role, output: bool) -> u32 {
        let list = &self.plan.operands;
        let operand = list.iter().find(|o| o.role == role && if output { o.output } else { o.input });
        match operand.and_then(|o| Some(operand::mask_register(o, self.field_value(o)?))) {
            Some(code) => code as u32,
            None => VCC_LO as u32,
        }
    }

    fn write_mask(&mut self, role: Role, value: u64) {
        self.note_mask(true, role);
        self.vcc_written |= role == Role::Vcc;
        let reg = self.mask_register(role, true);
        self.wave.set_sgprs(reg, self.wave.size / 32, value as u128);
    }

    fn read_mask(&self, role: Role) -> u64 {
        let reg = self.mask_register(role, false);
        let low = self.wave.sgpr(reg) as u64;
        if self.wave.size == 64 && reg as usize != NULL {
            low | (self.wave.sgpr(reg + 1) as u64) << 32
        } else {
            low
        }
    }

    /// What SDWA reads and writes.
    fn parts(&self) -> Option<Sdwa> {
        lower::sdwa(self.plan, self.inst, &self.plan.operands)
    }

    fn names(&self, field: &str) -> bool {
        self.sem.uses.fields.contains(field)
    }

    /// Dword `index` of an operand in a lane, before modifiers.
    fn dword(&self, operand: &Operand, lane: u32, index: u32) -> u32 {
        let Some(value) = self.field_value(operand) else { return 0 };
        match operand::code(self.arch, operand, value) {
            Code::Vgpr(reg) => {
                let reg = self.plan.register(operand, reg) as u32 + index;
                self.wave.vgpr(lane, reg)
            }
            Code::Fixed(reg) => self.wave.vgpr(lane, reg as u32 + index),
            // More words of null are null, not what follows it.
            Code::Sgpr(code) if code as usize == NULL => 0,
            Code::Sgpr(code) => self.wave.sgpr(code as u32 + index),
            Code::Scc => {
                if index == 0 {
                    self.wave.scc
                } else {
                    0
                }
            }
            Code::SharedBase => [0, (SHARED_BASE >> 32) as u32][index.min(1) as usize],
            Code::PrivateBase => [0, (PRIVATE_BASE >> 32) as u32][index.min(1) as usize],
            Code::SharedLimit | Code::PrivateLimit => {
                if index == 0 {
                    u32::MAX
                } else {
                    0
                }
            }
            code @ (Code::Int(_) | Code::Float(_) | Code::Literal) => {
                let bits = self.plan.constant(self.inst, code, operand);
                // A matrix repeats its constant in every register.
                if operand.size_bits > 64 {
                    let low = bits as u32;
                    return match operand.fmt {
                        Fmt::Packed(_) => (low & 0xffff) | low << 16,
                        _ => low,
                    };
                }
                if index < 4 { (bits >> (32 * index)) as u32 } else { 0 }
            }
            Code::Invalid => 0,
        }
    }

    /// The lane whose register a source reads: DPP moves the first.
    fn source_lane(&self, operand: &Operand, lane: u32) -> Option<u32> {
        if operand.role != Role::S0 || !self.plan.has_dpp() {
            return Some(lane);
        }
        let m = &self.plan.mods;
        if let Some(first) = m.lane_sel {
            let from = lane & !7 | self.inst.fields[first as usize + (lane & 7) as usize];
            let fetch = self.plan.get(self.inst, m.src0) == dpp::DPP8_FETCH_INACTIVE;
            return (fetch || self.exec >> from & 1 == 1).then_some(from);
        }
        let from = dpp::source(self.arch, self.plan.get(self.inst, m.dpp_ctrl), lane)?;
        let fetch = self.plan.get(self.inst, m.fi) != 0;
        (fetch || self.exec >> from & 1 == 1).then_some(from)
    }

    /// Lanes that write nothing: masked rows and banks, and invalid sources without bound control.
    fn find_disabled(&mut self) {
        let m = &self.plan.mods;
        if m.dpp_ctrl.is_none() {
            return;
        }
        let row_mask = self.plan.get(self.inst, m.row_mask);
        let bank_mask = self.plan.get(self.inst, m.bank_mask);
        let bound = self.plan.get(self.inst, m.bound_ctrl) != 0;
        let s0 = self.operand_of(Role::S0);
        for lane in 0..self.wave.size {
            let row = row_mask >> ((lane / 16) & 3) & 1;
            let bank = bank_mask >> ((lane / 4) & 3) & 1;
            let invalid = !bound && s0.is_some_and(|o| self.source_lane(&o, lane).is_none());
            if row == 0 || bank == 0 || invalid {
                self.disabled |= 1 << lane;
            }
        }
    }

    /// An operand's value in a lane, modifiers applied.
    fn value(&self, operand: &Operand, lane: u32) -> u128 {
        let size = operand.size_bits as u32;
        let Some(from) = self.source_lane(operand, lane) else {
            return self.modify(operand, 0);
        };
        let mut bits = 0u128;
        for index in 0..size.div_ceil(32).clamp(1, 4) {
            bits |= (self.dword(operand, from, index) as u128) << (32 * index);
        }
        if let Some(sdwa) = self.parts()
            && matches!(operand.role, Role::S0 | Role::S1)
            && let Some(part) = sdwa.sources.get(operand.source as usize)
        {
            bits = part.read(bits as u32, sdwa.signed[operand.source as usize]) as u128;
        }
        if operand.size_bits == 16
            && self.sem.shape != Shape::Scalar
            && !self.names("OPSEL")
            && let Some(value) = self.field_value(operand)
        {
            let reg = match operand::code(self.arch, operand, value) {
                Code::Vgpr(reg) => reg,
                _ => 0,
            };
            bits >>= self.plan.half_shift(self.inst, operand, reg, false);
            bits &= 0xffff;
        }
        self.modify(operand, bits)
    }

    fn modify(&self, operand: &Operand, bits: u128) -> u128 {
        let m = &self.plan.mods;
        let i = operand.source as u32;
        let numbered = matches!(operand.role, Role::S0 | Role::S1 | Role::S2 | Role::S3);
        if !numbered {
            return bits;
        }
        if self.plan.packed {
            return if operand.size_bits > 32 { bits } else { self.packed(operand, bits as u32) as u128 };
        }
        // A dot product's halves are negated together; no absolute value is taken of them.
        let dot = operand.replicated;
        let float = matches!(operand.fmt, Fmt::F16 | Fmt::BF16 | Fmt::F32 | Fmt::F64 | Fmt::Bits);
        if !(float || dot) || operand.size_bits > 64 {
            return bits;
        }
        let sign = if dot { 0x8000_8000 } else { 1u128 << (operand.size_bits.min(64) - 1) };
        let bit = |field| self.plan.get(self.inst, field) >> i & 1 == 1;
        let (dpp_abs, dpp_neg) = match i {
            0 => (m.src0_abs, m.src0_neg),
            1 => (m.src1_abs, m.src1_neg),
            _ => (None, None),
        };
        // VOP3 with DPP has the bits twice; the DPP word's are unused there.
        let in_dpp = m.neg.is_none() && m.abs.is_none();
        let abs = bit(m.abs) || in_dpp && self.plan.get(self.inst, dpp_abs) == 1;
        let neg = bit(m.neg) || in_dpp && self.plan.get(self.inst, dpp_neg) == 1;
        let mut out = bits;
        if abs && !dot && !self.names("ABS") {
            out &= !sign;
        }
        if neg && !self.names("NEG") {
            out ^= sign;
        }
        out
    }

    /// VOP3P: halves by op_sel and op_sel_hi, signs by neg and neg_hi.
    fn packed(&self, operand: &Operand, bits: u32) -> u32 {
        let i = operand.source as u32;
        let field = |name| self.plan.named_field(self.inst, self.table, name) >> i & 1 == 1;
        let Fmt::Packed(half) = operand.fmt else {
            let float = matches!(operand.fmt, Fmt::F32);
            let flip = float && field("NEG") && !self.names("NEG");
            return if flip { bits ^ 0x8000_0000 } else { bits };
        };
        let (mut lo, mut hi) = (bits & 0xffff, bits >> 16);
        if !self.names("OPSEL") {
            let select = |high: bool| if high { bits >> 16 } else { bits & 0xffff };
            lo = select(field("OPSEL"));
            hi = select(field("OPSEL_HI"));
        }
        if half != Half::Int && !self.names("NEG") {
            lo ^= (field("NEG") as u32) << 15;
            hi ^= (field("NEG_HI") as u32) << 15;
        }
        hi << 16 | lo
    }

    /// Output modifiers of a float result.
    fn output(&self, operand: &Operand, value: u128) -> u128 {
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
        let omod = self.plan.get(self.inst, self.plan.mods.omod);
        let mut out = output::omod(value, ty, omod, self.wave.mode, self.arch);
        if self.clamp() && !self.names("CLAMP") {
            out = self.clamp_float(out, ty);
        }
        out
    }

    fn clamp_float(&self, value: u128, ty: Ty) -> u128 {
        output::clamp(value, ty, self.wave.mode, self.arch)
    }

    fn memory_fault<T>(&mut self, place: Place, e: MemError, lane: Option<u32>) -> Result<T, Stop> {
        let event = match place {
            Place::Scratch(_) => Event::scratch_overflow(e, self.context.scratch_stride, lane),
            _ => Event::out_of_bounds(self.context.memory, e, lane),
        };
        self.stop(event)
    }

    /// Where an address goes; machines that count words have bytes in memory.
    fn place(&self, space: Space, addr: u64) -> Place {
        let addr = if space == Space::Word { memory::word_address(addr) } else { addr };
        Place::of(space, addr)
    }

    fn bytes(&mut self, place: Place, size: u32, lane: Option<u32>) -> Result<&mut [u8], MemError> {
        let (slice, at, address): (&mut [u8], u64, u64) = match place {
            Place::Lds(at) => (&mut *self.context.lds, at, at),
            Place::Scratch(at) => {
                let lane = lane.unwrap_or(0);
                let stride = self.context.scratch_stride as u64;
                let error = MemError { address: at, size_bytes: size, write: false };
                if at.checked_add(size as u64).is_none_or(|end| end > stride) {
                    return Err(error);
                }
                (&mut *self.context.scratch, lane as u64 * stride + at, at)
            }
            _ => return Err(MemError { address: 0, size_bytes: size, write: false }),
        };
        let error = MemError { address, size_bytes: size, write: false };
        let at = usize::try_from(at).map_err(|_| error)?;
        slice.get_mut(at..at.saturating_add(size as usize)).ok_or(error)
    }
}

impl Machine for RefMachine<'_, '_> {
    fn reading(&mut self, role: Role, lane: Option<u32>, bits: u128) {
        if self.touched.is_some() {
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
                    let reg = self.plan.register(&operand, reg) as u32 + index;
                    self.writes.get(&(lane_number, reg)).copied().unwrap_or(self.wave.vgpr(lane_number, reg))
                }
                Code::Sgpr(code) if code as usize == NULL => 0,
                Code::Sgpr(code) => self.wave.sgpr(code as u32 + index),
                _ => 0,
            };
            bits |= (dword as u128) << (32 * index);
        }
        if size == 16
            && !self.plan.packed
            && let Code::Vgpr(reg) = operand::code(self.arch, &operand, value)
        {
            bits = bits >> self.plan.half_shift(self.inst, &operand, reg, true) & 0xffff;
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
        if role == Role::D0 && !self.plan.returns(self.inst) {
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
                let base = self.plan.register(&operand, reg) as u32;
                if let Some(sdwa) = self.parts().filter(|s| s.result != Part::WHOLE && width <= 32)
                    && role == Role::D0
                {
                    let new = sdwa.result.write(value as u32, self.wave.vgpr(lane, base), sdwa.rest);
                    self.writes.insert((lane, base), new);
                    return;
                }
                if size == 16 && width <= 16 {
                    let shift = self.plan.half_shift(self.inst, &operand, reg, true);
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
            // What is not a register has no number.
            _ => NULL as u32,
        }
    }

    fn operand_lane(&mut self, role: Role, lane: u32, index: u32) -> u32 {
        self.note_lane(role, lane, index);
        let Some(operand) = self.operand_of(role) else { return 0 };
        if index == 0 && operand.size_bits <= 32 && self.sem.shape == Shape::Lane {
            return self.value(&operand, lane) as u32;
        }
        if lane >= self.wave.size {
            return 0;
        }
        self.dword(&operand, lane, index)
    }

    fn field(&mut self, name: &str) -> u32 {
        self.plan.named_field(self.inst, self.table, name)
    }

    fn state(&mut self, state: State, lane: Option<u32>) -> u128 {
        self.note_state(false, state);
        let wave = &*self.wave;
        (match state {
            // Lanes see what the instruction started with; what runs once sees its own writes.
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
            State::Wave32 => (wave.size == 32) as u64,
            State::Wave64 => (wave.size == 64) as u64,
            State::WaveSize => wave.size as u64,
            State::VgprSize => wave.vgpr_count() as u64,
            State::WaveId => wave.id as u64,
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
        let touched = self.touched.take();
        let value = self.state(state, None);
        self.touched = touched;
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
                if wave.size == 64 {
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
        // Lanes read before any of them writes.
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
        let place = self.place(space, addr);
        let result = match place {
            Place::Nowhere => return Ok(0),
            Place::Global(addr) => self.context.memory.load_value(addr, size),
            _ => self.bytes(place, size, lane).map(|slice| {
                let mut bytes = [0; 16];
                bytes[..slice.len()].copy_from_slice(slice);
                u128::from_le_bytes(bytes)
            }),
        };
        match result {
            Ok(value) => Ok(value),
            // LDS reads beyond the allocation give zero, as the hardware has it.
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
        let result = match place {
            Place::Nowhere => return Ok(()),
            Place::Global(address) if self.plan.atomic && !address.is_multiple_of(size as u64) => {
                let e = MemError { address, size_bytes: size, write: true };
                return self.stop(Event::misaligned(e, lane));
            }
            Place::Global(addr) => {
                let stored = self.context.memory.store_value(addr, size, value);
                if stored.is_ok() && space == Space::Word {
                    self.context.memory.touch(addr, 1);
                }
                stored
            }
            _ => self.bytes(place, size, lane).map(|slice| {
                let len = slice.len();
                slice.copy_from_slice(&value.to_le_bytes()[..len]);
            }),
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
        self.plan.get(self.inst, self.plan.mods.clamp) != 0
    }
}
