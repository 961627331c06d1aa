//! Outstanding memory operations of a workgroup, with delayed memory.

use super::super::recorded::Act;
use super::{RunningGroup, wave_scratch};
use crate::delayed::{self, Choices, Outstanding, Queue};
use crate::float_control::DefaultFloatControl;
use crate::observe::Observer;
use wavesim_machine::exec::issue;
use wavesim_machine::exec::watch::Logs;
use wavesim_machine::fault::Fault;

impl<'a> RunningGroup<'a> {
    /// As [`RunningGroup::advance`], with delayed memory.
    pub(super) fn advance_delayed<O: Observer + ?Sized>(
        &mut self,
        wave_index: usize,
        instructions: u64,
        observer: Option<&mut O>,
    ) -> Result<(), Box<Fault>> {
        let Some(group) = self.split_delayed() else { return Ok(()) };
        match delayed::run(group, wave_index, instructions, observer) {
            Ok(()) => Ok(()),
            Err(delayed::Stop::Event(event)) => self.apply_result(wave_index, Err(event)),
            Err(delayed::Stop::Operation(failed)) => Err(self.fault(failed.wave, failed.pc, failed.event)),
        }
    }

    /// Returns what the run of a wave with delayed memory needs; `None` with immediate memory.
    fn split_delayed(&mut self) -> Option<delayed::DelayedWorkgroup<'_>> {
        let delayed::State { queues, shadow, choices, placements } = self.delayed.as_mut()?;
        Some(delayed::DelayedWorkgroup {
            program: self.dispatch.program,
            model: self.dispatch.delayed?,
            memory: self.memory,
            slots: &mut self.slots,
            queues,
            shadow,
            shared: &mut self.shared,
            index: self.index,
            choices: choices.as_ref(),
            caches: &self.dispatch.caches,
            placements,
            lds: &mut self.lds,
            scratch: &mut self.scratch,
            wave_scratch: wave_scratch(self.dispatch),
            scratch_stride: self.dispatch.shape.scratch_bytes,
            cancel: self.dispatch.cancel,
            executed: &mut self.executed,
        })
    }

    /// Returns the outstanding operations of a wave, oldest first; none with immediate memory.
    pub fn outstanding(&self, wave_index: usize) -> impl Iterator<Item = Outstanding> {
        let queue = self.delayed.as_ref().and_then(|state| state.queues.get(wave_index));
        queue.into_iter().flat_map(Queue::outstanding)
    }

    /// Sets which operations are delayed, with [`Delays::Demanded`](delayed::Delays::Demanded).
    pub fn set_choices(&mut self, choices: Option<Choices>) {
        if let Some(state) = &mut self.delayed {
            state.choices = choices;
        }
    }

    /// The index of the next instruction of a wave that runs, and its outstanding operations.
    fn next(&self, wave_index: usize) -> Option<(usize, &Queue, &delayed::DelayedMemory)> {
        let queue = self.delayed.as_ref()?.queues.get(wave_index)?;
        let index = self.dispatch.program.inst_at(self.slots[wave_index].wave.pc)?;
        Some((index, queue, self.dispatch.delayed?))
    }

    /// Returns whether the next instruction of a wave waits for an operation that has not returned.
    pub fn waits_for_operation(&self, wave_index: usize) -> bool {
        self.next(wave_index).is_some_and(|(index, queue, model)| {
            queue.blocks(model, self.dispatch.program, index, &self.slots[wave_index].wave)
        })
    }

    /// Removes the counters from operations, oldest first, as the next instruction of a wave does if it waits.
    pub fn apply_wait<P: issue::Outstanding>(&self, wave_index: usize, operations: &mut [P]) {
        if let Some((index, _, model)) = self.next(wave_index) {
            model.apply_wait(self.dispatch.program, index, &self.slots[wave_index].wave, operations);
        }
    }

    /// Returns the numbers of the outstanding operations that are going to write registers that the next instruction of
    /// a wave accesses. With [`Delays::Demanded`](delayed::Delays::Demanded) only.
    pub fn touched(&self, wave_index: usize) -> Vec<u64> {
        let Some((index, queue, model)) = self.next(wave_index) else { return Vec::new() };
        queue.touched(model, index, &self.slots[wave_index].wave).map(|p| p.number).collect()
    }

    /// Lets an outstanding operation of a wave, given by its number, access memory or return. Nothing happens if it has
    /// done so.
    ///
    /// # Errors
    /// The operation faults.
    pub fn act<O: Observer + ?Sized>(
        &mut self,
        wave_index: usize,
        number: u64,
        act: Act,
        observer: &mut O,
    ) -> Result<(), Box<Fault>> {
        let Some(position) = self.position(wave_index, number) else { return Ok(()) };
        self.with_queue(wave_index, Some(observer), |queue, machine, shadow, wave, observer| {
            match act {
                Act::Access => queue.perform(position, machine, shadow, wave, observer)?,
                Act::Return => queue.complete(position, machine, shadow, wave, observer)?,
            }
            queue.return_followers(wave);
            Ok(())
        })
    }

    /// Returns the place of a wave's operation among [`RunningGroup::outstanding`], given its number.
    pub fn position(&self, wave_index: usize, number: u64) -> Option<usize> {
        self.delayed.as_ref()?.queues.get(wave_index)?.position(number)
    }

    /// Performs a wave's outstanding operation, given by its position among [`RunningGroup::outstanding`], and those
    /// before it that must come first. Nothing happens if it has been performed.
    ///
    /// # Errors
    /// The operation faults.
    pub fn perform<O: Observer + ?Sized>(
        &mut self,
        wave_index: usize,
        operation: usize,
        observer: Option<&mut O>,
    ) -> Result<(), Box<Fault>> {
        self.with_queue(wave_index, observer, |queue, machine, shadow, wave, observer| {
            queue.perform(operation, machine, shadow, wave, observer)
        })
    }

    /// As [`RunningGroup::perform`], and writes the results to the wave's registers, after those of the operations that
    /// return before it. Complete operations are then no longer outstanding.
    ///
    /// # Errors
    /// An operation faults.
    pub fn complete<O: Observer + ?Sized>(
        &mut self,
        wave_index: usize,
        operation: usize,
        observer: Option<&mut O>,
    ) -> Result<(), Box<Fault>> {
        self.with_queue(wave_index, observer, |queue, machine, shadow, wave, observer| {
            queue.complete(operation, machine, shadow, wave, observer)?;
            queue.retire();
            Ok(())
        })
    }

    fn with_queue<O: Observer + ?Sized>(
        &mut self,
        wave_index: usize,
        mut observer: Option<&mut O>,
        f: impl delayed::OnQueue<O>,
    ) -> Result<(), Box<Fault>> {
        let _float_control = DefaultFloatControl::set();
        let Some(mut group) = self.split_delayed() else { return Ok(()) };
        let mut logs = Logs::default();
        let result = delayed::with_queue(&mut group, wave_index, &mut logs, &mut observer, f);
        result.map_err(|failed| self.fault(failed.wave, failed.pc, failed.event))
    }
}
