//! Conversions from and to floats of 6 and 4 bits (CDNA 4), recomputed here from the formats (*OCP Microscaling
//! Formats*): a number is compared with all numbers of the format.

use wavesim::arch::Arch;
use wavesim::asm::{NoSymbols, Options, parse};
use wavesim::state::Wave;
use wavesim_tests::machine::{Engine, Machine};
use wavesim_tests::random::Rng;

/// A format with a sign, without infinities and NaNs.
#[derive(Debug, Clone, Copy)]
struct Format {
    name: &'static str,
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
}

const FP6: Format = Format { name: "fp6", exponent_bits: 2, mantissa_bits: 3, bias: 1 };
const BF6: Format = Format { name: "bf6", exponent_bits: 3, mantissa_bits: 2, bias: 3 };
const FP4: Format = Format { name: "fp4", exponent_bits: 2, mantissa_bits: 1, bias: 1 };

impl Format {
    /// The code of the greatest number.
    fn most(self) -> u32 {
        (1 << (self.exponent_bits + self.mantissa_bits)) - 1
    }

    /// The bit of the sign.
    fn sign(self) -> u32 {
        self.most() + 1
    }

    fn value(self, code: u32) -> f64 {
        let magnitude = code & self.most();
        let fraction =
            (magnitude & ((1 << self.mantissa_bits) - 1)) as f64 / f64::from(1 << self.mantissa_bits);
        let number = match (magnitude >> self.mantissa_bits) as i32 {
            0 => fraction * 2f64.powi(1 - self.bias),
            exponent => (1.0 + fraction) * 2f64.powi(exponent - self.bias),
        };
        if code & self.sign() != 0 { -number } else { number }
    }

    fn with_sign(self, code: u32, x: f64) -> u32 {
        if x.is_sign_negative() { code | self.sign() } else { code }
    }

    /// Returns the code of the nearest number; of two, the even one.
    fn nearest(self, x: f64) -> u32 {
        // In range, so that distances are exact.
        if x.is_nan() || x.abs() >= self.value(self.most()) {
            return self.with_sign(self.most(), x);
        }
        let distance = |code: u32| (self.value(code) - x.abs()).abs();
        let better = |a: u32, b: u32| match distance(a).total_cmp(&distance(b)) {
            std::cmp::Ordering::Equal if a % 2 == 1 => b,
            std::cmp::Ordering::Greater => b,
            _ => a,
        };
        self.with_sign((0..=self.most()).reduce(better).unwrap(), x)
    }

    /// Rounds up if the distance to the number below, as a fraction of that between its neighbours, and the
    /// seed's high bits as a fraction reach one.
    fn stochastic(self, x: f64, seed: u32) -> u32 {
        let below = (0..=self.most()).rev().find(|code| self.value(*code) <= x.abs());
        let Some(below) = below.filter(|code| x.is_finite() && *code < self.most()) else {
            return self.with_sign(self.most(), x);
        };
        let fraction = (x.abs() - self.value(below)) / (self.value(below + 1) - self.value(below));
        let bits = 23 - self.mantissa_bits;
        let seed = f64::from(seed >> (32 - bits)) / f64::from(1 << bits);
        self.with_sign(below + (fraction + seed >= 1.0) as u32, x)
    }
}

/// A wave with some lanes active, and its registers by number.
fn run(rng: &mut Rng, text: &str, registers: impl Fn(&mut Rng, u32) -> u32) -> (Wave, Wave) {
    let inst =
        parse(text, &Options::new(Arch::Cdna4), &NoSymbols).unwrap_or_else(|e| panic!("{text}: {e}")).inst;
    let mut wave = Wave::new(64);
    wave.set_exec(rng.bits() | rng.bits());
    wave.mode = 0xf0;
    for (lane, register) in (0..64).flat_map(|lane| (0..96).map(move |register| (lane, register))) {
        wave.set_vgpr(lane, register, registers(rng, register));
    }
    let mut machine = Machine { wave: wave.clone(), global: vec![], lds: vec![], scratch: vec![0; 64 * 256] };
    assert_eq!(machine.step(Arch::Cdna4, &inst, Engine::Handlers), Some(Ok(())), "{text}");
    (wave, machine.wave)
}

/// Numbers near those of the formats, ties among them, and special ones. They are not denormal.
fn number(rng: &mut Rng) -> f32 {
    let format = rng.pick(&[FP6, BF6, FP4]);
    let code = rng.below(2 * format.sign() as u64) as u32;
    let own = format.value(code) as f32;
    match rng.below(8) {
        0 => own,
        1 => (format.value(code) + format.value((code + 1) & format.most())) as f32 / 2.0,
        2 => f32::from_bits(own.to_bits() ^ 1),
        3 => rng.pick(&[0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE]),
        _ => (rng.bits() as i64 as f64 / 2f64.powi(62 - rng.below(8) as i32)) as f32,
    }
}

/// The register that holds the scale: a power of two near one, with bits that are not its exponent.
const SCALE: u32 = 80;
/// The register that holds the seed.
const SEED: u32 = 81;

fn registers(rng: &mut Rng, register: u32) -> u32 {
    match register {
        SCALE => (rng.below(8) as u32 + 123) << 23 | rng.bits() as u32 & 0x807f_ffff,
        SEED => rng.bits() as u32,
        _ => number(rng).to_bits(),
    }
}

fn scale(wave: &Wave, lane: u32) -> f64 {
    2f64.powi((wave.vgpr(lane, SCALE) >> 23 & 0xff) as i32 - 127)
}

/// Returns code `number` of `bits` bits in the registers from `first` on.
fn code(wave: &Wave, lane: u32, first: u32, number: u32, bits: u32) -> u32 {
    let bit = |at: u32| wave.vgpr(lane, first + at / 32) >> (at % 32) & 1;
    (0..bits).fold(0, |code, at| code | bit(number * bits + at) << at)
}

/// Calls `check` for the active lanes, and checks that the others keep registers from `first` on.
fn each_lane(before: &Wave, after: &Wave, first: u32, count: u32, check: impl Fn(u32)) {
    for lane in 0..64 {
        match before.exec() >> lane & 1 {
            1 => check(lane),
            _ => (first..first + count)
                .for_each(|register| assert_eq!(before.vgpr(lane, register), after.vgpr(lane, register))),
        }
    }
}

#[test]
fn thirty_two_numbers_of_six_bits() {
    let mut rng = Rng(6);
    for format in [FP6, BF6].into_iter().cycle().take(40) {
        let name = format.name;
        // The result overlaps the sources.
        let text = format!("v_cvt_scalef32_2xpk16_{name}_f32 v[6:11], v[8:23], v[24:39], v{SCALE}");
        let (before, after) = run(&mut rng, &text, registers);
        each_lane(&before, &after, 6, 6, |lane| {
            for i in 0..32 {
                let source = [8, 24][i as usize % 2] + i / 2;
                let x = f64::from(f32::from_bits(before.vgpr(lane, source))) / scale(&before, lane);
                let found = code(&after, lane, 6, i, 6);
                assert_eq!(found, format.nearest(x), "{text}: number {i} of lane {lane}, {x:?}");
            }
        });
        let text = format!("v_cvt_scalef32_sr_pk32_{name}_f32 v[40:45], v[8:39], v{SEED}, v{SCALE}");
        let (before, after) = run(&mut rng, &text, registers);
        each_lane(&before, &after, 40, 6, |lane| {
            let x = f64::from(f32::from_bits(before.vgpr(lane, 8))) / scale(&before, lane);
            let seed = before.vgpr(lane, SEED);
            let found = code(&after, lane, 40, 0, 6);
            assert_eq!(found, format.stochastic(x, seed), "{text}: lane {lane}, {x:?}, seed {seed:x}");
        });
        let text = format!("v_cvt_scalef32_pk32_f32_{name} v[4:35], v[8:13], v{SCALE}");
        let (before, after) = run(&mut rng, &text, registers);
        each_lane(&before, &after, 4, 32, |lane| {
            for i in 0..32 {
                let x = format.value(code(&before, lane, 8, i, 6)) * scale(&before, lane);
                assert_eq!(f64::from(f32::from_bits(after.vgpr(lane, 4 + i))), x, "{text}: number {i}");
            }
        });
    }
}

#[test]
fn pairs_of_four_bits() {
    let mut rng = Rng(4);
    for round in 0..40 {
        let to = format!("v_cvt_scalef32_pk_fp4_f32 v1, v2, v3, v{SCALE}");
        let (before, after) = run(&mut rng, &to, registers);
        each_lane(&before, &after, 1, 1, |lane| {
            for (i, source) in [2, 3].into_iter().enumerate() {
                let x = f64::from(f32::from_bits(before.vgpr(lane, source))) / scale(&before, lane);
                assert_eq!(code(&after, lane, 1, i as u32, 4), FP4.nearest(x), "{to}: {x:?}, round {round}");
            }
            // OPSEL selects the byte that is written.
            assert_eq!(after.vgpr(lane, 1) >> 8, before.vgpr(lane, 1) >> 8);
        });
        let from = format!("v_cvt_scalef32_pk_f32_fp4 v[2:3], v1, v{SCALE}");
        let (before, after) = run(&mut rng, &from, registers);
        each_lane(&before, &after, 2, 2, |lane| {
            for i in 0..2 {
                let x = FP4.value(code(&before, lane, 1, i, 4)) * scale(&before, lane);
                assert_eq!(f64::from(f32::from_bits(after.vgpr(lane, 2 + i))), x, "{from}");
            }
        });
    }
}

/// OP_SEL selects the byte or the half that conversions read, and the half that one of them writes.
#[test]
fn parts_of_sources() {
    // 1.0, 1.5, 2.0 and 3.0 in FP8; 0.5, 1.0, 2.0 and 4.0 in BF8; pairs of FP4.
    const SOURCE: u32 = 0x4440_3c38;
    const OLD: u32 = 0x1234_5678;
    let fp8 = [1.0f32, 1.5, 2.0, 3.0];
    let bf8 = [0.5f32, 1.0, 2.0, 4.0];
    let fp4 = [[-0.0, 1.5], [-2.0, 1.5], [0.0, 2.0], [2.0, 2.0]];
    let f32s = |values: [f32; 2]| values.map(f32::to_bits);
    // The numbers are exact in these formats.
    let bf16s = |values: [f32; 2]| values[0].to_bits() >> 16 | values[1].to_bits() & 0xffff_0000;
    let f16 = |x: f32| match x.to_bits() {
        0 => 0,
        0x8000_0000 => 0x8000,
        bits => bits >> 16 & 0x8000 | (((bits >> 23 & 0xff) - 112) << 10 | bits >> 13 & 0x3ff),
    };
    let f16s = |values: [f32; 2]| f16(values[0]) | f16(values[1]) << 16;
    let halves = |values: [f32; 4], half: usize| [values[2 * half], values[2 * half + 1]];
    let mut rows: Vec<(String, [u32; 2])> = Vec::new();
    let mut row = |instruction: &str, result: &str, op_sel: [usize; 3], expected: [u32; 2]| {
        let [a, b, c] = op_sel;
        rows.push((format!("{instruction} {result}, v1, v2 op_sel:[{a},{b},{c}]"), expected));
    };
    for (format, values) in [("fp8", fp8), ("bf8", bf8)] {
        for (byte, x) in values.into_iter().enumerate() {
            let at = [byte & 1, byte >> 1, 0];
            row(&format!("v_cvt_scalef32_f32_{format}"), "v4", at, [x.to_bits(), OLD]);
            let name = format!("v_cvt_scalef32_f16_{format}");
            row(&name, "v4", at, [OLD & 0xffff_0000 | f16(x), OLD]);
            row(&name, "v4", [at[0], at[1], 1], [OLD & 0xffff | f16(x) << 16, OLD]);
        }
        for half in 0..2 {
            let pair = halves(values, half);
            row(&format!("v_cvt_scalef32_pk_f32_{format}"), "v[4:5]", [half, 0, 0], f32s(pair));
            row(&format!("v_cvt_scalef32_pk_f16_{format}"), "v4", [half, 0, 0], [f16s(pair), OLD]);
            row(&format!("v_cvt_scalef32_pk_bf16_{format}"), "v4", [half, 0, 0], [bf16s(pair), OLD]);
        }
    }
    for (byte, pair) in fp4.into_iter().enumerate() {
        let at = [byte & 1, byte >> 1, 0];
        row("v_cvt_scalef32_pk_f32_fp4", "v[4:5]", at, f32s(pair));
        row("v_cvt_scalef32_pk_f16_fp4", "v4", at, [f16s(pair), OLD]);
        row("v_cvt_scalef32_pk_bf16_fp4", "v4", at, [bf16s(pair), OLD]);
    }
    let mut rng = Rng(7);
    for (text, expected) in rows {
        let registers = |_: &mut Rng, register| match register {
            1 => SOURCE,
            2 => 1f32.to_bits(),
            _ => OLD,
        };
        let (before, after) = run(&mut rng, &text, registers);
        each_lane(&before, &after, 4, 2, |lane| {
            assert_eq!([4, 5].map(|register| after.vgpr(lane, register)), expected, "{text}");
        });
    }
}
