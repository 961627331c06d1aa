//! Tests of both implementations at every alignment.

use super::*;

/// Every size at every alignment, with both implementations.
#[test]
fn stored_values_are_loaded() {
    macro_rules! scalars {
        ($by:ident, $at:ident, $($load:ident $load_at:ident $store:ident $store_at:ident $value:literal,)*) => {$(
            let mut memory = [0u8; 64];
            // SAFETY: the array has at least 16 bytes before and after the location.
            unsafe {
                let base = memory.as_mut_ptr();
                $by::$store(base.add(16 + $at), $value);
                assert_eq!($by::$load_at(base, 16 + $at), $value);
                $by::$store_at(base, 24 + $at, $value);
                assert_eq!($by::$load(base.add(24 + $at)), $value);
            }
            let bytes = $value.to_ne_bytes();
            let mut expected = [0u8; 64];
            expected[16 + $at..][..bytes.len()].copy_from_slice(&bytes);
            expected[24 + $at..][..bytes.len()].copy_from_slice(&bytes);
            assert_eq!(memory, expected);
        )*};
    }
    macro_rules! by {
        ($by:ident) => {
            for at in 0..8 {
                scalars!(
                    $by, at,
                    load_u8 load_u8_at store_u8 store_u8_at 0x81u8,
                    load_u16 load_u16_at store_u16 store_u16_at 0x8123u16,
                    load_u32 load_u32_at store_u32 store_u32_at 0x8123_4567u32,
                    load_u64 load_u64_at store_u64 store_u64_at 0x8123_4567_89ab_cdefu64,
                );
            }
        };
    }
    by!(host);
    by!(portable);
}

#[test]
fn arrays_and_slices_are_copied_completely() {
    fn array<const N: usize>(memory: &mut [u8; 40]) {
        let bytes: [u8; N] = std::array::from_fn(|k| 1 + k as u8);
        // SAFETY: at most 16 of 40 bytes, at offset 3.
        unsafe { store(memory.as_mut_ptr().add(3), bytes) };
        let end = 3 + N;
        assert!(memory[3..end] == bytes && memory[..3] == [0; 3] && memory[end..] == [0; 40][end..]);
        // SAFETY: as above.
        assert_eq!(unsafe { load::<N>(memory.as_ptr().add(3)) }, bytes);
        *memory = [0; 40];
    }
    let mut memory = [0u8; 40];
    array::<1>(&mut memory);
    array::<2>(&mut memory);
    array::<3>(&mut memory);
    array::<4>(&mut memory);
    array::<6>(&mut memory);
    array::<7>(&mut memory);
    array::<8>(&mut memory);
    array::<12>(&mut memory);
    array::<16>(&mut memory);
    for len in 0..=24 {
        let bytes: Vec<u8> = (1..=len as u8).collect();
        let (mut memory, mut back) = ([0u8; 40], vec![0; len]);
        // SAFETY: at most 24 of 40 bytes, at offset 5.
        unsafe {
            write(memory.as_mut_ptr().add(5), &bytes);
            read(memory.as_ptr().add(5), &mut back);
        }
        assert_eq!(back, bytes);
        assert!(memory[..5] == [0; 5] && memory[5 + len..].iter().all(|b| *b == 0));
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn lane_vecs_match_their_dwords() {
    if !std::arch::is_x86_feature_detected!("avx2") {
        println!("skipped: the host has no AVX2");
        return;
    }
    let vec: [u32; 32] = std::array::from_fn(|l| 0x0102_0304 * l as u32);
    for at in [0, 1, 4] {
        let mut memory = [0u8; 136];
        // SAFETY: the array has 128 bytes after `at`, and the host has AVX2.
        let back = unsafe {
            store_lane_vec(memory.as_mut_ptr().add(at), &vec);
            load_lane_vec(memory.as_ptr().add(at))
        };
        assert_eq!(back, vec);
        let bytes: Vec<u8> = vec.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(memory[at..at + 128], bytes);
        // SAFETY: as above.
        unsafe {
            let vector = portable::load_256::<32>(memory.as_ptr().add(at));
            portable::store_256::<64>(memory.as_mut_ptr().add(at), vector);
            store_256::<0>(memory.as_mut_ptr().add(at), load_256_at(memory.as_ptr(), at + 96));
            let moved = load_lane_vec(memory.as_ptr().add(at));
            assert!(moved[16..24] == vec[8..16] && moved[..8] == vec[24..]);
            store_256::<0>(memory.as_mut_ptr().add(at), broadcast_u32_at(memory.as_ptr(), at + 36));
            store_256::<96>(
                memory.as_mut_ptr().add(at),
                portable::broadcast_u32_at(memory.as_ptr(), at + 40),
            );
            let moved = load_lane_vec(memory.as_ptr().add(at));
            assert!(moved[..8] == [vec[9]; 8] && moved[24..] == [vec[10]; 8]);
            store_lane_vec(memory.as_mut_ptr().add(at), &vec);
            let halves = load_halves::<16, 80>(memory.as_ptr().add(at));
            portable::store_halves::<96, 0>(memory.as_mut_ptr().add(at), halves);
            let moved = load_lane_vec(memory.as_ptr().add(at));
            assert!(moved[24..28] == vec[4..8] && moved[..4] == vec[20..24]);
            let halves = portable::load_halves::<0, 96>(memory.as_ptr().add(at));
            store_halves::<64, 48>(memory.as_mut_ptr().add(at), halves);
            let moved = load_lane_vec(memory.as_ptr().add(at));
            assert!(moved[16..20] == vec[20..24] && moved[12..16] == vec[4..8]);
        }
    }
}
