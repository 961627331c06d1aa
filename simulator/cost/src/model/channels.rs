//! The channels of memory. Which of them an access goes to follows from its address. Processors that are not simulated
//! access memory at the same time: their workgroups are others, so their addresses are those of the simulated access,
//! moved by as much as it moves from workgroup to workgroup.

use super::cache::{Queue, TICKS};
use super::memory::Share;
use crate::profile::Costs;
use crate::record::line_and_sector;

/// The channels.
pub struct Channels {
    queues: Vec<Queue>,
    /// Ticks of a byte, of each placed access.
    ticks_per_byte: f64,
    /// Lines of a block of addresses in one channel.
    lines: u64,
    folds: [u32; 2],
    /// The numbers of other workgroups that run at the same time, relative to that of the access, which is the first.
    offsets: Vec<f64>,
    /// By how many lines the present access moves from a workgroup to the next one; 0 if that is not known.
    pub step: f64,
}

impl Channels {
    /// Creates the channels of a device, of which `share` is simulated.
    pub fn new(costs: &Costs, share: &Share) -> Channels {
        let m = &costs.device.memory;
        let (line_bytes, _) = line_and_sector(&costs.arch);
        let clock = costs.device.chip.clock.value() * 1e6;
        let channels = m.channels.count().max(1);
        let bytes_per_clock = m.bandwidth.value() * 1e9 * m.efficiency.value() / clock / channels as f64;
        // Each simulated processor stands for so many.
        let all = (1.0 / share.of_device).max(1.0);
        let dies = share.dies.max(1);
        let blocks = (all / dies as f64).ceil().max(1.0) as u64;
        let most = costs.model.sample.neighbours.count().max(1);
        let count = (blocks * dies).min(most);
        let offset = |index: u64| {
            let (block, die) = (index / dies, index % dies);
            (block * share.at_a_time * share.stride + die) as f64
        };
        let offsets: Vec<f64> = (0..count).map(|k| offset(k * (blocks * dies) / count)).collect();
        let weight = all / offsets.len() as f64;
        Channels {
            queues: vec![Queue::default(); channels as usize],
            ticks_per_byte: TICKS as f64 / bytes_per_clock.max(1e-6) * weight,
            lines: (m.interleave.count() / line_bytes).max(1),
            folds: [&m.fold_1, &m.fold_2].map(|fold| fold.count().min(63) as u32),
            offsets,
            step: 0.0,
        }
    }

    fn channel(&self, line: u64) -> usize {
        let block = line / self.lines;
        let folded = self.folds.iter().filter(|fold| **fold > 0).fold(block, |sum, fold| sum ^ block >> fold);
        (folded % self.queues.len() as u64) as usize
    }

    /// Transfers bytes of a line, and those of the processors that are not simulated; returns when the former begins.
    pub fn take(&mut self, line: u64, bytes: u64, now: u64) -> u64 {
        let own = self.channel(line);
        let service = (bytes as f64 * self.ticks_per_byte).round() as u64;
        let start = self.queues[own].take(now, service);
        let (count, channels) = (self.offsets.len(), self.queues.len());
        for index in 1..count {
            let channel = if self.step == 0.0 {
                // Nothing is known: spread evenly. Others that load the same line do so from a cache, so that this stands
                // for other lines, too.
                (own + index * channels / count) % channels
            } else {
                self.channel(line.wrapping_add_signed((self.step * self.offsets[index]).round() as i64))
            };
            self.queues[channel].take(now, service);
        }
        start
    }

    /// Returns the ticks for which a channel was busy, on average.
    pub fn busy(&self) -> u64 {
        self.queues.iter().map(|queue| queue.busy).sum::<u64>() / self.queues.len() as u64
    }

    /// Returns when all channels are free.
    pub fn free(&self) -> u64 {
        self.queues.iter().map(Queue::free).max().unwrap_or(0)
    }
}
