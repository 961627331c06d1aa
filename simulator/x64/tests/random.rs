//! Random functions with more live values than registers, compared with an evaluator.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::abi::{called, clobber};
use common::eval::{VEC1, VEC2, Vec1, Vec2, Vector, int2, wide};
use common::operations::INT2;
use common::{host, run};
use proptest::prelude::*;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Mem, Size, Src, V, Width};
use wavesim_x64::{Code, Function};

/// The offset of the memory that loads access: behind the results.
const DATA: i32 = 4096;

/// A function under construction, with the expected values.
struct Case {
    f: Function,
    ints: Vec<(V, u64)>,
    vecs: Vec<(V, Vector)>,
    /// The function's argument.
    base: V,
    data: Vec<u32>,
}

type Step = (u8, u16, u16, u16, u32);

impl Case {
    fn new() -> Case {
        let mut f = Function::new(2);
        let base = f.param(0);
        let data: Vec<u32> = (0..64u32).map(|n| n.wrapping_mul(0x9e37_79b9) ^ n << 3).collect();
        let ints = vec![(f.param(1), 77), (f.iconst(1 << 40 | 5), 1 << 40 | 5)];
        let vecs = vec![
            (f.vconst([3; 8]), [3; 8]),
            (f.vconst([1, 2, 3, 4, 5, 6, 7, 0x8000_0000]), [1, 2, 3, 4, 5, 6, 7, 0x8000_0000]),
        ];
        Case { f, ints, vecs, base, data }
    }

    fn words(&self, at: usize) -> Vector {
        std::array::from_fn(|i| self.data[at + i])
    }

    fn assign_int(&mut self, again: bool, i: usize, make: impl FnOnce(V) -> Inst, value: u64) {
        if again && i > 0 {
            // Assigned a second time.
            self.f.push(make(self.ints[i].0));
            self.ints[i].1 = value;
        } else {
            let d = self.f.fresh(Class::Int);
            self.f.push(make(d));
            self.ints.push((d, value));
        }
    }

    fn assign_vec(&mut self, again: bool, i: usize, make: impl FnOnce(V) -> Inst, value: Vector) {
        if again {
            self.f.push(make(self.vecs[i].0));
            self.vecs[i].1 = value;
        } else {
            let d = self.f.fresh(Class::Vec);
            self.f.push(make(d));
            self.vecs.push((d, value));
        }
    }

    fn step(&mut self, (kind, a, b, c, n): Step) {
        // Mostly recent values, and some old ones.
        let pick = |len: usize, x: u16| {
            if x & 3 == 0 { x as usize / 4 % len } else { len - 1 - x as usize / 4 % len.min(24) }
        };
        let (ia, ib, ic) = (pick(self.ints.len(), a), pick(self.ints.len(), b), pick(self.ints.len(), c));
        let (va, vb, vc) = (pick(self.vecs.len(), a), pick(self.vecs.len(), b), pick(self.vecs.len(), c));
        let ((a, x), (b, y), (_, z)) = (self.ints[ia], self.ints[ib], self.ints[ic]);
        let ((p, s), (q, t), (r, u)) = (self.vecs[va], self.vecs[vb], self.vecs[vc]);
        let again = n >> 28 == 0;
        match kind % 16 {
            0..=2 => {
                let op = INT2[n as usize % INT2.len()];
                let width = if n & 64 == 0 { Width::W32 } else { Width::W64 };
                let (b, y) = if n & 384 == 0 {
                    (Src::Imm(n as i32), n as i32 as i64 as u64)
                } else {
                    (Src::Value(b), y)
                };
                self.assign_int(again, ic, |d| Inst::Int2 { op, width, d, a, b }, int2(op, width, x, y));
            }
            3 => {
                let cond = self.f.compare(Cc::LtU, Width::W64, a, b);
                let c = self.ints[ic].0;
                self.assign_int(again, ib, |d| Inst::Select { d, cond, a, b: c }, if x < y { x } else { z });
            }
            4 => self.assign_int(false, 0, |d| Inst::Const { d, bits: n.into() }, n.into()),
            5 => self.assign_int(again, ib, |d| Inst::Move { d, a }, x),
            6 => self.assign_int(again, ib, |d| Inst::LowInt { d, a: p }, s[0].into()),
            7 => {
                let signs = (0..8).fold(0, |all, i| all | u64::from(s[i] >> 31) << i);
                self.assign_int(again, ib, |d| Inst::SignBits { d, a: p }, signs);
            }
            8..=10 => {
                let Vec2(code, imm, make) = VEC2[n as usize % VEC2.len()];
                self.assign_vec(again, vc, |d| Inst::Rvm { code, d, a: p, b: q, imm }, make(s, t));
            }
            11 => {
                let Vec1(code, imm, make) = VEC1[n as usize % VEC1.len()];
                self.assign_vec(again, vc, |d| Inst::Rm { code, d, b: p, imm }, make(s));
            }
            12 => {
                let value = std::array::from_fn(|i| if u[i] >> 31 == 1 { t[i] } else { s[i] });
                self.assign_vec(again, va, |d| Inst::Blend { wide: false, d, a: p, b: q, mask: r }, value);
            }
            13 => {
                let value = if n & 1 == 0 { [x as u32; 8] } else { wide([0; 8], [0; 8], |_, _| x) };
                self.assign_vec(again, vc, |d| Inst::Splat { wide: n & 1 == 1, d, a }, value);
            }
            14 => {
                let (at, foldable) = (n as usize % 56, n & 64 == 0);
                let from = Mem { base: self.base, disp: DATA + 4 * at as i32 };
                let v = if n & 128 == 0 {
                    self.f.vload(from.base, from.disp, foldable)
                } else {
                    let d = self.f.fresh(Class::Vec);
                    self.f.push(Inst::SplatLoad { d, from });
                    d
                };
                let words = self.words(at);
                self.vecs.push((v, if n & 128 == 0 { words } else { [words[0]; 8] }));
            }
            _ => match n % 5 {
                0 => self.assign_vec(again, vc, |d| Inst::Move { d, a: p }, s),
                1 => self.assign_vec(
                    again,
                    vc,
                    |d| Inst::UpperHalf { d, b: p },
                    [s[4], s[5], s[6], s[7], 0, 0, 0, 0],
                ),
                2 => {
                    let words = [n, !n, 3, 4, 5, 6, 7, 8];
                    let v = self.f.vconst(words);
                    self.vecs.push((v, words));
                }
                3 => {
                    let args = [Src::Value(a), Src::Imm(n as i32), Src::Value(b)];
                    let sum = x.wrapping_add(n as i32 as i64 as u64).wrapping_add(y);
                    let function = sum_and_clobber as *const () as u64;
                    self.assign_int(
                        again,
                        ic,
                        |d| Inst::Call { function, args: args.to_vec(), d: Some(d) },
                        sum,
                    );
                }
                _ => {
                    // Exactly representable floats, so that the order of operations does not matter.
                    let one = self.f.vconst([1f32.to_bits(); 8]);
                    let small = |f: &mut Function, v: V| {
                        let v = f.rm(Code::VEX_Vpsrld_ymm_ymm_imm8, v, Some(22));
                        f.rm(Code::VEX_Vcvtdq2ps_ymm_ymmm256, v, None)
                    };
                    let (fa, fb) = (small(&mut self.f, p), small(&mut self.f, q));
                    let fc = if n & 8 == 0 { one } else { small(&mut self.f, r) };
                    let value = std::array::from_fn(|i| {
                        let c = if n & 8 == 0 { 1.0 } else { (u[i] >> 22) as f32 };
                        ((s[i] >> 22) as f32 * (t[i] >> 22) as f32 + c).to_bits()
                    });
                    self.assign_vec(again, vc, |d| Inst::Fma { wide: false, d, a: fa, b: fb, c: fc }, value);
                }
            },
        }
    }

    /// Stores all values and compares them with the expected ones.
    fn check(mut self) {
        let (mut at, mut expected) = (0, Vec::new());
        let (ints, vecs) = (
            self.ints.split_off(self.ints.len().saturating_sub(60)),
            self.vecs.split_off(self.vecs.len().saturating_sub(60)),
        );
        for (v, value) in ints {
            self.f.store(Size::B8, self.base, at, v);
            expected.extend([value as u32, (value >> 32) as u32]);
            at += 8;
        }
        for (v, value) in vecs {
            self.f.vstore(self.base, at, v);
            expected.extend(value);
            at += 32;
        }
        assert!(at <= DATA);
        self.f.push(Inst::Return { v: Src::Imm(1) });
        let mut buffer = vec![0u32; DATA as usize / 4];
        buffer.extend(&self.data);
        assert_eq!(run(&self.f, buffer.as_mut_ptr() as u64, 77), 1);
        assert_eq!(&buffer[..expected.len()], expected);
    }
}

called! {
    /// Returns the sum of its arguments. Clobbers all caller-saved registers.
    fn sum_and_clobber(a: u64, b: u64, c: u64) -> u64 {
        clobber();
        a.wrapping_add(b).wrapping_add(c)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn straight_line_code(steps in prop::collection::vec(any::<Step>(), 200..400)) {
        if host().is_some() {
            let mut case = Case::new();
            steps.into_iter().for_each(|step| case.step(step));
            case.check();
        }
    }

    /// The same in a loop whose iterations all start from the values in memory, with loop-invariant code
    /// hoisted.
    #[test]
    fn loops(steps in prop::collection::vec(any::<Step>(), 50..200), rounds in 1u32..4) {
        if host().is_some() {
            let mut case = Case::new();
            let count = case.f.fresh(Class::Int);
            case.f.push(Inst::Const { d: count, bits: rounds.into() });
            let hoisted: Vec<_> = (0..20u32).map(|n| {
                let base = case.base;
                let v = case.f.vload(base, DATA + 4 * n as i32, n & 1 == 0);
                (v, case.words(n as usize))
            }).collect();
            case.vecs.extend(hoisted);
            let first: Vec<(V, u64)> = case.ints.clone();
            let kept: Vec<(V, Vector)> = case.vecs.clone();
            case.f.begin_loop();
            let head: Label = case.f.label();
            case.f.push(Inst::Label(head));
            // Copies, so that every value that is written in the loop is written in each iteration.
            for (v, value) in first {
                case.assign_int(false, 0, |d| Inst::Move { d, a: v }, value);
            }
            for (n, (v, value)) in kept.iter().enumerate() {
                if n % 3 == 0 {
                    case.assign_vec(false, 0, |d| Inst::Move { d, a: *v }, *value);
                }
            }
            // No value that is defined before the loop is assigned in it.
            let (ints, vecs) = (case.ints.len(), case.vecs.len());
            for (kind, a, b, c, n) in steps {
                case.step((kind, a, b, c, n | 1 << 28));
            }
            prop_assert!(case.ints.len() >= ints && case.vecs.len() >= vecs);
            case.f.push(Inst::Int2 { op: Int2::Sub, width: Width::W64, d: count, a: count, b: Src::Imm(1) });
            case.f.branch(Cc::Ne, Width::W64, count, 0, head);
            // The values defined before the loop are still live.
            case.vecs.extend(kept);
            case.f.end_loop();
            case.check();
        }
    }
}
