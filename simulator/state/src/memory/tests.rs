use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn allocations_are_aligned_named_and_bounded() {
    let mut memory = Memory::new(256).unwrap();
    let a = memory.alloc(10, 4, "in_x").unwrap();
    let b = memory.alloc(16, 64, "out_y").unwrap();
    assert_eq!(a, OWNED_BASE);
    assert_eq!(b, OWNED_BASE + 64);
    assert_eq!(memory.describe(b + 0x10 - 1).as_deref(), Some("out_y+0xf"));
    assert_eq!(memory.describe(b + 16).as_deref(), Some("just beyond the end of out_y"));
    assert_eq!(memory.describe(b + 20).as_deref(), Some("4 bytes beyond the end of out_y"));
    assert_eq!(memory.describe(a - 1), None);
    assert_eq!(
        memory.alloc(200, 1, "big").unwrap_err().to_string(),
        "big needs 200 bytes but 176 of 256 bytes of global memory are free (--global-memsize MB sets the size)"
    );
    assert!(matches!(memory.alloc(1, u64::MAX, "odd"), Err(AllocError::Alignment { .. })));
    assert!(memory.alloc(u64::MAX, 1, "huge").is_err());
}

#[test]
fn impossible_sizes_are_errors() {
    assert_eq!(Memory::new(u64::MAX).err(), Some(AllocError::Host { bytes: u64::MAX }));
}

#[test]
fn only_allocated_bytes_are_reachable() {
    let mut memory = Memory::new(4096).unwrap();
    assert!(memory.load::<1>(OWNED_BASE).is_err());
    let at = memory.alloc(6, 1, "six").unwrap();
    assert!(memory.load::<4>(at + 2).is_ok());
    assert_eq!(memory.load::<4>(at + 3), Err(MemError { address: at + 3, size_bytes: 4, write: false }));
    assert!(memory.load::<1>(u64::MAX).is_err());
    assert!(memory.load::<16>(u64::MAX - 3).is_err());
}

#[test]
fn messages_describe_addresses() {
    let mut bytes = [0u8; 16];
    let mut memory = Memory::new(64).unwrap();
    let at = memory.alloc(32, 16, "out_y").unwrap();
    // SAFETY: `bytes` outlives `memory`'s last use.
    unsafe { memory.map_host(0x5000, bytes.as_mut_ptr(), 16, false) }.unwrap();
    let load = |address| MemError { address, size_bytes: 4, write: false };
    let store = |address| MemError { write: true, ..load(address) };
    assert_eq!(
        memory.explain(&store(at + 32)),
        "store of 4 bytes at 0x700000000020 (just beyond the end of out_y) is outside every buffer"
    );
    assert_eq!(memory.explain(&store(0x5004)), "store of 4 bytes at 0x5004 goes to read-only memory");
    assert!(memory.explain(&load(8)).ends_with("; the pointer is null"));
    assert!(memory.explain(&load(SHARED_BASE + 4)).contains("LDS address"));
    assert!(memory.explain(&load(PRIVATE_BASE)).contains("scratch address"));
}

#[test]
fn host_ranges_neither_overlap_nor_wrap() {
    let mut bytes = vec![0u8; 64];
    let host = bytes.as_mut_ptr();
    let mut memory = Memory::new(64).unwrap();
    // SAFETY: `bytes` outlives `memory`, and nothing is read or written through this memory.
    let mut map = |base, len| unsafe { memory.map_host(base, host, len, true) };
    assert_eq!(map(0x1000, 16), Ok(()));
    assert_eq!(map(0x1010, 16), Ok(()));
    assert_eq!(map(0x0ff0, 16), Ok(()));
    assert!(matches!(map(0x100f, 1), Err(MapError::Overlap { other: 0x1000, .. })));
    assert!(matches!(map(0x0, u64::MAX), Err(MapError::Overlap { .. })));
    assert!(matches!(map(OWNED_BASE + 8, 4), Err(MapError::Overlap { .. })));
    assert_eq!(map(u64::MAX - 3, 4), Ok(()));
    assert!(matches!(map(u64::MAX - 63, 65), Err(MapError::Wraps { .. })));
    assert_eq!(map(0x1000, 0), Ok(()));
    assert!(memory.load::<4>(u64::MAX - 3).is_ok());
    assert!(memory.load::<4>(u64::MAX - 2).is_err());
}

#[test]
fn compare_and_exchange() {
    let mut memory = Memory::new(64).unwrap();
    let at = memory.alloc(16, 16, "counter").unwrap();
    let host = memory.host(at, 16, true).unwrap();
    // SAFETY: the 16 bytes can be written and are aligned.
    unsafe {
        assert!(access::exchange_u32(host, 0, 7));
        assert!(!access::exchange_u32(host, 0, 8));
        assert!(access::exchange_u64(host.add(8), 0, u64::MAX));
        assert!(!access::exchange_u64(host.add(8), 0, 1));
    }
    assert_eq!(memory.load_value(at, 16), Ok(u64::MAX as u128 * (1 << 64) + 7));
}

#[test]
fn exchanges_from_threads_lose_nothing() {
    let mut memory = Memory::new(64).unwrap();
    let at = memory.alloc(4, 4, "counter").unwrap();
    let memory = &memory;
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(move || {
                for _ in 0..1000 {
                    loop {
                        let host = memory.host(at, 4, true).unwrap();
                        let old = u32::from_le_bytes(memory.load(at).unwrap());
                        // SAFETY: the word can be written and is aligned.
                        if unsafe { access::exchange_u32(host, old, old + 1) } {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(memory.load_value(at, 4), Ok(4000));
}

/// One step of the property test.
#[derive(Debug, Clone)]
enum Step {
    Alloc { len: u64, align: u64 },
    Write { at: u64, bytes: Vec<u8> },
    Read { at: u64, len: usize },
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (0u64..700).prop_map(|o| OWNED_BASE - 16 + o),
        4 => (0u64..120).prop_map(|o| 0x1ff0 + o),
        1 => any::<u64>(),
        1 => (0u64..40).prop_map(|o| u64::MAX - o),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0u64..200, 0u64..300).prop_map(|(len, align)| Step::Alloc { len, align }),
        4 => (address(), proptest::collection::vec(any::<u8>(), 0..40)).prop_map(|(at, bytes)| Step::Write { at, bytes }),
        4 => (address(), 0usize..40).prop_map(|(at, len)| Step::Read { at, len }),
    ]
}

proptest! {
    /// Memory behaves as a map from address to byte, with nothing outside its allocations and host ranges.
    #[test]
    fn memory_is_a_map_of_bytes(steps in proptest::collection::vec(step(), 1..60)) {
        let mut host = vec![0u8; 64];
        let mut memory = Memory::new(512).unwrap();
        // SAFETY: `host` outlives `memory`'s last use.
        unsafe { memory.map_host(0x2000, host.as_mut_ptr(), 64, true) }.unwrap();
        let mut model: BTreeMap<u64, u8> = (0x2000..0x2040).map(|a| (a, 0)).collect();
        let mut end = OWNED_BASE;
        for step in steps {
            match step {
                Step::Alloc { len, align } => {
                    let base = end.next_multiple_of(align.max(1).next_power_of_two());
                    let fits = base + len <= OWNED_BASE + 512;
                    let got = memory.alloc(len, align, "block");
                    prop_assert_eq!(got.is_ok(), fits);
                    if let Ok(at) = got {
                        prop_assert_eq!(at, base);
                        model.extend((end..base + len).map(|a| (a, 0)));
                        end = base + len;
                    }
                }
                Step::Write { at, bytes } => {
                    let inside = (0..bytes.len() as u64).all(|k| at.checked_add(k).is_some_and(|a| model.contains_key(&a)));
                    // A single access never spans two ranges.
                    prop_assert_eq!(memory.write(at, &bytes).is_ok(), inside);
                    if inside {
                        model.extend(bytes.iter().enumerate().map(|(k, b)| (at + k as u64, *b)));
                    }
                }
                Step::Read { at, len } => {
                    let expected: Option<Vec<u8>> =
                        (0..len as u64).map(|k| model.get(&at.checked_add(k)?).copied()).collect();
                    let mut out = vec![0; len];
                    let got = memory.read(at, &mut out).ok().map(|()| out);
                    prop_assert_eq!(got, expected);
                    if len == 4 {
                        let word = memory.load::<4>(at).ok();
                        prop_assert_eq!(word.map(|w| w.to_vec()), memory.load_value(at, 4).ok().map(|v| (v as u32).to_le_bytes().to_vec()));
                    }
                }
            }
        }
    }
}

/// Three ranges of a hundred bytes, a thousand apart, which count lookups.
struct Three(std::sync::atomic::AtomicU32, Box<[u8; 300]>);

impl Finder for std::sync::Arc<Three> {
    fn find(&self, address: u64) -> Option<HostRange> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let at = (1..4).find(|n| address.wrapping_sub(1000 * n) < 100)?;
        let host = self.1.as_ptr().cast_mut().wrapping_add(100 * (at as usize - 1));
        Some(HostRange { base: 1000 * at, len: 100, host, writable: at != 3 })
    }
}

#[test]
fn ranges_are_looked_up_once() {
    let three = std::sync::Arc::new(Three(0.into(), Box::new(std::array::from_fn(|n| n as u8))));
    let mut memory = Memory::empty();
    // SAFETY: `three` outlives `memory`, and nothing writes to it.
    unsafe { memory.map_on_demand(Box::new(three.clone())) };
    for _ in 0..3 {
        assert_eq!(memory.load::<2>(1007), Ok([7, 8]));
        assert_eq!(memory.load::<1>(3099), Ok([43]));
        assert_eq!(memory.load::<1>(2000), Ok([100]));
    }
    assert_eq!(three.0.load(Ordering::Relaxed), 3);
    // Across the end of a range, outside all ranges, and to a read-only range.
    assert!(memory.load::<2>(1099).is_err() && memory.load::<1>(900).is_err());
    assert_eq!(memory.store::<1>(3000, [1]), Err(MemError { address: 3000, size_bytes: 1, write: true }));
    assert_ne!(memory.id(), Memory::empty().id());
}
