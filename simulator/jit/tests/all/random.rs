//! Random programs with loops, divergence, memory and LDS: interpreted and compiled execution must have the
//! same final state.

use super::{program, random, run_in, start};
use wavesim_jit::Jit;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{LaneVec, Wave};

/// The size of the buffer and of LDS.
pub const BYTES: usize = 2048;

/// Vector and scalar instructions without floats: `d`, `a` and `b` are VGPRs, `s` and `t` SGPRs, and `n` is a
/// constant.
const PLAIN: &[&str] = &[
    "v_add_nc_u32 v{d}, v{a}, v{b}",
    "v_sub_nc_u32 v{d}, s{s}, v{b}",
    "v_mul_lo_u32 v{d}, v{a}, v{b}",
    "v_mul_hi_u32 v{d}, v{a}, v{b}",
    "v_mul_hi_i32 v{d}, v{a}, v{b}",
    "v_mad_u64_u32 v[{e}:{e1}], null, v{a}, v{b}, v[{f}:{f1}]",
    "v_lshlrev_b64 v[{e}:{e1}], v{a}, v[{f}:{f1}]",
    "v_lshrrev_b64 v[{e}:{e1}], v{a}, v[{f}:{f1}]",
    "v_ashrrev_i64 v[{e}:{e1}], v{a}, v[{f}:{f1}]",
    "v_lshlrev_b32 v{d}, v{a}, v{b}",
    "v_ashrrev_i32 v{d}, {n}, v{b}",
    "v_bfe_u32 v{d}, v{a}, v{b}, {n}",
    "v_bfe_i32 v{d}, v{a}, 5, v{b}",
    "v_bfi_b32 v{d}, v{a}, v{b}, s{s}",
    "v_perm_b32 v{d}, v{a}, v{b}, v{c}",
    "v_alignbit_b32 v{d}, v{a}, v{b}, v{c}",
    "v_bcnt_u32_b32 v{d}, v{a}, v{b}",
    "v_clz_i32_u32 v{d}, v{a}",
    "v_ctz_i32_b32 v{d}, v{a}",
    "v_bfrev_b32 v{d}, v{a}",
    "v_min_i32 v{d}, v{a}, v{b}",
    "v_max_u32 v{d}, v{a}, v{b}",
    "v_med3_u32 v{d}, v{a}, v{b}, v{c}",
    "v_sad_u8 v{d}, v{a}, v{b}, v{c}",
    "v_mov_b32 v{d}, v{a}",
    "v_mov_b32 v{d}, {k}",
    "v_xor_b32 v{d}, {k}, v{a}",
    "v_cmp_lt_u32 vcc_lo, v{a}, v{b}",
    "v_cmp_ge_i32 s{m}, v{a}, v{b}",
    "v_cmp_lt_u64 s{m}, v[{e}:{e1}], v[{f}:{f1}]",
    "v_cndmask_b32 v{d}, v{a}, v{b}, s{m}",
    "v_cndmask_b32 v{d}, v{a}, v{b}, vcc_lo",
    "v_add_co_u32 v{d}, vcc_lo, v{a}, v{b}",
    "v_add_co_ci_u32 v{d}, vcc_lo, v{a}, v{b}, vcc_lo",
    "v_mbcnt_lo_u32_b32 v{d}, s{s}, v{a}",
    "v_cvt_f32_u32 v{d}, v{a}",
    "v_cvt_f32_i32 v{d}, v{a}",
    "v_swap_b32 v{d}, v{a}",
    "s_add_u32 s{s}, s{s}, s{t}",
    "s_lshl_b32 s{s}, s{t}, {n}",
    "s_bfe_i32 s{s}, s{t}, {k}",
    "s_cselect_b32 s{s}, s{t}, {n}",
    "s_cmp_lt_u32 s{s}, s{t}",
    "s_mul_i32 s{s}, s{s}, s{t}",
    "s_bcnt1_i32_b32 s{s}, s{t}",
    "s_brev_b32 s{s}, s{t}",
    "s_load_b32 s{s}, s[4:5], {i}",
    "s_load_b64 s[{u}:{u1}], s[4:5], {i}",
    "s_load_b128 s[8:11], s[4:5], {i}",
    "s_load_b256 s[16:23], s[4:5], {i}",
    "s_load_b512 s[8:23], s[4:5], {i}",
    "s_load_b32 s{s}, s[4:5], s30",
    "v_readfirstlane_b32 s{s}, v{a}",
    "v_writelane_b32 v{d}, s{s}, {n}",
    "v_max_i16 v{d}, s{s}, v{a}",
    "v_pk_sub_u16 v{d}, v{a}, s{s}",
];

/// Loads and stores, with element sizes; their offsets are computed first.
const MOVES: &[(&str, u32)] = &[
    ("global_load_b32 v{d}, v{o}, s[4:5] offset:{i}", 4),
    ("global_load_b64 v[{e}:{e1}], v{o}, s[4:5] offset:{i}", 8),
    ("global_load_b128 v[{q}:{q3}], v{o}, s[4:5] offset:{i}", 16),
    ("global_store_b32 v{o}, v{a}, s[4:5] offset:{i}", 4),
    ("global_store_b64 v{o}, v[{f}:{f1}], s[4:5] offset:{i}", 8),
    ("global_store_b128 v{o}, v[{q}:{q3}], s[4:5] offset:{i}", 16),
    ("global_load_u8 v{d}, v{o}, s[4:5] offset:{i}", 1),
    ("global_load_b32 v{d}, v[251:252], off offset:{i}", 4),
    ("global_load_b128 v[{q}:{q3}], v[251:252], off offset:{i}", 16),
    ("global_store_b64 v[251:252], v[{f}:{f1}], off offset:{i}", 8),
    ("global_load_i8 v{d}, v[251:252], off offset:{i}", 1),
    ("global_load_u16 v{d}, v{o}, s[4:5] offset:{i}", 2),
    ("global_load_i16 v{d}, v[251:252], off offset:{i}", 2),
    ("global_load_d16_u8 v{d}, v{o}, s[4:5] offset:{i}", 1),
    ("global_load_d16_hi_b16 v{d}, v{o}, s[4:5] offset:{i}", 2),
    ("global_store_b8 v{o}, v{a}, s[4:5] offset:{i}", 1),
    ("global_store_b16 v[251:252], v{a}, off offset:{i}", 2),
    ("global_store_d16_hi_b8 v{o}, v{a}, s[4:5] offset:{i}", 1),
    ("ds_load_u8 v{d}, v{o} offset:{i}", 1),
    ("ds_load_i16 v{d}, v{o} offset:{i}", 2),
    ("ds_load_u8_d16_hi v{d}, v{o} offset:{i}", 1),
    ("ds_store_b8 v{o}, v{a} offset:{i}", 1),
    ("ds_store_b16_d16_hi v{o}, v{a} offset:{i}", 2),
    ("ds_load_b32 v{d}, v{o} offset:{i}", 4),
    ("ds_load_b64 v[{e}:{e1}], v{o} offset:{i}", 8),
    ("ds_load_b128 v[{q}:{q3}], v{o} offset:{i}", 16),
    ("ds_load_2addr_b32 v[{e}:{e1}], v{o} offset0:{j} offset1:{l}", 4),
    ("ds_store_b32 v{o}, v{a} offset:{i}", 4),
    ("ds_store_b64 v{o}, v[{f}:{f1}] offset:{i}", 8),
    ("ds_store_2addr_b32 v{o}, v{a}, v{b} offset0:{j} offset1:{l}", 4),
    ("ds_store_2addr_b64 v{o}, v[{e}:{e1}], v[{f}:{f1}] offset0:{j} offset1:{l}", 8),
    ("ds_store_2addr_stride64_b32 v{o}, v{a}, v{b} offset1:1", 4),
    ("ds_add_u32 v{o}, v{a}", 4),
];

struct ProgramBuilder {
    seed: u64,
    lines: Vec<String>,
    /// The number of VGPRs in use: few, with many dependences, or many.
    registers: u64,
    /// All active lanes have a valid offset.
    offsets: bool,
}

impl ProgramBuilder {
    fn any(&mut self, n: u64) -> u64 {
        random(&mut self.seed) % n
    }

    /// Fills in the operands of a template.
    fn instantiate(&mut self, template: &str) -> String {
        let mut line = template.to_string();
        for name in ["{d}", "{a}", "{b}", "{c}"] {
            let n = self.any(self.registers);
            line = line.replace(name, &n.to_string());
        }
        for (name, next, last) in [("{e}", "{e1}", 1), ("{f}", "{f1}", 1), ("{q}", "{q3}", 3)] {
            let n = self.any(self.registers - 3) & !1;
            line = line.replace(name, &n.to_string()).replace(next, &(n + last).to_string());
        }
        let (s, t, m) = (8 + self.any(6), 8 + self.any(6), 16 + 2 * self.any(3));
        let (n, k) = (self.any(32), 0x100 + self.any(1 << 30));
        let (i, u) = (self.any(BYTES as u64), 8 + 2 * self.any(3));
        let line = line.replace("{i}", &i.to_string()).replace("{u}", &u.to_string());
        line.replace("{u1}", &(u + 1).to_string())
            .replace("{s}", &s.to_string())
            .replace("{t}", &t.to_string())
            .replace("{m}", &m.to_string())
            .replace("{n}", &n.to_string())
            .replace("{k}", &k.to_string())
    }

    fn plain(&mut self) {
        let template = PLAIN[self.any(PLAIN.len() as u64) as usize];
        let line = self.instantiate(template);
        self.lines.push(line);
    }

    /// Emits contiguous, uniform or scattered accesses, aligned or not: one, or several with the same
    /// offsets, the last of which may overwrite the offset register.
    fn accesses(&mut self) {
        let (first, bytes) = MOVES[self.any(MOVES.len() as u64) as usize];
        let o = 250;
        let mask = (BYTES as u32 - 1) & !(bytes - 1);
        match self.any(4) {
            0 => {
                self.lines.push(format!("v_mbcnt_lo_u32_b32 v{o}, -1, 0"));
                self.lines.push(format!("v_mul_u32_u24 v{o}, {bytes}, v{o}"));
            }
            1 => self.lines.push(format!("v_mov_b32 v{o}, {}", bytes * 3)),
            // Atomics fault on misaligned addresses.
            2 if !first.starts_with("ds_add") => {
                let a = self.any(self.registers);
                self.lines.push(format!("v_and_b32 v{o}, {:#x}, v{a}", BYTES / 2 - 1));
            }
            _ => {
                let a = self.any(self.registers);
                self.lines.push(format!("v_and_b32 v{o}, {mask:#x}, v{a}"));
            }
        }
        let wide = self.any(2) == 0 || first.contains("251");
        if wide {
            self.lines.push(format!("v_add_co_u32 v251, vcc_lo, s4, v{o}"));
            self.lines.push("v_mov_b32 v252, s5".to_string());
            self.lines.push("v_add_co_ci_u32 v252, vcc_lo, 0, v252, vcc_lo".to_string());
        }
        self.access(first, o);
        for _ in 0..self.any(5) {
            let (template, _) = MOVES[self.any(MOVES.len() as u64) as usize];
            if !template.starts_with("ds_add") && (wide || !template.contains("251")) {
                self.access(template, o);
            }
            if self.any(3) == 0 {
                self.plain();
            }
        }
        self.offsets = self.any(4) > 0;
        if !self.offsets {
            self.access(&MOVES[0].0.replace("{d}", &o.to_string()), o);
        }
    }

    /// Emits accesses with the offsets of earlier ones, with other lanes active.
    fn again(&mut self) {
        for _ in 0..self.any(3) {
            let (template, _) = MOVES[self.any(MOVES.len() as u64) as usize];
            if self.offsets && !template.starts_with("ds_add") && !template.contains("251") {
                self.access(template, 250);
            }
        }
    }

    fn access(&mut self, template: &str, offsets: u32) {
        // The buffer has 64 bytes beyond the offsets.
        let (i, j, l) = (4 * self.any(13), self.any(16), self.any(16));
        let line = template
            .replace("{o}", &offsets.to_string())
            .replace("{i}", &i.to_string())
            .replace("{j}", &j.to_string())
            .replace("{l}", &l.to_string());
        let line = self.instantiate(&line);
        self.lines.push(line);
    }

    /// Emits some instructions, part of them under a lane condition.
    fn body(&mut self, count: u64, wide: bool) {
        let (exec, save) = if wide { ("exec", "s[24:25]") } else { ("exec_lo", "s24") };
        let b = if wide { "b64" } else { "b32" };
        for _ in 0..count {
            match self.any(24) {
                0..=3 => self.accesses(),
                4 => {
                    // The parser assumes wave32, where comparisons name one register.
                    let vcc = if wide { "vcc" } else { "vcc_lo" };
                    let (a, c) = (self.any(self.registers), self.any(self.registers));
                    self.lines.push(format!("v_cmp_gt_u32 vcc_lo, v{a}, v{c}"));
                    self.lines.push(format!("s_and_saveexec_{b} {save}, {vcc}"));
                    self.again();
                    for _ in 0..self.any(6) {
                        self.plain();
                    }
                    if self.any(2) == 0 {
                        let all = self.offsets;
                        self.accesses();
                        self.offsets &= all;
                    }
                    self.lines.push(format!("s_mov_{b} {exec}, {save}"));
                    self.again();
                }
                _ => self.plain(),
            }
        }
    }
}

/// Runs a program interpreted and compiled, in a wave of this size, mode and EXEC. Compares the results, the
/// state and memory, and returns the result.
pub fn compare_runs(
    program: &Program,
    code: &Jit,
    (size, mode, exec): (u32, u32, u64),
    seed: u64,
    lines: &[&str],
) -> Result<(), Event> {
    let [plain, compiled] = [None, Some(code)].map(|code| {
        let mut seed = seed;
        let mut memory = Memory::new(1 << 20).expect("a small memory");
        // Instruction offsets are small.
        let base = memory.alloc(BYTES as u64 + 64, 256, "buffer").expect("room");
        let bytes: Vec<u8> = (0..BYTES + 64).map(|_| random(&mut seed) as u8).collect();
        memory.write(base, &bytes).expect("inside");
        let mut lds = bytes;
        let mut wave = start(size, mode);
        (wave.sgprs[4], wave.sgprs[5]) = (base as u32, (base >> 32) as u32);
        for half in 0..wave.halves() {
            for reg in 0..250 {
                let lane = |_: usize| random(&mut seed) as u32 >> (random(&mut seed) % 32);
                wave.set_lane_vec(half, reg, LaneVec(std::array::from_fn(lane)));
            }
        }
        wave.set_exec(exec);
        let ended = run_in(&memory, &mut lds, program, &mut wave, 5000, code);
        let mut after = vec![0; BYTES + 64];
        memory.read(base, &mut after).expect("inside");
        (ended, wave, lds, after)
    });
    let text = || lines.join("\n");
    assert_eq!(plain.0, compiled.0, "{}", text());
    let scalars = |wave: &Wave| (wave.sgprs, wave.scc, wave.pc);
    assert_eq!(scalars(&plain.1), scalars(&compiled.1), "{}", text());
    for half in 0..plain.1.halves() {
        for reg in 0..256 {
            let (a, b) = (plain.1.lane_vec(half, reg), compiled.1.lane_vec(half, reg));
            assert_eq!(a, b, "v{reg}\n{}", text());
        }
    }
    assert!(plain.2 == compiled.2 && plain.3 == compiled.3, "memory\n{}", text());
    plain.0.0
}

#[test]
fn random_programs() {
    let (mut compiled_operations, mut refused) = (0, 0);
    for case in 0..120_u64 {
        let wide = case % 3 == 2;
        let registers = if case.is_multiple_of(2) { 12 } else { 240 };
        let mut builder = ProgramBuilder {
            seed: case + 1,
            lines: vec!["s_movk_i32 s6, 0x18".to_string()],
            registers,
            offsets: false,
        };
        let count = if case % 20 == 19 { 1500 } else { 10 + builder.any(120) };
        builder.body(count, wide);
        let mut lines = builder.lines;
        lines.extend(
            ["s_add_i32 s6, s6, -1", "s_cmp_lg_u32 s6, 0", "s_cbranch_scc1 @1", "s_endpgm"].map(String::from),
        );
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let program = program(&lines, if wide { 64 } else { 32 });
        let code = if case % 4 < 2 { Jit::checked(&program, 0) } else { Jit::with_threshold(&program, 0) };
        let code = code.expect("a supported host");
        let mut seed = case + 77;
        let exec = if case % 5 == 4 { random(&mut seed) | random(&mut seed) << 32 } else { u64::MAX };
        let mode = if case.is_multiple_of(2) { 0xf0 } else { 0xc0 };
        let ended =
            compare_runs(&program, &code, (if wide { 64 } else { 32 }, mode, exec), case + 77, &lines);
        assert!(matches!(ended, Err(Event::EndPgm)), "case {case}: {ended:?}");
        let stats = code.stats();
        refused += stats.failed;
        compiled_operations += stats.operations;
    }
    assert_eq!(refused, 0);
    assert!(compiled_operations > 5000, "{compiled_operations}");
}

/// A program of realistic size, with thousands of constants and nearly all registers.
#[test]
fn thousands_of_constants() {
    let mut lines = vec!["s_movk_i32 s6, 0x3".to_string()];
    for n in 0..4000u32 {
        let (d, a, constant) = (n * 7 % 250, n * 13 % 250, 0x1000 + n * 0x9e3b);
        let name = ["v_xor_b32", "v_add_nc_u32", "v_min_u32", "v_mul_lo_u32"][n as usize % 4];
        lines.push(format!("{name} v{d}, {constant:#x}, v{a}"));
    }
    lines.extend(
        ["s_add_i32 s6, s6, -1", "s_cmp_lg_u32 s6, 0", "s_cbranch_scc1 @1", "s_endpgm"].map(String::from),
    );
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for size in [32, 64] {
        let program = program(&lines, size);
        let code = Jit::with_threshold(&program, 0).expect("a supported host");
        let ended = compare_runs(&program, &code, (size, 0xc0, u64::MAX), 5, &lines[..8]);
        assert!(matches!(ended, Err(Event::EndPgm)), "{ended:?}");
        assert!(code.stats().failed == 0 && code.stats().operations > 4000, "{:?}", code.stats());
    }
}
