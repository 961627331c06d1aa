//! Waves that poll: they wait until others change what they load.

use super::{Event, Machine, Polling, Thread, WINDOW};
use crate::footprint::wave_hash;
use wavesim_engine::sched::group::Status;

impl Machine<'_> {
    /// Finds out whether the wave polls, and wakes those that poll what it has stored.
    pub(super) fn note_polling(
        &mut self,
        group: u64,
        wave: usize,
        private: bool,
        drops: bool,
        event: &mut Event,
    ) {
        self.wake(event.thread, drops, event);
        let own = &mut self.polling[event.thread as usize];
        if event.changed || private || own.states.len() >= WINDOW {
            *own = Polling::default();
        }
        let Some(running) = self.control.group(group) else { return };
        let slot = &running.slots[wave];
        let pc = slot.wave.pc;
        let index = self.prepared.program.inst_at(pc);
        if slot.status != Status::Running || !index.is_some_and(|index| self.table.get(index).in_loop) {
            *own = Polling::default();
            return;
        }
        let state = (pc, wave_hash(running, wave, &self.table.written));
        if !own.states.is_empty() {
            own.loads.loads.extend(&event.footprint.loads);
            own.loads.finish();
        }
        if own.states.contains(&state) {
            own.blocked = true;
        } else {
            own.states.push(state);
        }
    }

    /// Wakes the waves, other than the one that stores, that poll what a step has stored, or taken out of caches if
    /// `drops` is set.
    pub(super) fn wake(&mut self, own: Thread, drops: bool, event: &mut Event) {
        if !event.changed && !drops {
            return;
        }
        for (thread, polling) in self.polling.iter_mut().enumerate() {
            if thread as Thread != own
                && !polling.loads.loads.is_empty()
                && polling.loads.reads_from(&event.footprint).is_some()
            {
                if polling.blocked {
                    event.awakened.push(thread as Thread);
                }
                *polling = Polling::default();
            }
        }
    }
}
