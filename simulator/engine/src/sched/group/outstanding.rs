//! Outstanding memory operations of a workgroup, with delayed memory.

use super::{RunningGroup, wave_scratch};
use crate::delayed::{self, Outstanding, Queue};
use crate::float_control::DefaultFloatControl;
use crate::observe::Observer;
use wavesim_machine::exec::watch::Logs;
use wavesim_machine::fault::Fault;

impl<'a> RunningGroup<'a> {
    /// As [`RunningGroup::advance`], with delayed memory.
    pub(super) fn advance_delayed<O: Observer + ?Sized>(
        &mut self,
        at: usize,
        instructions: u64,
        observer: Option<&mut O>,
    ) -> Result<(), Box<Fault>> {
        let Some(group) = self.split_delayed() else { return Ok(()) };
        match delayed::run(group, at, instructions, observer) {
            Ok(()) => Ok(()),
            Err(delayed::Stop::Event(event)) => self.apply_result(at, Err(event)),
            Err(delayed::Stop::Operation(failed)) => Err(self.fault(failed.wave, failed.pc, failed.event)),
        }
    }

    /// Returns what the run of a wave with delayed memory needs; `None` with immediate memory.
    fn split_delayed(&mut self) -> Option<delayed::Group<'_>> {
        let delayed::State { queues, shadow } = self.delayed.as_mut()?;
        Some(delayed::Group {
            program: self.dispatch.program,
            model: self.dispatch.delayed?,
            memory: self.memory,
            slots: &mut self.slots,
            queues,
            shadow,
            shared: &mut self.shared,
            lds: &mut self.lds,
            scratch: &mut self.scratch,
            wave_scratch: wave_scratch(self.dispatch),
            scratch_stride: self.dispatch.shape.scratch_bytes,
            cancel: self.dispatch.cancel,
            executed: &mut self.executed,
        })
    }

    /// Returns the outstanding operations of a wave, oldest first; none with immediate memory.
    pub fn outstanding(&self, at: usize) -> impl Iterator<Item = Outstanding> {
        let queue = self.delayed.as_ref().and_then(|state| state.queues.get(at));
        queue.into_iter().flat_map(Queue::outstanding)
    }

    /// Performs a wave's outstanding operation, given by its position among [`RunningGroup::outstanding`], and those
    /// before it that must come first. Nothing happens if it has been performed.
    ///
    /// # Errors
    /// The operation faults.
    pub fn perform<O: Observer + ?Sized>(
        &mut self,
        at: usize,
        operation: usize,
        observer: Option<&mut O>,
    ) -> Result<(), Box<Fault>> {
        self.with_queue(at, observer, |queue, machine, shadow, wave, observer| {
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
        at: usize,
        operation: usize,
        observer: Option<&mut O>,
    ) -> Result<(), Box<Fault>> {
        self.with_queue(at, observer, |queue, machine, shadow, wave, observer| {
            queue.complete(operation, machine, shadow, wave, observer)?;
            queue.retire();
            Ok(())
        })
    }

    fn with_queue<O: Observer + ?Sized>(
        &mut self,
        at: usize,
        mut observer: Option<&mut O>,
        f: impl delayed::OnQueue<O>,
    ) -> Result<(), Box<Fault>> {
        let _float_control = DefaultFloatControl::set();
        let Some(mut group) = self.split_delayed() else { return Ok(()) };
        let mut logs = Logs::default();
        let result = delayed::with_queue(&mut group, at, &mut logs, &mut observer, f);
        result.map_err(|failed| self.fault(failed.wave, failed.pc, failed.event))
    }
}
