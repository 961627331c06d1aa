//! The blocks of device `malloc`, a part of `mem`: accesses beyond a block or to a freed one, blocks that are freed
//! twice, and those that are never freed.
//!
//! ROCm's device libraries have the allocator as two functions that are not inlined (`ockl/src/dm.cl`). Their calls
//! are observed: arguments in v0 and v1, the return address in s30 and s31, the result in v0 and v1 (LLVM AMDGPUUsage,
//! *Non-Kernel Functions*). The allocator rounds sizes up and spreads the blocks of lanes, so that next to most
//! blocks there are bytes of no block.

use super::kind::Check;
use super::report::{Finding, Report, Site, access_name, describe};
use crate::calls::{Jump, jumps};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wavesim_engine::observe::Step;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::Effects;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::memory::Region;

/// The functions of the allocator, by their symbols.
const ALLOCATE: &str = "__ockl_dm_alloc";
const FREE: &str = "__ockl_dm_dealloc";
/// SGPR of the return address.
const RETURN_ADDRESS: u32 = 30;

/// A block.
#[derive(Debug, Clone)]
struct Block {
    len: u64,
    /// Where it was allocated.
    allocated: Site,
    /// Where it was freed.
    freed: Option<Site>,
}

/// The blocks that kernels have allocated.
#[derive(Debug, Default)]
pub struct Blocks {
    /// By address. Freed blocks remain until their bytes are allocated again.
    blocks: BTreeMap<u64, Block>,
    /// A launch may have allocated unobserved.
    incomplete: bool,
}

impl Blocks {
    /// Records that a launch may have allocated and freed blocks unobserved.
    pub fn lose(&mut self) {
        self.incomplete = true;
        self.blocks.clear();
    }

    /// Returns the last block that begins at or before an address.
    fn before(&self, address: u64) -> Option<(u64, &Block)> {
        self.blocks.range(..=address).next_back().map(|(at, block)| (*at, block))
    }

    /// Returns the block in use that contains a range.
    fn used(&self, address: u64, len: u64) -> Option<u64> {
        let (at, block) = self.before(address)?;
        (block.freed.is_none() && address - at + len <= block.len).then_some(at)
    }

    fn insert(&mut self, address: u64, block: Block) {
        let end = address + block.len.max(1);
        let overlaps: Vec<u64> = self.blocks.range(address..end).map(|(address, _)| *address).collect();
        overlaps.iter().for_each(|address| drop(self.blocks.remove(address)));
        if let Some((before, _)) = self.before(address).filter(|(start, block)| start + block.len > address) {
            self.blocks.remove(&before);
        }
        self.blocks.insert(address, block);
    }
}

/// A call of the allocator.
#[derive(Debug, Clone)]
struct Call {
    frees: bool,
    /// The byte offset after the call.
    after: u64,
    /// The argument of each lane.
    arguments: Vec<(u32, u64)>,
}

/// State of the check.
#[derive(Default)]
pub struct Shadow {
    /// By instruction: whether a call may begin or end there. Empty if the program does not allocate.
    places: Vec<bool>,
    allocate: Option<u64>,
    free: Option<u64>,
    /// By wave: the call in which it is.
    calls: Vec<Option<Call>>,
    blocks: Arc<Mutex<Blocks>>,
    /// The memory in which the blocks are.
    regions: Vec<(u64, u64)>,
    /// Whether the blocks belong to this launch alone, so that nothing can free them later.
    is_alone: bool,
    code_base: u64,
}

/// The calls of a workgroup's waves.
#[derive(Default)]
pub struct HeapGroup(Vec<Option<Call>>);

impl Shadow {
    /// Creates the state for a launch.
    pub fn new(prepared: &Prepared, effects: &[Effects]) -> Shadow {
        let find = |name: &str| prepared.labels.iter().find(|label| label.0 == name).map(|label| label.1);
        let (allocate, free) = (find(ALLOCATE), find(FREE));
        let mut places = Vec::new();
        if allocate.is_some() || free.is_some() {
            let jumps = jumps(effects);
            let program = &prepared.program;
            let begins = |at: usize| [allocate, free].contains(&Some(program.pcs[at]));
            let ends = |at: usize| at > 0 && jumps[at - 1] == Some(Jump::Call);
            places = (0..program.insts.len()).map(|at| begins(at) || ends(at)).collect();
        }
        let code_base = prepared.shape.code_base;
        Shadow { places, allocate, free, is_alone: true, code_base, ..Shadow::default() }
    }

    /// Returns whether the program allocates.
    pub fn is_used(&self) -> bool {
        !self.places.is_empty()
    }

    /// Uses blocks that other launches share.
    pub fn set_blocks(&mut self, blocks: Arc<Mutex<Blocks>>, memory: &[Region]) {
        for at in lock(&blocks).blocks.keys() {
            let region = region_of(memory, *at).map(|r| (r.base, r.len));
            self.regions.extend(region.filter(|region| !self.regions.contains(region)));
        }
        self.blocks = blocks;
        self.is_alone = false;
    }

    /// Starts a workgroup.
    pub fn start(&mut self, waves: usize) {
        self.calls.clear();
        self.calls.resize(waves, None);
    }

    /// Swaps the state with that of another workgroup.
    pub fn swap(&mut self, group: &mut HeapGroup) {
        std::mem::swap(&mut self.calls, &mut group.0);
    }

    /// Returns whether [`Shadow::before`] must see an instruction, given by its index.
    #[inline(always)]
    pub fn observes(&self, index: usize) -> bool {
        self.places.get(index).is_some_and(|place| *place)
    }

    /// Sees an instruction before it runs. Returns the blocks that it has allocated: address and size of each.
    pub fn before(&mut self, step: &Step<'_>, memory: &[Region], report: &mut Report) -> Vec<(u64, u64)> {
        let wave = step.wave;
        let id = wave.id as usize;
        let frees = Some(step.pc) == self.free;
        if frees || Some(step.pc) == self.allocate {
            let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
            let after = pair(wave.sgpr(RETURN_ADDRESS), wave.sgpr(RETURN_ADDRESS + 1));
            let lanes = (0..wave.size()).filter(|lane| wave.exec() >> lane & 1 == 1);
            let arguments: Vec<(u32, u64)> =
                lanes.map(|lane| (lane, pair(wave.vgpr(lane, 0), wave.vgpr(lane, 1)))).collect();
            let after = after.wrapping_sub(self.code_base);
            if frees {
                arguments.iter().for_each(|(lane, address)| self.free(step, after, *lane, *address, report));
            }
            self.calls[id] = Some(Call { frees, after, arguments });
            report.mute(wave.workgroup, wave.id, true);
            return Vec::new();
        }
        let Some(call) = self.calls[id].take_if(|call| call.after == step.pc) else { return Vec::new() };
        report.mute(wave.workgroup, wave.id, false);
        if call.frees {
            return Vec::new();
        }
        let mut blocks = lock(&self.blocks);
        let mut new = Vec::new();
        for (lane, len) in call.arguments {
            let at = u64::from(wave.vgpr(lane, 0)) | u64::from(wave.vgpr(lane, 1)) << 32;
            let Some(region) = region_of(memory, at).filter(|_| at != 0) else { continue };
            if !self.regions.contains(&(region.base, region.len)) {
                self.regions.push((region.base, region.len));
            }
            let site = call_site(step, call.after, lane);
            // A program can have a function of this name that returns less than it was asked for.
            let len = len.min(region.len - (at - region.base));
            blocks.insert(at, Block { len, allocated: site, freed: None });
            new.push((at, len));
        }
        new
    }

    /// Returns whether an address is in memory in which blocks are.
    #[inline(always)]
    pub fn covers(&self, address: u64) -> bool {
        self.regions.iter().any(|(base, len)| address.wrapping_sub(*base) < *len)
    }

    /// Checks that an access is within a block.
    pub fn check(&self, step: &Step<'_>, a: &Access, atomic: bool, prepared: &Prepared, report: &mut Report) {
        if a.place != Place::Global || !self.covers(a.address) || self.calls[step.wave.id as usize].is_some()
        {
            return;
        }
        let blocks = lock(&self.blocks);
        for a in a.each() {
            let len = u64::from(a.size_bytes);
            if blocks.used(a.address, len).is_some() {
                continue;
            }
            // Another launch may have allocated it unobserved, unless it is next to a known block.
            let near = blocks.before(a.address).filter(|(at, block)| {
                !blocks.incomplete || a.address - at < block.len.max(1).next_power_of_two()
            });
            let kind = "wrong block";
            if near.is_none() && blocks.incomplete || !report.is_new(Check::Mem, kind, step.pc, None) {
                continue;
            }
            let what = describe(prepared, a.place, a.address, u32::from(a.size_bytes));
            let message =
                format!("{} of {what} is outside of every block of `malloc`", access_name(&a, atomic));
            let mut finding = Finding::new(Check::Mem, kind, message, Site::new(step, a.lane.map(u32::from)))
                .address(a.address);
            if let Some((at, block)) = near {
                let offset = a.address - at;
                finding = match &block.freed {
                    Some(freed) => finding.other("block freed", freed.clone()),
                    None => finding.other("block allocated", block.allocated.clone()),
                };
                if block.freed.is_some() && offset < block.len {
                    finding = finding.hint(format!("the block of {} bytes has been freed", block.len));
                } else if offset < block.len {
                    finding =
                        finding.hint(format!("the block ends {} bytes into the access", block.len - offset));
                } else {
                    let beyond = offset - block.len;
                    finding = finding.hint(format!(
                        "the block has {} bytes; the access starts {beyond} bytes beyond it",
                        block.len
                    ));
                }
            }
            report.add(finding);
        }
    }

    fn free(&self, step: &Step<'_>, after: u64, lane: u32, address: u64, report: &mut Report) {
        let mut blocks = lock(&self.blocks);
        let site = call_site(step, after, lane);
        if address == 0 {
            return;
        }
        if let Some(block) = blocks.blocks.get_mut(&address)
            && block.freed.is_none()
        {
            block.freed = Some(site);
            return;
        }
        let known = blocks.before(address).filter(|(at, block)| address - at < block.len.max(1));
        if known.is_none() && blocks.incomplete {
            return;
        }
        let kind = "wrong free";
        if !report.is_new(Check::Mem, kind, site.pc, None) {
            return;
        }
        let finding = match known {
            Some((at, block)) if at == address => {
                let before = block.freed.as_ref().unwrap_or(&block.allocated).clone();
                Finding::new(Check::Mem, kind, "the block is freed twice".to_string(), site)
                    .other("freed before", before)
            }
            Some((at, block)) => {
                let message =
                    format!("`free` of an address {} bytes after the start of a block", address - at);
                Finding::new(Check::Mem, kind, message, site)
                    .other("block allocated", block.allocated.clone())
            }
            None => {
                let message = "`free` of an address that `malloc` has not returned".to_string();
                Finding::new(Check::Mem, kind, message, site)
            }
        };
        report.add(finding.address(address));
    }

    /// Notes the blocks that nothing can free any more, at the end of the run.
    pub fn report_leaks(&self, report: &mut Report) {
        if !self.is_alone {
            return;
        }
        let blocks = lock(&self.blocks);
        let mut leaks: BTreeMap<u64, (u64, u64, &Site)> = BTreeMap::new();
        for block in blocks.blocks.values().filter(|block| block.freed.is_none()) {
            let site = &block.allocated;
            let leak = leaks.entry(site.pc).or_insert((0, 0, site));
            (leak.0, leak.1) = (leak.0 + 1, leak.1 + block.len);
        }
        for (count, bytes, site) in leaks.into_values() {
            let what = if count == 1 { "block".to_string() } else { format!("{count} blocks") };
            let message = format!("{what} of `malloc`, {bytes} bytes, never freed");
            let finding = Finding::new(Check::Mem, "leak", message, site.clone()).note();
            report.add(finding.hint("a later launch of a program may free them"));
        }
    }
}

fn lock(blocks: &Mutex<Blocks>) -> MutexGuard<'_, Blocks> {
    blocks.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the call that returns to a byte offset.
fn call_site(step: &Step<'_>, after: u64, lane: u32) -> Site {
    let call = step.program.inst_at(after).and_then(|index| index.checked_sub(1));
    let at = call.map_or(step.pc, |index| step.program.pcs[index]);
    Site { lane: Some(lane), ..Site::at(step, at, step.wave.workgroup, step.wave.id) }
}

fn region_of(regions: &[Region], address: u64) -> Option<&Region> {
    let at = regions.partition_point(|r| r.base <= address).checked_sub(1)?;
    Some(&regions[at]).filter(|r| address - r.base < r.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        Site {
            pc: 0,
            line: 0,
            file: None,
            inlined: Vec::new(),
            text: String::new(),
            workgroup: [0; 3],
            wave: 0,
            lane: None,
        }
    }

    #[test]
    fn freed_blocks_are_known_until_they_are_used_again() {
        let mut blocks = Blocks::default();
        let block = |len| Block { len, allocated: site(), freed: None };
        blocks.insert(100, block(16));
        blocks.insert(132, block(8));
        assert_eq!((blocks.used(100, 16), blocks.used(108, 16), blocks.used(96, 4)), (Some(100), None, None));
        blocks.blocks.get_mut(&100).unwrap().freed = Some(site());
        assert_eq!(blocks.used(100, 4), None);
        assert!(blocks.before(104).is_some_and(|(at, block)| at == 100 && block.freed.is_some()));
        // A larger block takes the place of both.
        blocks.insert(96, block(64));
        assert_eq!(blocks.blocks.len(), 1);
        assert_eq!(blocks.used(132, 4), Some(96));
        blocks.lose();
        assert!(blocks.incomplete && blocks.used(132, 4).is_none());
    }
}
