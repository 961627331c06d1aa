//! Loads and stores of whole registers, all lanes active: of neighbours in global memory (each lane's element right behind the last one's),
//! and anywhere in LDS. What is not so is left to the loads and stores of any rows. `WATCHED`: in the memory of a watch, which logs them.

// A lane number indexes several rows at once.
#![allow(clippy::needless_range_loop)]

use super::context::Cx;
use super::lds::{is_below, last_offset, load_words, store_words};
use super::memory::{are_in_order, prefetch};
use super::operands::{file, plain_stage, written};
use super::transpose::{load_quads, store_quads};
use super::watch;
use crate::exec::op::Source;
use crate::machine::wave::EXEC_LO;
use crate::memory::access;

/// Moves the elements of 32 lanes, at a base and an offset for each lane, to the registers from `d` on; or does nothing, and says so.
///
/// # Safety
/// As for [`plain_stage`], with `offsets` a code and `d` a row of `DWORDS`; on x86-64 the caller has AVX2.
#[inline(always)]
pub unsafe fn load_block<const WATCHED: bool, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: Source,
    d: u16,
) -> bool {
    // SAFETY: by the contract.
    let Some(from) = (unsafe { block::<WATCHED, DWORDS>(cx, base, offsets, false) }) else { return false };
    // SAFETY: the registers are the file's, and the wave's memory is none of its registers.
    unsafe {
        let rows = file(cx).add(d as usize);
        match DWORDS {
            1 => (*rows).0 = access::load_row(from),
            4 => load_quads(true, from, &mut *rows.cast()),
            _ => {
                let mut block = [[0; 32]; DWORDS];
                for n in 0..DWORDS {
                    block[n] = access::load_row(from.add(128 * n));
                }
                let dwords = block.as_flattened();
                for l in 0..32 {
                    for k in 0..DWORDS {
                        (*rows.add(k)).0[l] = dwords[l * DWORDS + k];
                    }
                }
            }
        }
        written::<DWORDS>(cx, d);
    }
    true
}

/// Moves the elements of 32 lanes from the registers of a code on to memory; or does nothing, and says so.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
pub unsafe fn store_block<const WATCHED: bool, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: Source,
    data: Source,
) -> bool {
    // SAFETY: by the contract.
    let Some(to) = (unsafe { block::<WATCHED, DWORDS>(cx, base, offsets, true) }) else { return false };
    // SAFETY: as in `load_block`.
    unsafe {
        let rows = plain_stage(file(cx), data);
        match DWORDS {
            1 => access::store_row(to, &(*rows).0),
            4 => store_quads(true, to, &*rows.cast()),
            _ => {
                let mut block = [[0; 32]; DWORDS];
                let dwords = block.as_flattened_mut();
                for l in 0..32 {
                    for k in 0..DWORDS {
                        dwords[l * DWORDS + k] = (*rows.add(k)).0[l];
                    }
                }
                for n in 0..DWORDS {
                    access::store_row(to.add(128 * n), &block[n]);
                }
            }
        }
    }
    true
}

/// Where the block is on the host.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
unsafe fn block<const WATCHED: bool, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: Source,
    write: bool,
) -> Option<*mut u8> {
    let size = 128 * DWORDS;
    // SAFETY: by the contract.
    let offsets = unsafe { &*plain_stage(file(cx), offsets) };
    let address = base.wrapping_add(offsets.0[0] as u64);
    if cx.wave.sgprs[EXEC_LO] != u32::MAX || !are_in_order(offsets, 4 * DWORDS) {
        return None;
    }
    let host = match WATCHED {
        true => watch::block(cx, address, 4 * DWORDS, write)?,
        false => cx.memory.host_of_first(address, size as u64, write)?,
    };
    prefetch(cx, host, address, size);
    Some(host)
}

/// Moves elements in LDS, each lane's at its address plus `plus`, to the registers from `d` on, one load after the other; or does nothing,
/// and says so.
///
/// # Safety
/// As for [`load_block`], with `lanes` a code and `d` a row of `LOADS * DWORDS`.
#[inline(always)]
pub unsafe fn load_lds_block<const WATCHED: bool, const LOADS: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    lanes: Source,
    plus: [u32; LOADS],
    d: u16,
) -> bool {
    // SAFETY: by the contract.
    let Some(lds) = (unsafe { inside::<WATCHED, _>(cx, 4 * DWORDS, lanes, plus, false) }) else {
        return false;
    };
    let lds = lds.cast_const();
    // SAFETY: by the contract; every element is inside.
    unsafe {
        let rows = file(cx).add(d as usize);
        // A destination may be the address.
        let at = *plain_stage(file(cx), lanes);
        let (mut from, mut to) = ([lds; LOADS], [rows; LOADS]);
        for n in 0..LOADS {
            from[n] = lds.wrapping_add(plus[n] as usize);
            to[n] = rows.add(n * DWORDS);
        }
        if DWORDS == 1 {
            load_words(true, from, &at, to);
        } else {
            for n in 0..LOADS {
                for l in 0..32 {
                    let element =
                        from[n].wrapping_add(at.0[l] as usize).cast::<[u32; DWORDS]>().read_unaligned();
                    for k in 0..DWORDS {
                        (*to[n].add(k)).0[l] = element[k];
                    }
                }
            }
        }
        for n in 0..LOADS {
            written::<DWORDS>(cx, d + (n * DWORDS) as u16);
        }
    }
    true
}

/// Moves the elements of 32 lanes from the registers of a code on to LDS, each to its lane's address plus `plus`; or does nothing, and
/// says so. Of several at one address the last stays.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
pub unsafe fn store_lds_block<const WATCHED: bool, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    lanes: Source,
    plus: u32,
    data: Source,
) -> bool {
    // SAFETY: by the contract.
    let Some(lds) = (unsafe { inside::<WATCHED, _>(cx, 4 * DWORDS, lanes, [plus], true) }) else {
        return false;
    };
    let to = lds.wrapping_add(plus as usize);
    // SAFETY: by the contract; every element is inside.
    unsafe {
        let (at, rows) = (&*plain_stage(file(cx), lanes), plain_stage(file(cx), data));
        if DWORDS == 1 {
            store_words(true, to, at, &*rows);
        } else {
            for l in 0..32 {
                let mut element = [0; DWORDS];
                for k in 0..DWORDS {
                    element[k] = (*rows.add(k)).0[l];
                }
                to.wrapping_add(at.0[l] as usize).cast::<[u32; DWORDS]>().write_unaligned(element);
            }
        }
    }
    true
}

/// LDS, if all lanes are active and their elements, at each of `plus`, inside of it.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
unsafe fn inside<const WATCHED: bool, const N: usize>(
    cx: &mut Cx<'_>,
    bytes: usize,
    lanes: Source,
    plus: [u32; N],
    write: bool,
) -> Option<*mut u8> {
    if cx.wave.sgprs[EXEC_LO] != u32::MAX {
        return None;
    }
    // SAFETY: by the contract.
    let offsets = unsafe { &*plain_stage(file(cx), lanes) };
    if WATCHED {
        return watch::lds(cx, offsets, &plus, bytes, write);
    }
    // Loops and not iterators, here and above: closures do not have the host's features, and stay calls.
    let mut farthest = 0;
    for n in 0..N {
        farthest = farthest.max(plus[n]);
    }
    let last = last_offset(cx, bytes)?.checked_sub(farthest)?;
    // SAFETY: by the contract.
    unsafe { is_below(offsets, last) }.then_some(cx.lds.as_mut_ptr())
}

#[cfg(test)]
mod tests {
    use crate::arch::Arch;
    use crate::asm::{NoSymbols, Options, parse};
    use crate::exec::Context;
    use crate::exec::interp;
    use crate::exec::lower::Lowered;
    use crate::exec::machine_ops::Event;
    use crate::exec::rt::watch::{Access, Watch};
    use crate::exec::rt::{Cx, Flow};
    use crate::inst::Inst;
    use crate::machine::host::Avx2;
    use crate::machine::{Row, Wave, Workgroup};
    use crate::memory::Memory;

    const BYTES: usize = 1024;

    /// How an instruction is run.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum By {
        /// The handlers for this host.
        Fast,
        /// Those for any.
        Portable,
        /// Either, watched.
        Watched { fast: bool },
    }

    /// Result, registers, memory and LDS after one instruction, and the lanes' accesses if they were watched.
    type After = (Result<(), Event>, Vec<Row>, Vec<u8>, Vec<Access>);

    fn after(by: By, inst: &Inst, lanes: &Row, exec: u32) -> After {
        let bytes: Vec<u8> = (0..BYTES as u32).map(|b| (b.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        let mut memory = Memory::new(1 << 20).expect("a small memory");
        let base = memory.alloc(BYTES as u64, 256, "buffer").expect("room");
        memory.write(base, &bytes).expect("inside");
        let mut lds = bytes.clone();
        let mut wave = Wave::new(32);
        wave.set_exec(exec as u64);
        (wave.sgprs[4], wave.sgprs[5]) = (base as u32, (base >> 32) as u32);
        wave.set_row(0, 0, *lanes);
        for reg in 1..12 {
            wave.set_row(0, reg, Row(std::array::from_fn(|l| 0x0101_0000 * reg as u32 + l as u32)));
        }
        let mut context = Context {
            memory: &memory,
            lds: &mut lds,
            scratch: &mut [],
            scratch_stride: 0,
            workgroup: &mut Workgroup::new(1),
            instructions: 0,
        };
        let mut log = Vec::new();
        let result = match by {
            By::Fast => interp::step(Arch::Rdna3, inst, &mut wave, &mut context).expect("a handler"),
            By::Portable => {
                interp::step_portably(Arch::Rdna3, inst, &mut wave, &mut context).expect("a handler")
            }
            By::Watched { fast } => {
                let watch = Watch {
                    memory: context.memory,
                    lds: &mut *context.lds,
                    scratch: &mut [],
                    scratch_stride: 0,
                    log: Vec::new(),
                    calls: Vec::new(),
                    keep_going: false,
                };
                let nothing = Memory::empty();
                let mut blind = Context {
                    memory: &nothing,
                    lds: &mut [],
                    scratch: &mut [],
                    scratch_stride: 0,
                    workgroup: &mut *context.workgroup,
                    instructions: 0,
                };
                let mut lowered = Lowered::default();
                lowered.push(Arch::Rdna3, inst, 0, 0).expect("one instruction");
                let fast = Avx2::detect().filter(|_| fast);
                let mut cx = Cx::new(fast, Arch::Rdna3, &mut wave, &mut blind, &lowered, 0);
                cx.watch = Some(Box::new(watch));
                // SAFETY: the operation was lowered just now.
                let flow = unsafe { interp::dispatch(&mut cx, &lowered.ops[0]) };
                let log_of = cx.watch.take().map(|watch| watch.log);
                log.extend(log_of.into_iter().flatten().flat_map(Access::each));
                log.sort_by_key(|a| (a.lane, a.address));
                match flow {
                    Flow::NEXT => Ok(()),
                    _ => Err(cx.event.take().expect("a fault")),
                }
            }
        };
        let mut both = vec![0; BYTES];
        memory.read(base, &mut both).expect("inside");
        both.extend(lds);
        (result, wave.rows[..12].to_vec(), both, log)
    }

    #[test]
    fn blocks_are_their_lanes() {
        let global = |dwords: u32| {
            let (size, last) = (32 * dwords, 3 + dwords);
            [
                format!("global_load_b{size} v[4:{last}], v0, s[4:5]"),
                format!("global_load_b{size} v[4:{last}], v0, s[4:5] offset:12"),
                format!("global_load_b{size} v[0:{}], v0, s[4:5]", dwords - 1),
                format!("global_store_b{size} v0, v[4:{last}], s[4:5]"),
                format!("ds_load_b{size} v[4:{last}], v0"),
                format!("ds_load_b{size} v[0:{}], v0 offset:20", dwords - 1),
                format!("ds_store_b{size} v0, v[4:{last}] offset:4"),
            ]
        };
        let two = [
            "ds_load_2addr_b32 v[4:5], v0 offset0:1 offset1:17",
            "ds_load_2addr_b32 v[0:1], v0 offset1:3",
            "ds_load_2addr_b64 v[4:7], v0 offset1:2",
            "ds_load_2addr_stride64_b32 v[4:5], v0 offset1:1",
            "ds_store_2addr_b32 v0, v4, v5 offset1:9",
        ];
        let texts = (1..=4).flat_map(global).chain(two.map(String::from));
        // In order for elements of each size, one place for all, two rows of sixteen, backward, at and beyond the end, and odd.
        let patterns: [fn(u32) -> u32; 11] = [
            |l| 4 * l,
            |l| 8 * l,
            |l| 12 * l + 8,
            |l| 16 * l,
            |_| 36,
            |l| 4 * (l % 16) + 64 * (l / 16),
            |l| 4 * (31 - l),
            |l| BYTES as u32 - 128 + 4 * l,
            |l| BYTES as u32 - 124 + 4 * l,
            |l| 4 * l + 1,
            |l| (4 * l).wrapping_sub(16),
        ];
        let mut in_whole = 0;
        for text in texts {
            let inst = parse(&text, &Options::new(Arch::Rdna3), &NoSymbols).expect(&text).inst;
            for (number, pattern) in patterns.iter().enumerate() {
                for exec in [u32::MAX, 0x7fff_ffff, 0xffff_0000, 0] {
                    let lanes = Row(std::array::from_fn(|l| pattern(l as u32)));
                    let by = |by| after(by, &inst, &lanes, exec);
                    let (fast, portable) = (by(By::Fast), by(By::Portable));
                    let (watched, slowly) = (by(By::Watched { fast: true }), by(By::Watched { fast: false }));
                    assert_eq!(fast.0, portable.0, "{text}, pattern {number}, EXEC {exec:x}");
                    // After a fault the two may have got differently far.
                    if fast.0.is_ok() {
                        assert_eq!(fast.1, portable.1, "{text}, pattern {number}, EXEC {exec:x}");
                        assert!(fast.2 == portable.2, "{text}, pattern {number}, EXEC {exec:x}: memory");
                        assert!(watched == slowly, "{text}, pattern {number}, EXEC {exec:x}: watched");
                        assert_eq!(watched.1, fast.1, "{text}, pattern {number}, EXEC {exec:x}: watched");
                        assert!(
                            watched.2 == fast.2,
                            "{text}, pattern {number}, EXEC {exec:x}: watched memory"
                        );
                        in_whole += (exec == u32::MAX) as u32;
                    }
                }
            }
        }
        assert!(in_whole > 200, "{in_whole}");
    }
}
