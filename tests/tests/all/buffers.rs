//! Addresses and range checks of buffer instructions, recomputed here from the ISA manuals (*Buffer Addressing*,
//! *Range Checking*, *Swizzled Buffer Addressing*), independently of the pseudocode.

use wavesim::arch::Arch;
use wavesim::asm::{NoSymbols, Options, parse};
use wavesim::state::{LaneVec, Wave};
use wavesim_tests::machine::{Engine, Machine};
use wavesim_tests::random::{GLOBAL_BASE, Rng};

/// Bytes of memory.
const BYTES: usize = 1 << 21;

/// The first data register of loads and stores.
const DATA: usize = 8;

/// A buffer descriptor.
#[derive(Debug)]
struct Descriptor {
    base: u64,
    stride: u32,
    stride_scale: u32,
    swizzle: u32,
    records: u32,
    format: u32,
    index_stride: u32,
    add_thread: bool,
    rule: u32,
}

/// An instruction: its address fields, and the values of its registers that are the same in all lanes.
#[derive(Debug)]
struct Fields {
    arch: Arch,
    access: Access,
    idxen: bool,
    offen: bool,
    offset: u32,
    scalar: u32,
}

/// How an instruction accesses an element.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Access {
    /// Bytes that are one component.
    Bytes(u64),
    /// Dwords, each with a range check of its own.
    Dwords(u64),
    /// Dwords of the descriptor's format, all in range or none.
    Formatted(u64),
    /// The same, of the instruction's format.
    Typed(u64),
}

impl Descriptor {
    fn random(rng: &mut Rng, arch: Arch) -> Descriptor {
        let small = |rng: &mut Rng| [0, 4, 8, 12, 16, 20, 64, 100][rng.below(8) as usize];
        Descriptor {
            base: GLOBAL_BASE + 4 * rng.below(512),
            stride: small(rng),
            stride_scale: if arch == Arch::Rdna4 { rng.below(4) as u32 } else { 0 },
            swizzle: if arch.is_cdna() { rng.below(2) as u32 } else { [0, 0, 1, 3][rng.below(4) as usize] },
            records: [0, 1, 7, 24, 33, 64, 200, 1000, u32::MAX][rng.below(9) as usize],
            format: 0,
            index_stride: rng.below(4) as u32,
            add_thread: rng.chance(3),
            rule: rng.below(4) as u32,
        }
    }

    /// The four words of the descriptor.
    fn words(&self, arch: Arch) -> [u32; 4] {
        let shared = self.index_stride << 21 | (self.add_thread as u32) << 23 | 0xfac;
        let (swizzle, word) = if arch.is_cdna() {
            (self.swizzle << 31, shared | 4 << 12 | self.format << 15)
        } else {
            (self.swizzle << 30, shared | self.format << 12 | self.stride_scale << 18 | self.rule << 28)
        };
        [self.base as u32, (self.base >> 32) as u32 | self.stride << 16 | swizzle, self.records, word]
    }

    /// The bytes from one record to the next.
    fn record_bytes(&self, &Fields { arch, access, .. }: &Fields) -> u64 {
        let plain = matches!(access, Access::Bytes(_) | Access::Dwords(_));
        if arch.is_cdna() && self.add_thread && plain {
            return self.stride as u64 + ((self.format as u64) << 14);
        }
        self.stride as u64 * [1, 4, 8, 32][self.stride_scale as usize]
    }

    fn is_out_of_range(&self, fields: &Fields, index: u32, first: u64, payload: u64) -> bool {
        if self.format == 0 && !self.add_thread && !matches!(fields.access, Access::Typed(_)) {
            // An unbound resource.
            return true;
        }
        let (index, records) = (index as u64, self.records as u64);
        let stride = self.record_bytes(fields);
        if fields.arch.is_cdna() {
            return match (fields.idxen, self.add_thread) {
                (true, _) => index >= records,
                (false, true) => false,
                (false, false) => first >= records,
            };
        }
        match self.rule {
            0 => index >= records || first + payload > stride,
            1 => index >= records,
            2 => records == 0,
            _ if self.swizzle != 0 && stride != 0 => index >= records || first + payload > stride,
            _ => (first + payload) as i64 > records as i64 - fields.scalar as i64,
        }
    }

    /// The address of byte `at` of an element, of which `checked` are range-checked together.
    fn address(
        &self,
        fields: &Fields,
        [index, offset]: [u32; 2],
        lane: u32,
        at: u64,
        (checked, payload): (u64, u64),
    ) -> Option<u64> {
        let index = if fields.idxen { index } else { 0 } + if self.add_thread { lane } else { 0 };
        let offset = if fields.offen { offset } else { 0 } as u64 + fields.offset as u64;
        if self.is_out_of_range(fields, index, offset + checked, payload) {
            return None;
        }
        let (index, scalar) = (index as u64, fields.scalar as u64);
        let stride = self.record_bytes(fields);
        if self.swizzle == 0 {
            return Some(self.base + scalar + index * stride + offset + at);
        }
        let (element, indices) = (if self.swizzle == 3 { 16 } else { 4 }, 8 << self.index_stride);
        let (inside, outside) = if fields.arch == Arch::Rdna4 { (scalar, 0) } else { (0, scalar) };
        let offset = offset + inside + at;
        let (index_msb, index_lsb) = (index / indices, index % indices);
        let (offset_msb, offset_lsb) = (offset / element, offset % element);
        let place = (index_msb * stride + offset_msb * element) * indices + index_lsb * element + offset_lsb;
        Some(self.base + outside + place)
    }

    /// The addresses of an element's bytes.
    fn element(&self, fields: &Fields, registers: [u32; 2], lane: u32) -> Vec<Option<u64>> {
        let place = |at, check| self.address(fields, registers, lane, at, check);
        // The bytes of a component are consecutive; a swizzled element of a format is not in one piece.
        match fields.access {
            Access::Bytes(bytes) => {
                let first = place(0, (0, bytes));
                (0..bytes).map(|k| first.map(|first| first + k)).collect()
            }
            Access::Dwords(count) => {
                (0..4 * count).map(|k| place(k / 4 * 4, (k / 4 * 4, 4)).map(|first| first + k % 4)).collect()
            }
            Access::Formatted(count) | Access::Typed(count) => {
                (0..4 * count).map(|k| place(k, (0, 4 * count))).collect()
            }
        }
    }
}

/// Instructions by the name of RDNA, with that of CDNA, their access, and whether they store.
const INSTRUCTIONS: [(&str, &str, Access, bool); 12] = [
    ("buffer_load_u8", "buffer_load_ubyte", Access::Bytes(1), false),
    ("buffer_load_u16", "buffer_load_ushort", Access::Bytes(2), false),
    ("buffer_load_b32", "buffer_load_dword", Access::Dwords(1), false),
    ("buffer_load_b64", "buffer_load_dwordx2", Access::Dwords(2), false),
    ("buffer_load_b96", "buffer_load_dwordx3", Access::Dwords(3), false),
    ("buffer_load_b128", "buffer_load_dwordx4", Access::Dwords(4), false),
    ("buffer_store_b16", "buffer_store_short", Access::Bytes(2), true),
    ("buffer_store_b32", "buffer_store_dword", Access::Dwords(1), true),
    ("buffer_store_b128", "buffer_store_dwordx4", Access::Dwords(4), true),
    ("buffer_load_format_xyzw", "buffer_load_format_xyzw", Access::Formatted(4), false),
    ("buffer_store_format_xyzw", "buffer_store_format_xyzw", Access::Formatted(4), true),
    ("tbuffer_load_format_xy", "tbuffer_load_format_xy", Access::Typed(2), false),
];

/// The text of an instruction.
fn line(names: [&str; 2], fields: &Fields) -> String {
    let &Fields { arch, access, .. } = fields;
    let dwords = match access {
        Access::Bytes(_) => 1,
        Access::Dwords(count) | Access::Formatted(count) | Access::Typed(count) => count as usize,
    };
    let data = if dwords == 1 { format!("v{DATA}") } else { format!("v[{DATA}:{}]", DATA + dwords - 1) };
    let (address, words) = match (fields.idxen, fields.offen) {
        (true, true) => ("v[4:5]", " idxen offen"),
        (true, false) => ("v4", " idxen"),
        (false, true) => ("v4", " offen"),
        (false, false) => ("off", ""),
    };
    let format = match access {
        Access::Typed(_) if arch.is_cdna() => " format:[BUF_DATA_FORMAT_32_32,BUF_NUM_FORMAT_UINT]",
        Access::Typed(_) => " format:[BUF_FMT_32_32_UINT]",
        _ => "",
    };
    let name = names[arch.is_cdna() as usize];
    format!("{name} {data}, {address}, s[20:23], s24{format}{words} offset:{}", fields.offset)
}

/// The descriptor's format of four dwords; on CDNA the data format, which the number format 4 follows.
fn format_number(arch: Arch) -> u32 {
    if arch.is_cdna() {
        return 14;
    }
    let text = "tbuffer_load_format_xyzw v[8:11], off, s[20:23], s24 format:[BUF_FMT_32_32_32_32_UINT]";
    let inst = parse(text, &Options::new(arch), &NoSymbols).expect(text).inst;
    inst.field(arch.table(), "FORMAT").expect("a typed access")
}

#[test]
fn addresses_and_ranges() {
    let mut rng = Rng(11);
    let global: Vec<u8> = (0..BYTES).map(|n| (n * 7 + n / 251 + n / 65536) as u8).collect();
    for arch in [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4, Arch::Cdna3, Arch::Cdna4] {
        let (mut cases, mut outside, mut in_range, mut out_of_range) = (0, 0, 0, 0);
        let wave_size = if arch.is_cdna() { 64 } else { 32 };
        while cases < 150 {
            let (rdna, cdna, access, store) = INSTRUCTIONS[rng.below(12) as usize];
            let mut descriptor = Descriptor::random(&mut rng, arch);
            descriptor.format = match access {
                // 32_32_32_32; unbound without a format, unless thread numbers are added.
                Access::Formatted(_) if rng.chance(6) && !descriptor.add_thread => 0,
                Access::Formatted(_) => format_number(arch),
                // A part of the stride.
                _ if arch.is_cdna() && descriptor.add_thread => rng.below(2) as u32,
                _ => [0, 1, 4, 9, 15][rng.below(5) as usize],
            };
            let fields = Fields {
                arch,
                access,
                idxen: rng.chance(2),
                offen: rng.chance(2),
                offset: [0, 4, 8, 60, 1000][rng.below(5) as usize],
                scalar: [0, 0, 4, 36, 512][rng.below(5) as usize],
            };
            let text = line([rdna, cdna], &fields);
            let inst = parse(&text, &Options::new(arch), &NoSymbols).expect(&text).inst;
            let registers: Vec<[u32; 2]> = (0..wave_size)
                .map(|_| [rng.below(40) as u32, 4 * [0, 1, 2, 3, 5, 40][rng.below(6) as usize]])
                .collect();
            let registers: Vec<[u32; 2]> = registers
                .into_iter()
                .map(|[index, offset]| if fields.idxen { [index, offset] } else { [offset, 0] })
                .collect();
            let mut machine = Machine {
                wave: Wave::new(wave_size),
                global: global.clone(),
                lds: Vec::new(),
                scratch: vec![0; 64],
            };
            for (at, word) in descriptor.words(arch).into_iter().chain([fields.scalar]).enumerate() {
                machine.wave.sgprs[20 + at] = word;
            }
            let half =
                |half: usize, of: &dyn Fn(usize) -> u32| LaneVec(std::array::from_fn(|l| of(32 * half + l)));
            for at in 0..machine.wave.halves() {
                machine.wave.set_lane_vec(at, 4, half(at, &|lane| registers[lane][0]));
                machine.wave.set_lane_vec(at, 5, half(at, &|lane| registers[lane][1]));
                for word in 0..4 {
                    let value = |lane: usize| (0x1000 * (word + 1) + lane) as u32;
                    machine.wave.set_lane_vec(at, DATA + word, half(at, &value));
                }
            }
            // The expected state.
            let mut expected = machine.clone();
            let mut fits = true;
            for (lane, &[first, second]) in registers.iter().enumerate() {
                let pair = if fields.idxen { [first, second] } else { [0, first] };
                let element = descriptor.element(&fields, pair, lane as u32);
                let mut words = [0u32; 4];
                for (k, address) in element.iter().enumerate() {
                    let Some(address) = address else {
                        out_of_range += 1;
                        continue;
                    };
                    in_range += 1;
                    let at = address.wrapping_sub(GLOBAL_BASE) as usize;
                    fits &= at < BYTES;
                    if !fits {
                        break;
                    }
                    let word = &mut words[k / 4];
                    if store {
                        let value = machine.wave.lane_vec(lane / 32, DATA + k / 4).0[lane % 32];
                        expected.global[at] = (value >> (8 * (k % 4))) as u8;
                    } else {
                        *word |= (machine.global[at] as u32) << (8 * (k % 4));
                    }
                }
                for (word, value) in words.into_iter().enumerate().take(element.len().div_ceil(4)) {
                    if !store {
                        let mut vec = *expected.wave.lane_vec(lane / 32, DATA + word);
                        vec.0[lane % 32] = value;
                        expected.wave.set_lane_vec(lane / 32, DATA + word, vec);
                    }
                }
            }
            if !fits {
                outside += 1;
                continue;
            }
            cases += 1;
            // The evaluator is slow.
            let engines = if cases % 16 == 0 {
                &[Engine::Handlers, Engine::Evaluator][..]
            } else {
                &[Engine::Handlers]
            };
            for &engine in engines {
                let mut found = machine.clone();
                let ended = found.step(arch, &inst, engine).expect("semantics");
                assert!(ended.is_ok(), "{arch:?}: {text}\n{descriptor:?}\n{ended:?}");
                for at in 0..machine.wave.halves() {
                    for word in 0..4 {
                        let [a, b] = [&found, &expected].map(|m| m.wave.lane_vec(at, DATA + word).0);
                        assert_eq!(a, b, "{arch:?} {engine:?}: {text}\n{descriptor:?}\n{registers:?}");
                    }
                }
                let differs = (0..BYTES).find(|at| found.global[*at] != expected.global[*at]).map(|at| {
                    (at, found.global[at..at + 32].to_vec(), expected.global[at..at + 32].to_vec())
                });
                assert_eq!(
                    differs, None,
                    "{arch:?} {engine:?}: {text}\n{descriptor:?} {fields:?}\n{registers:?}"
                );
            }
        }
        assert!(in_range > 3_000 && out_of_range > 3_000 && outside < cases, "{arch:?}");
    }
}
