//! Straight-line code of one wave, compared with llvm-mca. Both know dependencies and units; llvm-mca knows no waits, no
//! memory and no instruction cache, so the blocks have none of these.

use crate::model::{prepare, profiled};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use wavesim_isa::arch::Arch;

/// Instructions of each kind: `D`, `A`, `B`, `C` stand for vector registers, `S`, `T`, `U` for scalar ones.
/// V_MUL_LO_U32 and 64-bit arithmetic are left out: LLVM's throughput of them is one a clock, the manuals' a quarter.
const FORMS: [&str; 12] = [
    "v_add_f32 D, A, B",
    "v_mul_f32 D, A, B",
    "v_fma_f32 D, A, B, C",
    "v_and_b32 D, A, B",
    "v_lshlrev_b32 D, A, B",
    "v_max_f32 D, A, B",
    "v_mov_b32 D, A",
    "v_cvt_f32_u32 D, A",
    "s_add_u32 S, T, U",
    "s_and_b32 S, T, U",
    "s_lshl_b32 S, T, U",
    "s_mov_b32 S, T",
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Returns a block of instructions with registers of a small set, so that many depend on others.
fn block(random: &mut Random, forms: &[&str], registers: u64, count: usize) -> String {
    let mut out = String::new();
    for _ in 0..count {
        let form = forms[random.below(forms.len() as u64) as usize];
        let (name, operands) = form.split_once(' ').expect("operands");
        let mut text = String::new();
        for c in operands.chars() {
            let _ = match c {
                'A'..='D' => write!(text, "v{}", random.below(registers)),
                'S'..='U' => write!(text, "s{}", 8 + random.below(registers)),
                c => write!(text, "{c}"),
            };
        }
        let _ = writeln!(out, "  {name} {text}");
    }
    out
}

/// Returns llvm-mca's cycles of a block; `None` if it is not installed.
fn cycles(processor: &str, text: &str) -> Option<f64> {
    let mut child = Command::new("llvm-mca-19")
        .args(["-mtriple=amdgcn", &format!("-mcpu={processor}"), "-iterations=1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = String::from_utf8(child.wait_with_output().ok()?.stdout).ok()?;
    let line = output.lines().find_map(|line| line.strip_prefix("Total Cycles:"))?;
    line.trim().parse().ok()
}

/// A processor to compare.
struct Case {
    arch: Arch,
    processor: &'static str,
    lanes: u32,
    /// Clocks of a cycle of llvm-mca.
    clocks: f64,
    /// Blocks have vector and scalar instructions.
    mixed: bool,
}

/// GFX9 issues for a SIMD every fourth clock, which LLVM calls a cycle. LLVM 19's model of GFX12 lets no instruction
/// complete before an older one, which no manual says, so blocks for it are of one kind. It knows neither gfx950 nor
/// gfx1250.
const CASES: [Case; 4] = [
    Case { arch: Arch::Rdna3, processor: "gfx1100", lanes: 32, clocks: 1.0, mixed: true },
    Case { arch: Arch::Rdna35, processor: "gfx1151", lanes: 32, clocks: 1.0, mixed: true },
    Case { arch: Arch::Rdna4, processor: "gfx1201", lanes: 32, clocks: 1.0, mixed: false },
    Case { arch: Arch::Cdna3, processor: "gfx942", lanes: 64, clocks: 4.0, mixed: true },
];

#[test]
fn straight_line_code_takes_as_long_as_in_llvm_mca() {
    for case in &CASES {
        let processor = case.processor;
        let mut random = Random(1);
        let mut worst = 0f64;
        for index in 0..100 {
            let kinds = match (case.mixed, index % 2) {
                (true, _) => "vs",
                (false, 0) => "v",
                (false, _) => "s",
            };
            let forms: Vec<&str> =
                FORMS.into_iter().filter(|f| f.starts_with(|c| kinds.contains(c))).collect();
            let text = block(&mut random, &forms, [4, 12, 40][index % 3], 200);
            let Some(cycles) = cycles(processor, &text) else {
                println!("skipped: llvm-mca-19 is not installed");
                return;
            };
            let cycles = cycles * case.clocks;
            let alone = "issue.instruction-miss=0,issue.wave-start=0,launch.first=0";
            let header = format!("local = {}, 1, 1\nglobal = 1, 1, 1\n", case.lanes);
            let ours = profiled(&prepare(case.arch, &header, &text), alone).prediction.clocks;
            let error = (ours - cycles).abs() / cycles;
            assert!(error <= 0.05, "{processor}, block {index}: {ours} clocks, llvm-mca {cycles}\n{text}");
            worst = worst.max(error);
        }
        println!("{processor}: 100 blocks, largest difference {:.1} %", 100.0 * worst);
    }
}
