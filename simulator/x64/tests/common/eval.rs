//! An evaluator of functions: slow, and without a line of the code generator's.

#![allow(dead_code, reason = "not every test uses everything")]

use wavesim_x64::inst::{Cc, Inst, Int1, Int2, Label, Mem, Src, V, Width};
use wavesim_x64::{Code, Function};

pub type Vector = [u32; 8];

/// A vector operation with two operands, and its reference implementation.
#[derive(Clone, Copy)]
pub struct Vec2(pub Code, pub Option<u8>, pub fn(Vector, Vector) -> Vector);

fn each(a: Vector, b: Vector, f: impl Fn(u32, u32) -> u32) -> Vector {
    std::array::from_fn(|i| f(a[i], b[i]))
}

pub fn wide(a: Vector, b: Vector, f: impl Fn(u64, u64) -> u64) -> Vector {
    let at = |v: Vector, i: usize| u64::from(v[i]) | u64::from(v[i + 1]) << 32;
    let mut d = [0; 8];
    for i in [0, 2, 4, 6] {
        let r = f(at(a, i), at(b, i));
        (d[i], d[i + 1]) = (r as u32, (r >> 32) as u32);
    }
    d
}

fn mask(yes: bool) -> u32 {
    if yes { u32::MAX } else { 0 }
}

pub const VEC2: [Vec2; 22] = [
    Vec2(Code::VEX_Vpaddd_ymm_ymm_ymmm256, None, |a, b| each(a, b, u32::wrapping_add)),
    Vec2(Code::VEX_Vpsubd_ymm_ymm_ymmm256, None, |a, b| each(a, b, u32::wrapping_sub)),
    Vec2(Code::VEX_Vpmulld_ymm_ymm_ymmm256, None, |a, b| each(a, b, u32::wrapping_mul)),
    Vec2(Code::VEX_Vpaddq_ymm_ymm_ymmm256, None, |a, b| wide(a, b, u64::wrapping_add)),
    Vec2(Code::VEX_Vpsubq_ymm_ymm_ymmm256, None, |a, b| wide(a, b, u64::wrapping_sub)),
    Vec2(Code::VEX_Vpmuludq_ymm_ymm_ymmm256, None, |a, b| {
        wide(a, b, |a, b| (a & 0xffff_ffff) * (b & 0xffff_ffff))
    }),
    Vec2(Code::VEX_Vpand_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| a & b)),
    Vec2(Code::VEX_Vpor_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| a | b)),
    Vec2(Code::VEX_Vpxor_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| a ^ b)),
    Vec2(Code::VEX_Vpandn_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| !a & b)),
    Vec2(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| mask(a == b))),
    Vec2(Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| mask(a as i32 > b as i32))),
    Vec2(Code::VEX_Vpminud_ymm_ymm_ymmm256, None, |a, b| each(a, b, u32::min)),
    Vec2(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| (a as i32).max(b as i32) as u32)),
    Vec2(Code::VEX_Vpsllvd_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| a.checked_shl(b).unwrap_or(0))),
    Vec2(Code::VEX_Vpsrlvd_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| a.checked_shr(b).unwrap_or(0))),
    Vec2(Code::VEX_Vpsravd_ymm_ymm_ymmm256, None, |a, b| each(a, b, |a, b| (a as i32 >> b.min(31)) as u32)),
    Vec2(Code::VEX_Vpsllvq_ymm_ymm_ymmm256, None, |a, b| wide(a, b, |a, b| if b < 64 { a << b } else { 0 })),
    Vec2(Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, None, |a, b| [a[0], b[0], a[1], b[1], a[4], b[4], a[5], b[5]]),
    Vec2(Code::VEX_Vpunpckhqdq_ymm_ymm_ymmm256, None, |a, b| {
        [a[2], a[3], b[2], b[3], a[6], a[7], b[6], b[7]]
    }),
    Vec2(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, Some(0b11_00_10_01), |a, b| {
        [a[1], a[2], b[0], b[3], a[5], a[6], b[4], b[7]]
    }),
    Vec2(Code::VEX_Vperm2i128_ymm_ymm_ymmm256_imm8, Some(0x21), |a, b| {
        [a[4], a[5], a[6], a[7], b[0], b[1], b[2], b[3]]
    }),
];

/// The same with one operand.
#[derive(Clone, Copy)]
pub struct Vec1(pub Code, pub Option<u8>, pub fn(Vector) -> Vector);

pub const VEC1: [Vec1; 11] = [
    Vec1(Code::VEX_Vpsrld_ymm_ymm_imm8, Some(22), |b| b.map(|b| b >> 22)),
    Vec1(Code::VEX_Vcvtdq2ps_ymm_ymmm256, None, |b| b.map(|b| (b as i32 as f32).to_bits())),
    Vec1(Code::VEX_Vpslld_ymm_ymm_imm8, Some(5), |b| b.map(|b| b << 5)),
    Vec1(Code::VEX_Vpsrad_ymm_ymm_imm8, Some(7), |b| b.map(|b| (b as i32 >> 7) as u32)),
    Vec1(Code::VEX_Vpsrlq_ymm_ymm_imm8, Some(33), |b| wide(b, b, |b, _| b >> 33)),
    Vec1(Code::VEX_Vpsrldq_ymm_ymm_imm8, Some(4), |b| [b[1], b[2], b[3], 0, b[5], b[6], b[7], 0]),
    Vec1(Code::VEX_Vpshufd_ymm_ymmm256_imm8, Some(0b00_01_10_11), |b| {
        [b[3], b[2], b[1], b[0], b[7], b[6], b[5], b[4]]
    }),
    Vec1(Code::VEX_Vpermq_ymm_ymmm256_imm8, Some(0b01_00_11_10), |b| {
        [b[4], b[5], b[6], b[7], b[0], b[1], b[2], b[3]]
    }),
    Vec1(Code::VEX_Vpmovzxdq_ymm_xmmm128, None, |b| [b[0], 0, b[1], 0, b[2], 0, b[3], 0]),
    Vec1(Code::VEX_Vpmovsxdq_ymm_xmmm128, None, |b| {
        std::array::from_fn(|i| if i & 1 == 0 { b[i / 2] } else { (b[i / 2] as i32 >> 31) as u32 })
    }),
    Vec1(Code::VEX_Vpbroadcastd_ymm_xmmm32, None, |b| [b[0]; 8]),
];

pub fn int2(op: Int2, width: Width, a: u64, b: u64) -> u64 {
    let (x, y) = (a as u32, b as u32);
    match width {
        Width::W32 => match op {
            Int2::Add => x.wrapping_add(y).into(),
            Int2::Sub => x.wrapping_sub(y).into(),
            Int2::Mul => x.wrapping_mul(y).into(),
            Int2::And => (x & y).into(),
            Int2::Or => (x | y).into(),
            Int2::Xor => (x ^ y).into(),
            Int2::Shl => x.wrapping_shl(y).into(),
            Int2::Shr => x.wrapping_shr(y).into(),
            Int2::Sar => ((x as i32).wrapping_shr(y) as u32).into(),
        },
        Width::W64 => match op {
            Int2::Add => a.wrapping_add(b),
            Int2::Sub => a.wrapping_sub(b),
            Int2::Mul => a.wrapping_mul(b),
            Int2::And => a & b,
            Int2::Or => a | b,
            Int2::Xor => a ^ b,
            Int2::Shl => a.wrapping_shl(y),
            Int2::Shr => a.wrapping_shr(y),
            Int2::Sar => (a as i64).wrapping_shr(y) as u64,
        },
    }
}

pub fn int1(op: Int1, width: Width, a: u64) -> u64 {
    let x = a as u32;
    match (op, width) {
        (Int1::Not, Width::W32) => (!x).into(),
        (Int1::Neg, Width::W32) => x.wrapping_neg().into(),
        (Int1::CountOnes, Width::W32) => x.count_ones().into(),
        (Int1::LeadingZeros, Width::W32) => x.leading_zeros().into(),
        (Int1::TrailingZeros, Width::W32) => x.trailing_zeros().into(),
        (Int1::SwapBytes, Width::W32) => x.swap_bytes().into(),
        (Int1::Not, Width::W64) => !a,
        (Int1::Neg, Width::W64) => a.wrapping_neg(),
        (Int1::CountOnes, Width::W64) => a.count_ones().into(),
        (Int1::LeadingZeros, Width::W64) => a.leading_zeros().into(),
        (Int1::TrailingZeros, Width::W64) => a.trailing_zeros().into(),
        (Int1::SwapBytes, Width::W64) => a.swap_bytes(),
        (Int1::SignExtend32, Width::W64) => x as i32 as i64 as u64,
        (Int1::SignExtend32 | Int1::ZeroExtend32, _) => x.into(),
    }
}

pub fn compare(cc: Cc, width: Width, a: u64, b: u64) -> bool {
    let (a, b, x, y) = match width {
        Width::W32 => (u64::from(a as u32), u64::from(b as u32), i64::from(a as i32), i64::from(b as i32)),
        Width::W64 => (a, b, a as i64, b as i64),
    };
    match cc {
        Cc::Eq => a == b,
        Cc::Ne => a != b,
        Cc::LtS => x < y,
        Cc::LeS => x <= y,
        Cc::GtS => x > y,
        Cc::GeS => x >= y,
        Cc::LtU => a < b,
        Cc::LeU => a <= b,
        Cc::GtU => a > b,
        Cc::GeU => a >= b,
    }
}

/// A value during evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    Int(u64),
    Vec(Vector),
}

/// A function that functions call: it returns an integer, and may access memory.
pub type Callee = fn(&mut Bytes, &[u64]) -> u64;

/// Memory at a host address.
pub struct Bytes {
    pub base: u64,
    pub bytes: Vec<u8>,
}

impl Bytes {
    fn at(&self, address: u64) -> usize {
        address.checked_sub(self.base).expect("an address in memory") as usize
    }

    pub fn load<const N: usize>(&self, address: u64) -> [u8; N] {
        self.bytes[self.at(address)..][..N].try_into().expect("the size")
    }

    pub fn store(&mut self, address: u64, bytes: &[u8]) {
        let at = self.at(address);
        self.bytes[at..][..bytes.len()].copy_from_slice(bytes);
    }

    fn vector(&self, address: u64) -> Vector {
        std::array::from_fn(|i| u32::from_le_bytes(self.load(address + 4 * i as u64)))
    }

    fn store_words(&mut self, address: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.store(address, &bytes);
    }
}

struct State<'a> {
    function: &'a Function,
    values: Vec<Option<Value>>,
    /// For each value that was loaded by a foldable load, the address.
    foldable: Vec<Option<(Mem, u64)>>,
    memory: &'a mut Bytes,
}

impl State<'_> {
    /// Reads a value. Asserts the promise of foldable loads.
    fn value(&self, v: V) -> Value {
        let value = self.values[v.index()].unwrap_or_else(|| panic!("{v:?} is not assigned"));
        if let Some((mem, address)) = self.foldable[v.index()] {
            assert_eq!(self.address(mem), address, "the base address of {v:?} has changed");
            assert_eq!(Value::Vec(self.memory.vector(address)), value, "the memory of {v:?} has changed");
        }
        value
    }

    fn int(&self, v: V) -> u64 {
        match self.value(v) {
            Value::Int(value) => value,
            Value::Vec(_) => panic!("{v:?} is a vector"),
        }
    }

    fn vec(&self, v: V) -> Vector {
        match self.value(v) {
            Value::Vec(value) => value,
            Value::Int(_) => panic!("{v:?} is an integer"),
        }
    }

    fn src(&self, src: Src) -> u64 {
        match src {
            Src::Value(v) => self.int(v),
            Src::Imm(imm) => imm as i64 as u64,
        }
    }

    fn address(&self, mem: Mem) -> u64 {
        self.int(mem.base).wrapping_add(mem.disp as i64 as u64)
    }

    fn label(&self, label: Label) -> usize {
        self.function.insts().iter().position(|inst| *inst == Inst::Label(label)).expect("bound")
    }

    /// Evaluates an instruction that only computes a value.
    fn operation(&self, inst: &Inst) -> Option<(V, Value)> {
        let word = |v: V| self.vec(v);
        let pick = |wide: bool, mask: Vector, i: usize| mask[if wide { i | 1 } else { i }] >> 31 == 1;
        Some(match *inst {
            Inst::Const { d, bits } => (d, Value::Int(bits)),
            Inst::Move { d, a } => (d, self.value(a)),
            Inst::Int2 { op, width, d, a, b } => (d, Value::Int(int2(op, width, self.int(a), self.src(b)))),
            Inst::Int1 { op, width, d, a } => (d, Value::Int(int1(op, width, self.int(a)))),
            Inst::Compare { cc, width, d, a, b } => {
                (d, Value::Int(compare(cc, width, self.int(a), self.src(b)).into()))
            }
            Inst::Select { d, cond, a, b } => {
                (d, Value::Int(if self.int(cond) != 0 { self.int(a) } else { self.int(b) }))
            }
            Inst::Load { size, d, from } => {
                let mut bytes = [0; 8];
                for (n, byte) in (0..size.bytes() as u64).zip(&mut bytes) {
                    [*byte] = self.memory.load(self.address(from) + n);
                }
                (d, Value::Int(u64::from_le_bytes(bytes)))
            }
            Inst::VecConst { d, constant } => (d, Value::Vec(self.function.constants()[constant as usize])),
            Inst::VecLoad { d, from, .. } => (d, Value::Vec(self.memory.vector(self.address(from)))),
            Inst::SplatLoad { d, from } => (d, Value::Vec([self.memory.vector(self.address(from))[0]; 8])),
            Inst::Rm { code, d, b, imm } => {
                let known = VEC1.iter().find(|known| known.0 == code && known.1 == imm).expect("known");
                (d, Value::Vec(known.2(word(b))))
            }
            Inst::Rvm { code, d, a, b, imm } => {
                let known = VEC2.iter().find(|known| known.0 == code && known.1 == imm).expect("known");
                (d, Value::Vec(known.2(word(a), word(b))))
            }
            Inst::Fma { wide: false, d, a, b, c } => {
                let [a, b, c] = [a, b, c].map(|v| word(v).map(f32::from_bits));
                (d, Value::Vec(std::array::from_fn(|i| a[i].mul_add(b[i], c[i]).to_bits())))
            }
            Inst::Blend { wide, d, a, b, mask } => {
                let (a, b, mask) = (word(a), word(b), word(mask));
                (d, Value::Vec(std::array::from_fn(|i| if pick(wide, mask, i) { b[i] } else { a[i] })))
            }
            Inst::UpperHalf { d, b } => {
                let b = word(b);
                (d, Value::Vec([b[4], b[5], b[6], b[7], 0, 0, 0, 0]))
            }
            Inst::Splat { wide: false, d, a } => (d, Value::Vec([self.int(a) as u32; 8])),
            Inst::Splat { wide: true, d, a } => {
                let a = self.int(a);
                (d, Value::Vec(std::array::from_fn(|i| (a >> (32 * (i & 1))) as u32)))
            }
            Inst::LowInt { d, a } => (d, Value::Int(word(a)[0].into())),
            Inst::SignBits { d, a } => {
                let a = word(a);
                (d, Value::Int((0..8).map(|i| u64::from(a[i] >> 31) << i).sum()))
            }
            Inst::LoadHalves { d, low, high } => {
                let [low, high] = [low, high].map(|mem| self.address(mem));
                let word = |at: u64| u32::from_le_bytes(self.memory.load(at));
                let all = std::array::from_fn(|i| {
                    if i < 4 { word(low + 4 * i as u64) } else { word(high + 4 * (i - 4) as u64) }
                });
                (d, Value::Vec(all))
            }
            Inst::Gather { d, from, offsets } => {
                let (base, offsets) = (self.address(from), word(offsets));
                let at = |offset: u32| base.wrapping_add(offset as i32 as i64 as u64);
                (d, Value::Vec(offsets.map(|offset| u32::from_le_bytes(self.memory.load(at(offset))))))
            }
            _ => return None,
        })
    }
}

/// Runs a function for at most `steps` instructions, and returns its result. `callee` finds called functions.
pub fn evaluate(
    function: &Function,
    args: &[u64],
    memory: &mut Bytes,
    callee: &dyn Fn(u64) -> Callee,
    mut steps: u64,
) -> u64 {
    let count = function.values();
    let mut state = State { function, values: vec![None; count], foldable: vec![None; count], memory };
    for (param, arg) in function.params().iter().zip(args) {
        state.values[param.index()] = Some(Value::Int(*arg));
    }
    let mut next = 0;
    loop {
        let inst = &function.insts()[next];
        steps = steps.checked_sub(1).expect("the function ends");
        next += 1;
        if let Some((d, value)) = state.operation(inst) {
            state.values[d.index()] = Some(value);
            state.foldable[d.index()] = match *inst {
                Inst::VecLoad { from, foldable: true, .. } => Some((from, state.address(from))),
                _ => None,
            };
            continue;
        }
        match *inst {
            Inst::Store { size, to, v } => {
                let bytes = state.src(v).to_le_bytes();
                state.memory.store(state.address(to), &bytes[..size.bytes() as usize]);
            }
            Inst::VecStore { to, v } => state.memory.store_words(state.address(to), &state.vec(v)),
            Inst::VecStream { to, v } => {
                let address = state.address(to);
                assert_eq!(address % 32, 0);
                state.memory.store_words(address, &state.vec(v));
            }
            Inst::StoreHalves { v, low, high } => {
                let (words, low, high) = (state.vec(v), state.address(low), state.address(high));
                state.memory.store_words(low, &words[..4]);
                state.memory.store_words(high, &words[4..]);
            }
            Inst::Call { function, ref args, d } => {
                let args: Vec<u64> = args.iter().map(|arg| state.src(*arg)).collect();
                let result = callee(function)(state.memory, &args);
                if let Some(d) = d {
                    state.values[d.index()] = Some(Value::Int(result));
                    state.foldable[d.index()] = None;
                }
            }
            Inst::ColdCall { function, arg } => {
                let arg = state.int(arg);
                callee(function)(state.memory, &[arg]);
            }
            Inst::Return { v } => return state.src(v),
            Inst::Label(_) | Inst::Prefetch { .. } => {}
            Inst::Jump(to) => next = state.label(to),
            Inst::Branch { cc, width, a, b, to } => {
                if compare(cc, width, state.int(a), state.src(b)) {
                    next = state.label(to);
                }
            }
            Inst::BranchAny { a, b, none, to } => {
                let (a, b) = (state.vec(a), state.vec(b));
                if (0..8).any(|i| a[i] & b[i] != 0) != none {
                    next = state.label(to);
                }
            }
            Inst::Table { index, ref to } => {
                let index = state.int(index).min(to.len() as u64 - 1);
                next = state.label(to[index as usize]);
            }
            ref other => panic!("{other:?} is not evaluated"),
        }
    }
}
