//! Sequence versions of blocks: registers whose lanes are arithmetic sequences are computed once for all lanes.

use super::{program_by, random, registers, run_in, start};
use wavesim_asm::Options;
use wavesim_isa::arch::Arch;
use wavesim_jit::{CompiledPaths, Jit};
use wavesim_machine::exec::program::Program;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::LaneVec;

const BASE: u64 = 0x10_0000;
const BYTES: usize = 4096;

/// A guarded saxpy of s8 elements: x is at s[4:5], y at s[6:7], and the first work-item of the wave is in s9.
const SAXPY: &[&str] = &[
    "v_add_co_u32 v2, s10, s9, v0",
    "v_add_co_ci_u32 v3, null, 0, 0, s10",
    "v_mad_u64_u32 v[0:1], null, s11, s12, v[2:3]",
    "v_cmp_gt_u32 vcc_lo, s8, v0",
    "s_and_saveexec_b32 s13, vcc_lo",
    "s_cbranch_execz @16",
    "v_lshlrev_b64 v[0:1], 2, v[0:1]",
    "v_and_b32 v4, 3, v1",
    "v_add_co_u32 v1, vcc_lo, s4, v0",
    "v_add_co_ci_u32 v2, vcc_lo, s5, v4, vcc_lo",
    "v_add_co_u32 v3, vcc_lo, s6, v0",
    "v_add_co_ci_u32 v4, vcc_lo, s7, v4, vcc_lo",
    "global_load_b32 v0, v[1:2], off",
    "global_load_b32 v1, v[3:4], off",
    "v_fmac_f32 v1, 1.5, v0",
    "global_store_b32 v[3:4], v1, off",
    "s_endpgm",
];

/// A program and its code.
struct Compiled {
    program: Program,
    code: Jit,
    size: u32,
    text: String,
}

impl Compiled {
    fn of(arch: Arch, lines: &[&str], size: u32) -> Compiled {
        let program = program_by(&Options::new(arch).wave(size), lines, size);
        let code = Jit::checked(&program, 0).expect("a supported host");
        Compiled { program, code, size, text: format!("{arch:?} wave{size}\n{}", lines.join("\n")) }
    }

    /// Compares interpreted and compiled execution for lane ids in v0, with these SGPRs.
    fn compare(&self, exec: u64, ids: &dyn Fn(u32) -> u32, sgprs: &[(usize, u32)]) {
        let outcome = |code: Option<&Jit>| {
            let mut wave = start(self.size, 0xf0);
            for half in 0..wave.halves() {
                let lanes = std::array::from_fn(|lane| ids(32 * half as u32 + lane as u32));
                wave.set_lane_vec(half, 0, LaneVec(lanes));
            }
            (wave.sgprs[4], wave.sgprs[6]) = (BASE as u32, BASE as u32 + BYTES as u32 / 2);
            for (register, value) in sgprs {
                wave.sgprs[*register] = *value;
            }
            wave.set_exec(exec);
            let mut data: Vec<u32> = (0..BYTES as u32 / 4).map(|n| (n as f32).to_bits()).collect();
            let mut memory = Memory::empty();
            // SAFETY: `data` outlives `memory`.
            unsafe { memory.map_host(BASE, data.as_mut_ptr().cast(), BYTES as u64, true) }.expect("room");
            let mut lds: Vec<u8> = (0..1024u32).map(|n| (n * 7) as u8).collect();
            let ended = run_in(&memory, &mut lds, &self.program, &mut wave, 2000, code);
            drop(memory);
            (format!("{ended:?}"), registers(&wave, 40), wave.sgprs, wave.scc, wave.pc, data, lds)
        };
        let (expected, found) = (outcome(None), outcome(Some(&self.code)));
        let text = || format!("exec {exec:x} {sgprs:?} v0 {:?}\n{}", [0, 1, 31].map(ids), self.text);
        assert_eq!(found.0, expected.0, "{}", text());
        for (register, (found, expected)) in found.1.iter().zip(&expected.1).enumerate() {
            assert_eq!(found, expected, "v{register}: {}", text());
        }
        assert!(found == expected, "{}", text());
        assert_eq!(self.code.stats().failed, 0);
    }
}

/// Both blocks are computed as sequences, and their three accesses; in the last wave, the general code runs.
#[test]
fn guarded_kernels() {
    let kernel = Compiled::of(Arch::Rdna3, SAXPY, 32);
    for (elements, first) in [(100, 0), (100, 64), (100, 80), (100, 96), (0, 0), (u32::MAX, 500)] {
        for exec in [u64::MAX, 0xffff_fffe] {
            kernel.compare(exec, &|lane| lane, &[(8, elements), (9, first), (11, 0), (12, 0)]);
        }
    }
    let paths = kernel.code.stats().paths;
    assert_eq!((paths.sequence_blocks, paths.sequence_accesses), (2, 3), "{paths}");
}

/// Instructions that keep sequences, and some that do not: `d`, `a` and `b` are VGPRs, `e` and `f` pairs, `s` and `t`
/// SGPRs, `n` is a small constant, and `k` any. VCC is written in the size of the wave.
const INSTRUCTIONS: &[&str] = &[
    "v_add_nc_u32 v{d}, v{a}, v{b}",
    "v_add_nc_u32 v{d}, s{s}, v{a}",
    "v_add_nc_u32 v{d}, {n}, v{a}",
    "v_sub_nc_u32 v{d}, v{a}, v{b}",
    "v_subrev_nc_u32 v{d}, s{s}, v{a}",
    "v_sub_nc_u32 v{d}, s{s}, v{a}",
    "v_add3_u32 v{d}, s{s}, v{a}, v{b}",
    "v_lshl_add_u32 v{d}, v{a}, {n}, v{b}",
    "v_add_lshl_u32 v{d}, v{a}, v{b}, {n}",
    "v_mul_lo_u32 v{d}, v{a}, s{s}",
    "v_mul_u32_u24 v{d}, {n}, v{a}",
    "v_mad_u32_u24 v{d}, v{a}, {n}, v{b}",
    "v_mad_u64_u32 v[{e}:{e1}], null, s{s}, s{t}, v[{f}:{f1}]",
    "v_mad_u64_u32 v[{e}:{e1}], null, v{a}, {n}, v[{f}:{f1}]",
    "v_mad_i64_i32 v[{e}:{e1}], null, s{s}, s{t}, v[{f}:{f1}]",
    "v_lshlrev_b64 v[{e}:{e1}], {n}, v[{f}:{f1}]",
    "v_lshrrev_b64 v[{e}:{e1}], {n}, v[{f}:{f1}]",
    "v_ashrrev_i64 v[{e}:{e1}], {n}, v[{f}:{f1}]",
    "v_lshlrev_b32 v{d}, {n}, v{a}",
    "v_lshrrev_b32 v{d}, {n}, v{a}",
    "v_ashrrev_i32 v{d}, {n}, v{a}",
    "v_ashrrev_i32 v{d}, 31, v{a}",
    "v_bfe_u32 v{d}, v{a}, 10, 10",
    "v_bfe_u32 v{d}, v{a}, {n}, {n}",
    "v_bfe_i32 v{d}, v{a}, 0, 16",
    "v_and_b32 v{d}, 0x3ff, v{a}",
    "v_and_b32 v{d}, 3, v{a}",
    "v_and_b32 v{d}, s{s}, v{a}",
    "v_or_b32 v{d}, v{a}, v{b}",
    "v_xor_b32 v{d}, {n}, v{a}",
    "v_mov_b32 v{d}, v{a}",
    "v_mov_b32 v{d}, {k}",
    "v_mov_b32 v{d}, 0",
    "v_max_u32 v{d}, v{a}, v{b}",
    "v_add_co_u32 v{d}, {vcc}, s{s}, v{a}",
    "v_add_co_u32 v{d}, {vcc}, v{a}, v{b}",
    "v_add_co_ci_u32 v{d}, {vcc}, s{s}, v{a}, {vcc}",
    "v_add_co_ci_u32 v{d}, {vcc}, 0, v{a}, {vcc}",
    "v_sub_co_u32 v{d}, {vcc}, v{a}, v{b}",
    "v_sub_co_ci_u32 v{d}, {vcc}, v{a}, v{b}, {vcc}",
    "v_cmp_gt_u32 {vcc}, s{s}, v{a}",
    "v_cmp_le_i32 {vcc}, s{s}, v{a}",
    "v_cmp_ne_u32 {vcc}, v{a}, v{b}",
    "v_cmp_eq_u32 {vcc}, s{s}, v{a}",
    "v_cmp_ge_u32 {vcc}, v{a}, v{b}",
    "v_cmp_lt_u64 {vcc}, v[{e}:{e1}], v[{f}:{f1}]",
    "v_cndmask_b32 v{d}, v{a}, v{b}, {vcc}",
    "v_cvt_f32_u32 v{d}, v{a}",
    "v_add_f32 v{d}, v{a}, v{b}",
    "s_add_u32 s{s}, s{s}, s{t}",
    "s_mul_i32 s{s}, s{s}, {n}",
    "s_load_b32 s{s}, s[4:5], 0x40",
    "v_readfirstlane_b32 s{s}, v{a}",
];

/// Loads and stores at v8 + s[4:5], v[10:11], or v8 in LDS, with the size of an element.
const ACCESSES: &[(&str, u32)] = &[
    ("global_load_b32 v{d}, v8, s[4:5]", 4),
    ("global_load_b64 v[{e}:{e1}], v[10:11], off", 8),
    ("global_load_b128 v[{q}:{q3}], v[10:11], off", 16),
    ("global_load_b32 v{d}, v[10:11], off offset:16", 4),
    ("global_load_u16 v{d}, v[10:11], off", 2),
    ("global_store_b32 v8, v{a}, s[4:5] offset:64", 4),
    ("global_store_b32 v[10:11], v{a}, off", 4),
    ("global_store_b64 v[10:11], v[{f}:{f1}], off", 8),
    ("global_store_b128 v8, v[{q}:{q3}], s[6:7]", 16),
    ("global_store_b8 v[10:11], v{a}, off", 1),
    ("ds_load_b32 v{d}, v8 offset:8", 4),
    ("ds_load_2addr_b32 v[{e}:{e1}], v8 offset1:9", 4),
    ("ds_store_b64 v8, v[{f}:{f1}]", 8),
    ("ds_store_b32 v8, v{a}", 4),
];

/// Writes random blocks.
struct Writer {
    seed: u64,
    vcc: &'static str,
    one_scalar: bool,
    lines: Vec<String>,
}

impl Writer {
    fn any(&mut self, n: u64) -> u64 {
        random(&mut self.seed) % n
    }

    fn push(&mut self, template: &str) {
        let mut line = template.replace("{vcc}", self.vcc);
        for name in ["{d}", "{a}", "{b}"] {
            line = line.replace(name, &self.any(8).to_string());
        }
        for name in ["{s}", "{t}"] {
            line = line.replace(name, &(14 + self.any(6)).to_string());
        }
        for (name, next, last) in [("{e}", "{e1}", 1), ("{f}", "{f1}", 1), ("{q}", "{q3}", 3)] {
            let first = self.any(5) & !1;
            line = line.replace(name, &first.to_string()).replace(next, &(first + last).to_string());
        }
        let (n, k) = (self.any(8), 0x100 + self.any(1 << 23));
        self.lines.push(line.replace("{n}", &n.to_string()).replace("{k}", &k.to_string()));
    }

    /// Accesses at offsets that may be a sequence of elements.
    fn accesses(&mut self) {
        let (first, bytes) = ACCESSES[self.any(ACCESSES.len() as u64) as usize];
        let source = self.any(8);
        let kind = self.any(4);
        self.lines.push(match kind {
            0 => format!("v_and_b32 v8, 0x7f, v{source}"),
            1 => "v_mov_b32 v8, 12".to_string(),
            _ => "v_and_b32 v8, 0x7f, v0".to_string(),
        });
        self.lines.push(format!("v_lshlrev_b32 v8, {}, v8", bytes.trailing_zeros()));
        self.push("v_mov_b32 v12, s5");
        self.push("v_add_co_u32 v10, {vcc}, s4, v8");
        self.push("v_add_co_ci_u32 v11, {vcc}, 0, v12, {vcc}");
        self.push(first);
        for _ in 0..self.any(3) {
            if self.any(2) == 0 {
                self.instruction();
            }
            let (next, _) = ACCESSES[self.any(ACCESSES.len() as u64) as usize];
            self.push(next);
        }
    }

    fn instruction(&mut self) {
        let template = INSTRUCTIONS[self.any(INSTRUCTIONS.len() as u64) as usize];
        // Vector instructions of CDNA read one scalar.
        let scalars =
            template.contains("s{s}") && (template.contains("s{t}") || template.ends_with(", {vcc}"));
        if !self.one_scalar || !scalars || template.starts_with("s_") {
            self.push(template);
        }
    }
}

/// Returns the name of an instruction on CDNA 3.
fn on_cdna(line: &str) -> String {
    let names = [
        ("v_add_nc_u32", "v_add_u32"),
        ("v_sub_nc_u32", "v_sub_u32"),
        ("v_subrev_nc_u32", "v_subrev_u32"),
        ("v_add_co_ci_u32", "v_addc_co_u32"),
        ("v_sub_co_ci_u32", "v_subb_co_u32"),
        ("global_load_b32", "global_load_dword"),
        ("global_load_b64", "global_load_dwordx2"),
        ("global_load_b128", "global_load_dwordx4"),
        ("global_load_u16", "global_load_ushort"),
        ("global_store_b32", "global_store_dword"),
        ("global_store_b64", "global_store_dwordx2"),
        ("global_store_b128", "global_store_dwordx4"),
        ("global_store_b8", "global_store_byte"),
        ("ds_load_b32", "ds_read_b32"),
        ("ds_load_2addr_b32", "ds_read2_b32"),
        ("ds_store_b", "ds_write_b"),
        ("s_load_b32", "s_load_dword"),
        ("], null,", "], vcc,"),
    ];
    names.iter().fold(line.to_string(), |line, (from, to)| line.replace(from, to))
}

/// Random programs of guarded blocks, for ids that are sequences, that wrap around, that are packed, and that are none.
#[test]
fn random_blocks() {
    let mut paths = CompiledPaths::default();
    for case in 0..CASES {
        let (arch, size) = match case % 5 {
            0 => (Arch::Rdna3, 64),
            1 => (Arch::Rdna4, 32),
            2 => (Arch::Cdna3, 64),
            _ => (Arch::Rdna3, 32),
        };
        let vcc = if size == 64 { "vcc" } else { "vcc_lo" };
        let mut writer = Writer { seed: case + 1, vcc, one_scalar: arch == Arch::Cdna3, lines: Vec::new() };
        for _ in 0..1 + writer.any(3) {
            for _ in 0..1 + writer.any(8) {
                if writer.any(4) == 0 { writer.accesses() } else { writer.instruction() }
            }
            writer.push("v_cmp_gt_u32 {vcc}, s{s}, v{a}");
            let (save, bits) = if size == 64 { ("s[20:21]", "b64") } else { ("s20", "b32") };
            writer.lines.push(format!("s_and_saveexec_{bits} {save}, {vcc}"));
            writer.lines.push("s_cbranch_execz @END".to_string());
        }
        writer.accesses();
        writer.lines.push("s_endpgm".to_string());
        let end = format!("@{}", writer.lines.len() - 1);
        let own = |line: &String| {
            let line = line.replace("@END", &end);
            if arch == Arch::Cdna3 { on_cdna(&line) } else { line }
        };
        let lines: Vec<String> = writer.lines.iter().map(own).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let kernel = Compiled::of(arch, &lines, size);
        let mut seed = case + 77;
        for _ in 0..RUNS {
            let first = match random(&mut seed) % 8 {
                0 => 0u32.wrapping_sub(random(&mut seed) as u32 % 80),
                1 => (1u32 << 31).wrapping_sub(random(&mut seed) as u32 % 80),
                2 => (1u32 << (random(&mut seed) % 20)).wrapping_sub(random(&mut seed) as u32 % 80),
                3 => random(&mut seed) as u32,
                _ => 32 * (random(&mut seed) as u32 % 3),
            };
            let kind = random(&mut seed) % 10;
            let ids = |lane: u32| match kind {
                0 => (lane % 16) | ((lane / 16) << 10),
                1 => first,
                2 if lane > 20 => first,
                3 => first.wrapping_add(2 * lane),
                _ => first.wrapping_add(lane),
            };
            // Some accesses leave memory.
            let start = BASE as u32 + if random(&mut seed).is_multiple_of(6) { 3600 } else { 0 };
            let mut sgprs = vec![(4, start)];
            sgprs.extend((14..20).map(|register| {
                let value = match random(&mut seed) % 6 {
                    0 => 0,
                    1 => u32::MAX - random(&mut seed) as u32 % 40,
                    2 => 1 << 31,
                    3 => random(&mut seed) as u32,
                    _ => 64 + random(&mut seed) as u32 % 64,
                };
                (register, value)
            }));
            let exec = if random(&mut seed).is_multiple_of(8) { random(&mut seed) } else { u64::MAX };
            kernel.compare(exec, &ids, &sgprs);
        }
        paths.add(kernel.code.stats().paths);
    }
    assert!(paths.sequence_blocks > 100 && paths.sequence_accesses > 100, "{paths}");
}

/// The number of random programs, and of runs of each.
const CASES: u64 = 400;
const RUNS: u64 = 8;
