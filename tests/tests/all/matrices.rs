//! Compares every CDNA matrix operation, in every shape and format, with a plain matrix product. The element
//! layouts, the number formats and the rounding of sums are reimplemented here from the CDNA 3 and 4 manuals
//! and `docs/accuracy.md`, independently of the pseudocode.

use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::inst::Inst;
use wavesim::state::Wave;
use wavesim_tests::machine::{Engine, Machine};
use wavesim_tests::random::Rng;

/// Number format of a matrix element.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    /// Exponent bits, mantissa bits, exponent bias.
    Float(u32, u32, i32),
    /// An f32 whose lowest bits are ignored.
    Xf32,
    Int,
}

const F32: Format = Format::Float(8, 23, 127);

impl Format {
    fn new(name: &str, arch: Arch) -> Format {
        // The 8-bit floats of CDNA 3 have different biases.
        let own = (arch == Arch::Cdna3) as i32;
        match name {
            "F64" => Format::Float(11, 52, 1023),
            "F32" => F32,
            "XF32" => Format::Xf32,
            "F16" => Format::Float(5, 10, 15),
            "BF16" => Format::Float(8, 7, 127),
            "FP8" => Format::Float(4, 3, 7 + own),
            "BF8" => Format::Float(5, 2, 15 + own),
            "I8" => Format::Int,
            _ => panic!("no format {name}"),
        }
    }

    /// Returns the format for a value of CBSZ or BLGP.
    fn small(number: u32) -> Format {
        [(4, 3, 7), (5, 2, 15), (2, 3, 1), (3, 2, 3), (2, 1, 1)].map(|(e, m, bias)| Format::Float(e, m, bias))
            [number as usize]
    }

    fn bits(self) -> u32 {
        match self {
            Format::Float(exponent, mantissa, _) => 1 + exponent + mantissa,
            Format::Xf32 => 32,
            Format::Int => 8,
        }
    }

    fn value(self, bits: u64) -> f64 {
        let (e, m, bias) = match self {
            Format::Float(e, m, bias) => (e, m, bias),
            Format::Xf32 => return F32.value(bits & !0x1fff),
            Format::Int => return bits as u8 as i8 as f64,
        };
        let (field, fraction) = (bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1));
        let whole = if field == 0 { fraction } else { fraction | 1 << m };
        let magnitude = whole as f64 * 2f64.powi(field.max(1) as i32 - bias - m as i32);
        if bits >> (e + m) & 1 == 1 { -magnitude } else { magnitude }
    }

    /// Returns the bits of a random number: with `exact`, an integer from -2 to 2, otherwise any number of
    /// moderate magnitude.
    fn random(self, rng: &mut Rng, exact: bool) -> u64 {
        let (e, m, bias) = match self {
            Format::Float(e, m, bias) => (e, m, bias),
            Format::Xf32 => (8, 23, 127),
            Format::Int if exact => return (rng.below(5) as i64 - 2) as u8 as u64,
            Format::Int => return rng.below(256),
        };
        let sign = rng.below(2) << (e + m);
        if exact {
            let one = (bias as u64) << m;
            return [0, sign | one, sign | (one + (1 << m))][rng.below(3) as usize];
        }
        let field = match e {
            // All codes of 6-bit and 4-bit formats are numbers; for 8-bit formats, excludes NaN and infinity.
            0..=3 => rng.below(1 << e),
            4 | 5 => rng.below((1 << e) - 1),
            _ => (bias - 8) as u64 + rng.below(16),
        };
        // The code of -0 is a NaN in CDNA 3's 8-bit formats.
        match sign | field << m | rng.below(1 << m) {
            bits if self.bits() == 8 && bits == 0x80 => 0,
            bits => bits,
        }
    }
}

/// A matrix operation, as described by its name.
#[derive(Debug)]
struct Shape {
    sparse: bool,
    m: usize,
    n: usize,
    k: usize,
    blocks: usize,
    result: Format,
    a: Format,
    b: Format,
}

/// Returns the lane and the item of an element of A: row `i` of block `b` at `k` along K. `run` is the number
/// of consecutive elements in a lane (CDNA manuals, *Dense Matrix Layouts*: at most 16 bytes).
fn layout_a(b: usize, i: usize, k: usize, rows: usize, blocks: usize, run: usize) -> (usize, usize) {
    let (lanes, groups) = (rows * blocks, 64 / (rows * blocks));
    let (part, rest) = (k / run, k % run);
    (i + rows * b + lanes * (part % groups), rest + run * (part / groups))
}

/// Returns the lane and the item of an element of C or D (*Output layout*).
fn layout_d(shape: &Shape, b: usize, i: usize, j: usize) -> (usize, usize) {
    let h: usize = if shape.result.bits() == 64 { 1 } else { 4 };
    let b_i = (64 * h).div_ceil(shape.n * shape.m);
    let m_i = 64 / b_i / shape.n;
    let g = shape.m / (h * m_i);
    let item = i % h + h * (i / (h * m_i) + g * (b / b_i));
    (j + shape.n * ((i / h) % m_i + m_i * (b % b_i)), item)
}

fn set(wave: &mut Wave, register: u32, (lane, item): (usize, usize), bits: u32, value: u64) {
    for n in 0..bits {
        let at = item as u32 * bits + n;
        let (reg, bit) = (register + at / 32, at % 32);
        let old = wave.vgpr(lane as u32, reg);
        wave.set_vgpr(lane as u32, reg, old & !(1 << bit) | ((value >> n & 1) as u32) << bit);
    }
}

fn get(wave: &Wave, register: u32, (lane, item): (usize, usize), bits: u32) -> u64 {
    let words = bits / 32;
    (0..words).fold(0, |all, n| {
        all | (wave.vgpr(lane as u32, register + item as u32 * words + n) as u64) << (32 * n)
    })
}

/// Returns `c + a * b` with a single rounding.
fn step(result: Format, a: f64, b: f64, c: u64) -> u64 {
    match result {
        Format::Int => (c as i32).wrapping_add((a * b) as i32) as u32 as u64,
        Format::Float(11, ..) => a.mul_add(b, f64::from_bits(c)).to_bits(),
        _ => (a as f32).mul_add(b as f32, f32::from_bits(c as u32)).to_bits() as u64,
    }
}

/// Parses the name of an operation. `formats` are the formats selected by the instruction, for F8F6F4.
fn shape(name: &str, arch: Arch, formats: [u32; 2]) -> Shape {
    let words: Vec<&str> = name.split('_').filter(|word| *word != "SCALE").collect();
    let sizes =
        words.iter().position(|w| w.contains('X') && w.as_bytes()[0].is_ascii_digit()).expect("sizes");
    let size: Vec<usize> = words[sizes].split('X').map(|n| n.parse().expect("a number")).collect();
    let blocks = words[sizes + 1].strip_suffix('B').and_then(|n| n.parse().ok());
    let inputs = &words[sizes + 1 + blocks.is_some() as usize..];
    let result = match words[2] {
        "I32" => Format::Int,
        name => Format::new(name, arch),
    };
    let (a, b) = match inputs {
        ["F8F6F4"] => (Format::small(formats[0]), Format::small(formats[1])),
        [both] => (Format::new(both, arch), Format::new(both, arch)),
        [a, b] => (Format::new(a, arch), Format::new(b, arch)),
        _ => panic!("{name}"),
    };
    let (sparse, blocks) = (words[1] == "SMFMAC", blocks.unwrap_or(1));
    Shape { sparse, m: size[0], n: size[1], k: size[2], blocks, result, a, b }
}

const A: u32 = 0;
const B: u32 = 16;
const C: u32 = 32;
const D: u32 = 96;
const SCALES: [u32; 2] = [160, 161];

/// Checks one instruction with random operands on one engine. EXEC is random, because it has no effect.
fn check(arch: Arch, name: &str, entry: u16, engine: Engine, rng: &mut Rng, exact: bool) {
    let formats = if name.ends_with("F8F6F4") { [0; 2].map(|_| rng.below(5) as u32) } else { [0; 2] };
    let shape = shape(name, arch, formats);
    let Shape { sparse, m, n, k, blocks, result, a, b } = shape;
    let scaled = name.contains("_SCALE_");
    let mut machine =
        Machine { wave: Wave::new(64), global: vec![0; 64], lds: Vec::new(), scratch: vec![0; 64] };
    let wave = &mut machine.wave;
    wave.mode = [0xf0, 0xc0][rng.below(2) as usize];
    wave.set_exec(rng.below(u64::MAX));
    let halves = [rng.below(4), rng.below(4)].map(|byte| byte as u32);
    // Whether C is negated, and whether its absolute value is taken first.
    let [neg, abs] = if scaled { [0; 2].map(|_| rng.below(2) as u32) } else { [0; 2] };
    let mut fields = BTreeMap::from([
        ("VDST", if sparse { C } else { D }),
        ("SRC0", 256 + A),
        ("SRC1", 256 + B),
        ("SRC2", 256 + if sparse { D } else { C }),
        ("CBSZ", formats[0]),
        ("BLGP", formats[1]),
    ]);
    if scaled {
        fields.extend([("SCALE_SRC0", 256 + SCALES[0]), ("SCALE_SRC1", 256 + SCALES[1])]);
        fields.extend([
            ("OP_SEL", halves[0] & 1 | (halves[1] & 1) << 1),
            ("OP_SEL_HI", halves[0] >> 1 | halves[1] >> 1 << 1),
            ("NEG", neg << 2),
            ("NEG_HI", abs << 2),
        ]);
    }
    let table = arch.table();
    let layout = table.encodings[table.entries[entry as usize].enc as usize].fields;
    let mut inst = Inst { entry, entry_y: 0, size: 8, fields: Default::default() };
    for (field, value) in inst.fields.iter_mut().zip(layout) {
        *field = fields.get(value.name).copied().unwrap_or(0);
    }

    // Consecutive elements per lane: at most 16 bytes; for 6-bit and 4-bit formats, all elements of the lane.
    let held_b = k / (64 / (n * blocks));
    let run_b = if b.bits() < 8 { held_b } else { held_b.min(128 / b.bits() as usize) };
    let held_a = if sparse { held_b / 2 } else { held_b };
    let run_a = match a.bits() {
        _ if sparse => run_b / 2,
        bits if bits < 8 => held_a,
        bits => held_a.min(128 / bits as usize),
    };
    let mut expected = Vec::new();
    for block in 0..blocks {
        let columns: Vec<Vec<u64>> = (0..n).map(|_| (0..k).map(|_| b.random(rng, exact)).collect()).collect();
        // Exact sums require scales of similar magnitude.
        let (least, spread) = if exact { (125, 4) } else { (120, 14) };
        let scales = [m, n]
            .map(|count| -> Vec<u64> { (0..count * (k / 32)).map(|_| least + rng.below(spread)).collect() });
        for (j, column) in columns.iter().enumerate() {
            for (at, value) in column.iter().enumerate() {
                set(wave, B, layout_a(block, j, at, n, blocks, run_b), b.bits(), *value);
            }
        }
        if scaled {
            for (which, count) in [m, n].into_iter().enumerate() {
                for (at, scale) in scales[which].iter().enumerate() {
                    let (row, part) = (at % count, at / count);
                    set(wave, SCALES[which], (row + count * part, halves[which] as usize), 8, *scale);
                }
            }
        }
        for i in 0..m {
            let mut row = vec![(0, 0u64); 0];
            for p in 0..if sparse { k / 2 } else { k } {
                let (value, position) = (a.random(rng, exact), layout_a(block, i, p, m, blocks, run_a));
                set(wave, A, position, a.bits(), value);
                // Structured sparsity: two of every four elements, in order.
                let within = if p % 2 == 0 { rng.below(3) } else { 3 } as usize;
                let at = if sparse { p / 2 * 4 + within } else { p };
                if sparse {
                    set(wave, D, position, 2, within as u64);
                }
                row.push((at, value));
            }
            for (j, column) in columns.iter().enumerate() {
                let position = layout_d(&shape, block, i, j);
                let start = match (result, exact) {
                    (Format::Int, _) => rng.below(1 << 12),
                    (_, true) => Format::Float(8, 23, 127).random(rng, true),
                    (_, false) => F32.random(rng, false),
                };
                let width = if result.bits() == 64 { 64 } else { 32 };
                let start = match width {
                    64 => F32.value(start).to_bits(),
                    _ => start,
                };
                set(wave, C, position, width, start);
                let start = if abs == 1 { start & 0x7fff_ffff } else { start } ^ (neg as u64) << 31;
                let scale = |which: usize, row: usize, at: usize| match scaled {
                    true => 2f64.powi(scales[which][row + [m, n][which] * (at / 32)] as i32 - 127),
                    false => 1.0,
                };
                let plain = |sum, (at, value): &(usize, u64)| {
                    step(result, a.value(*value), b.value(column[*at]), sum)
                };
                let sum = match name.ends_with("F8F6F4") {
                    // Scales are applied to sums of 32 products, which are then accumulated.
                    true => row.chunks(32).fold(start, |sum, block| {
                        let products = block.iter().fold(0, plain);
                        let scaled = f32::from_bits(products as u32) as f64 * scale(0, i, block[0].0);
                        let scaled = (scaled * scale(1, j, block[0].0)) as f32;
                        (scaled + f32::from_bits(sum as u32)).to_bits() as u64
                    }),
                    false => row.iter().fold(start, plain),
                };
                if exact && result != Format::Int && width == 32 {
                    let product = |(at, value): &(usize, u64)| {
                        a.value(*value) * scale(0, i, *at) * b.value(column[*at]) * scale(1, j, *at)
                    };
                    let whole = row.iter().map(product).sum::<f64>() + F32.value(start);
                    assert_eq!(f32::from_bits(sum as u32) as f64, whole, "{name}: the expected sum is exact");
                }
                expected.push((position, width, sum));
            }
        }
    }
    machine.step(arch, &inst, engine).expect(name).unwrap_or_else(|event| panic!("{name}: {event:?}"));
    for (position, width, sum) in expected {
        let found = get(&machine.wave, if sparse { C } else { D }, position, width);
        assert_eq!(
            found, sum,
            "{name}, lane and item {position:?}: {found:x}, not {sum:x}; formats {formats:?}"
        );
    }
}

/// Checks all matrix operations of an architecture, each `times` times. Returns the number of operations.
fn all(arch: Arch, engine: Engine, times: usize, exact: bool) -> usize {
    let table = arch.table();
    let mut rng = Rng(0x6d61_7472);
    let mut names = BTreeMap::new();
    for (at, entry) in table.entries.iter().enumerate() {
        let name = table.instructions[entry.inst as usize].name;
        if name.starts_with("V_MFMA_") || name.starts_with("V_SMFMAC_") {
            names.entry(name).or_insert(at as u16);
        }
    }
    for (name, entry) in &names {
        (0..times).for_each(|_| check(arch, name, *entry, engine, &mut rng, exact));
    }
    names.len()
}

#[test]
fn products_of_small_integers_are_exact() {
    assert_eq!(all(Arch::Cdna3, Engine::Handlers, 2, true), 46);
    assert_eq!(all(Arch::Cdna4, Engine::Handlers, 2, true), 68);
}

#[test]
fn sums_round_each_product_in_order() {
    for arch in [Arch::Cdna3, Arch::Cdna4] {
        all(arch, Engine::Handlers, 4, false);
        all(arch, Engine::Portable, 1, false);
    }
}
