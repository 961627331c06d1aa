use super::visit::lane_of;
use super::*;
use proptest::prelude::*;
use wavesim_machine::exec::watch::Place;

/// An access of a wave with up to 32 lanes, and a mask of the waves whose earlier accesses happened before
/// it.
fn access() -> impl Strategy<Value = (u32, Access, u8)> {
    let sizes = prop_oneof![Just(1u8), Just(2), Just(4), Just(8), Just(16)];
    let lanes = prop_oneof![Just(1u8), Just(16), Just(32), 1..33u8];
    let start = prop_oneof![Just(0u64), Just(64), Just(128), 0..64u64];
    (1..4u32, sizes, lanes, start, any::<bool>(), any::<bool>(), any::<u8>()).prop_map(
        |(wave, size_bytes, lanes, start, same, write, seen)| {
            let address = start / size_bytes as u64 * size_bytes as u64;
            let stride = if same { 0 } else { size_bytes };
            let lane = Some(0);
            let a =
                Access { place: Place::Lds, address, size_bytes, lanes, stride, write, outside: false, lane };
            (wave, a, seen)
        },
    )
}

proptest! {
    /// Of two waves that execute one instruction each, every race on a byte is found, whichever bytes their
    /// lanes access in whichever order.
    #[test]
    fn all_races_on_bytes_are_found(
        first in proptest::collection::vec(0..8u64, 1..9),
        second in proptest::collection::vec(0..8u64, 1..9),
        (first_writes, second_writes) in any::<(bool, bool)>(),
    ) {
        let (mut shadow, mut hits) = (ShadowMemory::default(), Vec::new());
        for (wave, bytes, write) in [(1, &first, first_writes), (2, &second, second_writes)] {
            let me = Record { wave, epoch: wave, pc: wave, ..Record::default() };
            for (lane, &address) in (0..).zip(bytes) {
                let (place, lane) = (Place::Lds, Some(lane));
                let a = Access { place, address, size_bytes: 1, lanes: 1, stride: 0, write, outside: false, lane };
                shadow.access(address, &a, me, |_| false, &mut hits);
            }
        }
        let races = |byte: &u64| (first_writes || second_writes) && first.contains(byte);
        let expected: Vec<u64> = second.iter().copied().filter(races).collect();
        prop_assert_eq!(hits.iter().map(|hit| hit.0.address).collect::<Vec<_>>(), expected);
    }

    /// Shared cells report the same races as a cell per dword.
    #[test]
    fn shared_cells_agree_with_dword_cells(list in proptest::collection::vec(access(), 1..24)) {
        let (mut blocks, mut dwords) = (ShadowMemory::default(), ShadowMemory::default());
        for (epoch, (wave, a, seen)) in (1..).zip(list) {
            let me = Record { wave, epoch, pc: epoch, ..Record::default() };
            let ordered = |r: &Record| seen >> r.wave & 1 == 1;
            let (mut all, mut each) = (Vec::new(), Vec::new());
            blocks.access(a.address, &a, me, ordered, &mut all);
            // Accesses of one dword never share a cell.
            let mut at = a.address;
            while at < a.address + a.len_bytes() {
                let end = ((at & !3) + 4).min(a.address + a.len_bytes());
                let nth = lane_of(&a, at - a.address);
                let part = Access { address: at, size_bytes: (end - at) as u8, lanes: 1, stride: 0, lane: Some(nth), ..a };
                dwords.access(at, &part, me, ordered, &mut each);
                at = end;
            }
            let key = |h: &Hit| (h.0.lane, h.1.wave, h.1.pc, h.1.lane, h.2);
            prop_assert_eq!(all.iter().map(key).collect::<Vec<_>>(), each.iter().map(key).collect::<Vec<_>>());
        }
    }
}

proptest! {
    /// An atomic's load and store leave the same records whether they are recorded at once or one after the other.
    #[test]
    fn atomics_at_once_agree_with_loads_and_stores(
        list in proptest::collection::vec((1..5u32, 0..3u64, 0..6u8, any::<u8>()), 1..40),
        global in any::<bool>(),
    ) {
        let new = || if global { ShadowMemory::tracking_superseded() } else { ShadowMemory::default() };
        let (mut once, mut twice) = (new(), new());
        for (epoch, (wave, dword, kind, seen)) in (1..).zip(list) {
            // Most accesses are atomics, since a plain one leaves nothing to compare.
            let (atomic, write) = (kind > 1, kind == 1);
            let me = Record { wave, epoch, pc: epoch, atomic, ..Record::default() };
            let ordered = |r: &Record| seen >> r.wave & 1 == 1;
            let (place, lane) = (Place::Lds, Some(kind));
            let load = Access {
                place, address: 4 * dword, size_bytes: 4, lanes: 1, stride: 0, write, outside: false, lane,
            };
            let (mut hits, mut expected) = (Vec::new(), Vec::new());
            twice.compare(&load, me, ordered, &mut expected);
            if atomic {
                twice.compare(&Access { write: true, ..load }, me, ordered, &mut expected);
            }
            if !atomic || !once.record_atomic(&load, me, ordered) {
                once.compare(&load, me, ordered, &mut hits);
                if atomic {
                    once.compare(&Access { write: true, ..load }, me, ordered, &mut hits);
                }
            }
            prop_assert_eq!(hits, expected);
            // Records of no wave are not read.
            let present = |list: [Record; 2]| list.map(|r| (r.wave != 0).then_some(r));
            for at in 0..3 {
                let (cell, other) = (once.cell(4 * at), twice.cell(4 * at));
                prop_assert_eq!(present(cell.writes), present(other.writes));
                prop_assert_eq!(present(cell.reads), present(other.reads));
            }
            let superseded = |shadow: &ShadowMemory| -> Vec<_> {
                shadow.superseded.iter().map(|(dword, reads)| (*dword, present(*reads))).collect()
            };
            prop_assert_eq!(superseded(&once), superseded(&twice));
        }
    }
}

/// A wave's atomic does not hide its plain store from the atomics of other waves.
#[test]
fn a_plain_store_outlasts_an_atomic() {
    let a = |address, size_bytes| {
        let (place, lane) = (Place::Lds, Some(0));
        Access { place, address, size_bytes, lanes: 1, stride: 0, write: true, outside: false, lane }
    };
    for size in [1, 4, 16] {
        let (mut shadow, mut hits) = (ShadowMemory::default(), Vec::new());
        let record = |wave, pc, atomic| Record { wave, epoch: pc, pc, atomic, ..Record::default() };
        let mut store = |me: Record, ordered: fn(&Record) -> bool| {
            shadow.access(16, &a(16, size), me, ordered, &mut hits);
            std::mem::take(&mut hits).iter().map(|hit| hit.1.pc).collect::<Vec<_>>()
        };
        let none: [u32; 0] = [];
        assert_eq!(store(record(1, 1, false), |_| false), none);
        assert_eq!(store(record(1, 2, true), |_| false), none);
        assert_eq!(store(record(1, 3, true), |_| false), none);
        // A wave that has seen the store, but not the atomics.
        assert_eq!(store(record(2, 4, true), |r| r.epoch == 1), none);

        assert_eq!(store(record(1, 6, false), |_| true), none);
        assert_eq!(store(record(1, 7, true), |_| false), none);
        assert!(store(record(2, 8, true), |_| false).contains(&6));
    }
}

/// After bytes are forgotten, only accesses to other dwords race.
#[test]
fn forgotten_bytes_have_no_records() {
    let store = |address, lanes| Access {
        place: Place::Global,
        address,
        size_bytes: 4,
        lanes,
        stride: 4,
        write: true,
        outside: false,
        lane: Some(0),
    };
    // Whole blocks of one wave, and parts of one of several waves, over two pages.
    let last = BLOCK * PAGE as u64;
    for start in [0, last - BLOCK] {
        for shared in [false, true] {
            let (mut shadow, mut hits) = (ShadowMemory::default(), Vec::new());
            let [one, two, three] =
                [1, 2, 3].map(|wave| Record { wave, epoch: 1, pc: wave, ..Record::default() });
            for block in 0..3 {
                let a = store(start + block * BLOCK, 32);
                assert!(shadow.record_exclusive(&a, one));
                if shared {
                    shadow.access(a.address, &a, two, |_| true, &mut hits);
                }
            }
            let forgotten = start + 20..start + 2 * BLOCK + 48;
            shadow.forget(&forgotten);
            for block in 0..3 {
                let a = store(start + block * BLOCK, 32);
                shadow.access(a.address, &a, three, |_| false, &mut hits);
            }
            let all = (start..start + 3 * BLOCK).step_by(4);
            let expected: Vec<u64> = all.filter(|at| !forgotten.contains(at)).collect();
            assert_eq!(hits.iter().map(|hit| hit.0.address).collect::<Vec<_>>(), expected);
        }
    }
}
