//! Control flow between compiled units: calls, computed jumps, loops that are left and entered in the middle,
//! barriers, several waves, and turns that end anywhere.

use super::labels::assemble;
use super::{random, registers, start};
use wavesim_engine::interp::{self, Compiled};
use wavesim_engine::sched::dispatch::{
    self, Dispatch, InitialState, Layout, Registers, RunStats, Schedule, Shape,
};
use wavesim_isa::arch::Arch;
use wavesim_isa::relative::VGPR_MSBS;
use wavesim_jit::Jit;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::effects::vgpr_msbs_after;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;
use wavesim_machine::fault::Fault;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{LaneVec, Wave, Workgroup};

const BASE: u64 = 0x10_0000;
/// The size of LDS, and of the part of global memory that all waves access.
const SHARED: u32 = 2048 + 64;
/// The size of scratch per lane.
const SCRATCH: u32 = 64;
/// The number of bytes that each work-item stores at the end.
const RESULTS: u32 = 64;
/// No program reaches this number of instructions.
const LIMIT: u64 = 1 << 22;

/// Instructions that neither jump nor access memory: `{d}`, `{a}` and `{b}` are VGPRs of data, `{s}` and `{t}`
/// SGPRs, and `{n}` is a small constant.
const PLAIN: &[&str] = &[
    "v_add_nc_u32 v{d}, v{a}, v{b}",
    "v_xor_b32 v{d}, {n}, v{a}",
    "v_mul_lo_u32 v{d}, v{a}, v{b}",
    "v_sub_nc_u32 v{d}, s{s}, v{b}",
    "v_lshrrev_b32 v{d}, {n}, v{a}",
    "v_perm_b32 v{d}, v{a}, v{b}, v{d}",
    "v_cndmask_b32 v{d}, v{a}, v{b}, {vcc}",
    "v_cmp_lt_u32 {vcc}, v{a}, v{b}",
    "v_readfirstlane_b32 s{s}, v{a}",
    "v_writelane_b32 v{d}, s{s}, {n}",
    "s_add_u32 s{s}, s{s}, s{t}",
    "s_bfe_u32 s{s}, s5, 0x80004",
    "s_load_b32 s{s}, s[2:3], {i}",
    "s_load_b128 s[8:11], s[2:3], {i}",
    "scratch_store_b32 off, v{a}, off offset:8",
    "scratch_load_b32 v{d}, off, off offset:8",
];

/// Loads at an offset `{o}`, with a small constant `{i}`.
const LOADS: &[&str] = &[
    "global_load_u8 v{d}, v{o}, s[2:3] offset:{i}",
    "global_load_i8 v{d}, v{o}, s[2:3] offset:{i}",
    "global_load_u16 v{d}, v{o}, s[2:3] offset:{i}",
    "global_load_d16_u8 v{d}, v{o}, s[2:3] offset:{i}",
    "global_load_d16_hi_b16 v{d}, v{o}, s[2:3] offset:{i}",
    "global_load_b32 v{d}, v{o}, s[2:3] offset:{i}",
    "global_load_b64 v[{e}:{e1}], v{o}, s[2:3] offset:{i}",
    "global_load_b128 v[{q}:{q3}], v{o}, s[2:3] offset:{i}",
    "ds_load_u8 v{d}, v{o} offset:{i}",
    "ds_load_i16 v{d}, v{o} offset:{i}",
    "ds_load_u8_d16_hi v{d}, v{o} offset:{i}",
    "ds_load_b32 v{d}, v{o} offset:{i}",
    "ds_load_b64 v[{e}:{e1}], v{o} offset:{i}",
    "ds_load_2addr_b32 v[{e}:{e1}], v{o} offset0:{j} offset1:{k}",
];

/// Stores, likewise.
const STORES: &[&str] = &[
    "global_store_b8 v{o}, v{a}, s[2:3] offset:{i}",
    "global_store_b16 v{o}, v{a}, s[2:3] offset:{i}",
    "global_store_b32 v{o}, v{a}, s[2:3] offset:{i}",
    "global_store_b64 v{o}, v[{e}:{e1}], s[2:3] offset:{i}",
    "ds_store_b8 v{o}, v{a} offset:{i}",
    "ds_store_b16 v{o}, v{a} offset:{i}",
    "ds_store_b32 v{o}, v{a} offset:{i}",
    "ds_store_2addr_b32 v{o}, v{a}, v{b} offset0:{j} offset1:{k}",
];

/// What a program contains.
#[derive(Debug, Clone, Copy)]
struct Features {
    arch: Arch,
    size: u32,
    barriers: bool,
}

/// A program of blocks with labels `b0`, `b1`, … and `m0`, `m1`, … in the middle of them. Before each block
/// and each jump, s6 is decremented, and the program ends when it was 0. s5 is the state
/// of a random generator that all waves share, unless the program makes it differ. v0 is the work-item, s4
/// the wave, s[2:3] the address of memory, s[30:31] the return address, v[1:11] data, v[20:23] offsets, and v[24:25]
/// offsets that may be scaled.
struct Builder {
    seed: u64,
    features: Features,
    blocks: u64,
    lines: Vec<String>,
}

impl Builder {
    fn any(&mut self, n: u64) -> u64 {
        random(&mut self.seed) % n
    }

    fn push(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Adds an instruction of a list, with random operands.
    fn one_of(&mut self, list: &[&str], offset: u64) {
        let mut line = list[self.any(list.len() as u64) as usize].to_string();
        let vcc = if self.features.size == 64 { "vcc" } else { "vcc_lo" };
        let (mut e, mut q) = (1 + self.any(10), 1 + self.any(8));
        let i = 4 * self.any(13) + self.any(2) * self.any(4);
        if self.extends() {
            // Several registers begin at an even one.
            (e, q) = (e.next_multiple_of(2), q.next_multiple_of(2));
        }
        let operands = [
            ("{d}", 1 + self.any(11)),
            ("{a}", 1 + self.any(11)),
            ("{b}", 1 + self.any(11)),
            ("{s}", 8 + self.any(8)),
            ("{t}", 8 + self.any(8)),
            ("{n}", self.any(32)),
            ("{e}", e),
            ("{e1}", e + 1),
            ("{q}", q),
            ("{q3}", q + 3),
            ("{i}", if line.starts_with("s_load") { i & !3 } else { i }),
            ("{j}", self.any(12)),
            ("{k}", self.any(12)),
            ("{o}", offset),
        ];
        for (name, number) in operands {
            line = line.replace(name, &number.to_string());
        }
        let scaled = offset >= 24 && line.starts_with("global_") && self.any(2) == 0;
        self.push(line.replace("{vcc}", vcc) + if scaled { " scale_offset" } else { "" });
    }

    /// Returns the number of a register with offsets.
    fn any_offset(&mut self) -> u64 {
        let count = if self.extends() { 6 } else { 4 };
        20 + self.any(count)
    }

    /// The architecture has VGPRs whose numbers MODE extends.
    fn extends(&self) -> bool {
        self.features.arch == Arch::Cdna5
    }

    /// Extends the numbers of all VGPRs by the same bits, or by others for the result and each source.
    fn extend(&mut self, same: bool) {
        let bits = if same { 0x55 * self.any(4) } else { self.any(256) };
        // Mostly, few states occur.
        let bits = if same || self.any(4) == 0 { bits } else { [0, 0x40, 0x55, 0x01][self.any(4) as usize] };
        self.push(format!("s_set_vgpr_msb {bits}"));
    }

    /// Writes an offset register, so that its lanes are contiguous, uniform or neither.
    fn offset(&mut self) {
        if self.extends() {
            self.extend(true);
        }
        let o = self.any_offset();
        // Elements of 16 bytes at scaled offsets are in memory, too.
        let (mask, strides) = if o < 24 { (0x3ff, 5) } else { (0x7f, 3) };
        let stride = 1 << self.any(strides);
        let lane = |builder: &mut Builder| {
            builder.push(format!("v_mbcnt_lo_u32_b32 v{o}, -1, 0"));
            if builder.features.size == 64 {
                builder.push(format!("v_mbcnt_hi_u32_b32 v{o}, -1, v{o}"));
            }
        };
        match self.any(8) {
            0 | 1 => {
                let offset = self.any(mask + 1);
                self.push(format!("v_mov_b32 v{o}, {offset}"));
            }
            2 | 3 => {
                lane(self);
                self.push(format!("v_mul_u32_u24 v{o}, {stride}, v{o}"));
            }
            // The packets are uniform, but not all lanes are.
            4 => {
                lane(self);
                self.push(format!("v_and_b32 v{o}, 0x38, v{o}"));
            }
            5 => {
                let a = 1 + self.any(11);
                self.push(format!("v_and_b32 v{o}, {mask:#x}, v{a}"));
            }
            6 => {
                let lane = self.any(32);
                self.push(format!("s_and_b32 s8, s5, {mask:#x}"));
                self.push(format!("v_writelane_b32 v{o}, s8, {lane}"));
            }
            _ => {
                self.push(format!("v_add_nc_u32 v{o}, {stride}, v{o}"));
                self.push(format!("v_and_b32 v{o}, {mask:#x}, v{o}"));
            }
        }
    }

    fn barrier(&mut self) {
        match self.features {
            Features { barriers: false, .. } => self.push("s_nop 0"),
            Features { arch: Arch::Rdna4 | Arch::Cdna5, .. } => {
                self.push("s_barrier_signal -1");
                self.push("s_barrier_wait -1");
            }
            _ => self.push("s_barrier"),
        }
    }

    /// Ends the program after a number of blocks and jumps.
    fn count(&mut self) {
        self.push("s_sub_u32 s6, s6, 1");
        self.push("s_cbranch_scc1 @end");
    }

    /// A computed jump to a random place, which `s_setpc_b64` or a call of `s_swappc_b64` ends.
    fn computed(&mut self, by: &str) {
        self.count();
        let target = self.target();
        self.push(format!("s_movk_i32 s26, #{target}"));
        self.push(by);
    }

    fn target(&mut self) -> String {
        let block = self.any(self.blocks);
        format!("{}{block}", if self.any(3) == 0 { "m" } else { "b" })
    }

    /// A jump that depends on the random state.
    fn branch(&mut self) {
        self.count();
        let (bit, target, on) = (self.any(31), self.target(), self.any(2));
        self.push(format!("s_bitcmp1_b32 s5, {bit}"));
        self.push(format!("s_cbranch_scc{on} @{target}"));
    }

    fn item(&mut self, inner: bool) {
        let offset = self.any_offset();
        match self.any(20) {
            0..=6 => self.one_of(LOADS, offset),
            7 | 8 => self.one_of(STORES, offset),
            9 if !inner || self.any(4) == 0 => self.offset(),
            10 => self.barrier(),
            11 => {
                let (exec, save, b) = match self.features.size {
                    64 => ("exec", "s[24:25]", "b64"),
                    _ => ("exec_lo", "s24", "b32"),
                };
                let vcc = if self.features.size == 64 { "vcc" } else { "vcc_lo" };
                let (a, c) = (1 + self.any(11), 1 + self.any(11));
                self.push(format!("v_cmp_gt_u32 {vcc}, v{a}, v{c}"));
                self.push(format!("s_and_saveexec_{b} {save}, {vcc}"));
                self.one_of(LOADS, offset);
                self.one_of(PLAIN, offset);
                self.push(format!("s_mov_{b} {exec}, {save}"));
            }
            12 if self.any(8) == 0 => {
                let mode = [0, 12, 15][self.any(3) as usize];
                self.push(format!("s_denorm_mode {mode}"));
            }
            // From here on, waves take different paths.
            13 if self.any(16) == 0 => self.push("s_xor_b32 s5, s5, s4"),
            14..=16 if self.extends() => self.extend(false),
            _ => self.one_of(PLAIN, offset),
        }
    }

    fn block(&mut self, number: u64) {
        self.push(format!("b{number}:"));
        self.count();
        self.push("s_mul_i32 s5, s5, 0x19660d");
        self.push("s_addk_i32 s5, 0x3c6f");
        for _ in 0..self.any(4) {
            self.item(false);
        }
        let looped = self.any(3) > 0;
        if looped {
            let count = 1 + self.any(9);
            self.push(format!("s_movk_i32 s7, {count}"));
            self.push(format!("l{number}:"));
        }
        let (count, middle) = (1 + self.any(6), self.any(2));
        for n in 0..count {
            if n == middle {
                self.push(format!("m{number}:"));
            }
            self.item(true);
            match self.any(16) {
                0 if looped => self.branch(),
                1 if looped => self.computed("s_swappc_b64 s[30:31], s[26:27]"),
                _ => {}
            }
        }
        if middle >= count {
            self.push(format!("m{number}:"));
        }
        if looped {
            self.push("s_sub_u32 s7, s7, 1");
            self.push("s_cmp_gt_i32 s7, 0");
            self.push(format!("s_cbranch_scc1 @l{number}"));
        }
        // Most blocks end with a computed jump, after which another unit begins.
        match self.any(8) {
            0 => {}
            1 => self.branch(),
            2 | 3 => self.computed("s_swappc_b64 s[30:31], s[26:27]"),
            4 => {
                self.count();
                self.push("s_setpc_b64 s[30:31]");
            }
            _ => self.computed("s_setpc_b64 s[26:27]"),
        }
    }

    fn program(seed: u64, features: Features) -> Vec<String> {
        let mut builder = Builder { seed, features, blocks: 0, lines: Vec::new() };
        (0..4).for_each(|_| _ = builder.any(2));
        builder.blocks = 3 + builder.any(10);
        let (random, fuel) = (builder.any(1 << 32), 20 + builder.any(400));
        let shift = if features.size == 64 { 6 } else { 5 };
        for line in [
            "s_mov_b32 s2, 0x100000",
            "s_mov_b32 s3, 0",
            "s_mov_b32 s27, 0",
            "s_mov_b32 s31, 0",
            "s_movk_i32 s30, #end",
            "v_readfirstlane_b32 s4, v0",
        ] {
            builder.push(line);
        }
        builder.push(format!("s_lshr_b32 s4, s4, {shift}"));
        builder.push(format!("s_mov_b32 s5, {random}"));
        builder.push(format!("s_movk_i32 s6, {fuel}"));
        for register in 1..12 {
            let factor = random_odd(&mut builder.seed);
            builder.push(format!("v_mul_lo_u32 v{register}, {factor}, v0"));
        }
        for bank in (1..4).filter(|_| features.arch == Arch::Cdna5) {
            builder.push(format!("s_set_vgpr_msb {}", bank << 6));
            for register in (1..12).chain(20..26) {
                let mask = [u64::MAX, 7, 1][(register >= 20) as usize + (register >= 24) as usize];
                let factor = random_odd(&mut builder.seed) & mask;
                builder.push(format!("v_mul_lo_u32 v{register}, {factor}, v0"));
            }
        }
        for _ in 0..6 {
            builder.offset();
        }
        for block in 0..builder.blocks {
            builder.block(block);
        }
        builder.push("end:");
        // The results of a work-item are beyond the shared part of memory.
        builder.push(format!(
            "s_mov_b{0} exec{1}, -1",
            features.size,
            if features.size == 64 { "" } else { "_lo" }
        ));
        if features.arch == Arch::Cdna5 {
            for bank in 1..4 {
                builder.push(format!("s_set_vgpr_msb {bank}"));
                (1..12).for_each(|n| builder.push(format!("v_xor_b32 v{n}, v{n}, v{n}")));
            }
            builder.push("s_set_vgpr_msb 0");
        }
        builder.push("v_mov_b32 v12, s5");
        builder.push("v_lshlrev_b32 v0, 6, v0");
        let all = if features.arch == Arch::Cdna5 { [2, 6, 8, 20] } else { [1, 5, 9, 20] };
        for (n, first) in all.into_iter().enumerate() {
            let (last, offset) = (first + 3, SHARED.next_multiple_of(64) as usize + 16 * n);
            builder.push(format!("global_store_b128 v0, v[{first}:{last}], s[2:3] offset:{offset}"));
        }
        builder.push("s_endpgm");
        builder.lines
    }
}

fn random_odd(seed: &mut u64) -> u64 {
    (random(seed) % (1 << 31)) | 1
}

/// Memory of `waves` waves: what they share, then their results.
fn buffer(waves: u32, size: u32) -> Vec<u8> {
    let bytes = SHARED.next_multiple_of(64) + RESULTS * waves * size;
    (0..bytes).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 21) as u8).collect()
}

/// Maps bytes at [`BASE`] while a function runs.
fn with_memory<T>(data: &mut [u8], f: impl FnOnce(&Memory) -> T) -> T {
    let mut memory = Memory::empty();
    // SAFETY: `data` outlives `memory`.
    unsafe { memory.map_host(BASE, data.as_mut_ptr(), data.len() as u64, true) }.expect("room");
    f(&memory)
}

/// Launches one workgroup.
fn launch(
    program: &Program,
    (waves, size, mode): (u32, u32, u32),
    schedule: Schedule,
    max_instructions: u64,
    code: Option<&Jit>,
) -> (Result<RunStats, Box<Fault>>, Vec<u8>) {
    let mut data = buffer(waves, size);
    let shape = Shape {
        grid: [1, 1, 1],
        cluster: [1; 3],
        named_barriers: 16,
        block: [waves * size, 1, 1],
        wave_size: size,
        lds_bytes: SHARED,
        scratch_bytes: SCRATCH,
        registers: Registers::ALL,
        init: InitialState {
            layout: Layout::Text { group_ids: [true, false, false], item_ids: [true, false, false] },
            mode,
            sgprs: Vec::new(),
        },
        entry_pc: 0,
        code_base: 0,
    };
    let dispatch = Dispatch {
        schedule,
        compiled: code.map(|code| code as &(dyn Compiled + Sync)),
        ..Dispatch::new(program, &shape, max_instructions)
    };
    let result = with_memory(&mut data, |memory| dispatch::run(&dispatch, memory));
    (result, data)
}

/// The state of waves that take turns.
struct Machine {
    waves: Vec<Wave>,
    ended: Vec<bool>,
    data: Vec<u8>,
    lds: Vec<u8>,
    scratch: Vec<Vec<u8>>,
    executed: u64,
}

impl Machine {
    fn new(waves: u32, size: u32, mode: u32) -> Machine {
        let wave = |number: u32| {
            let mut wave = start(size, mode);
            wave.id = number;
            for half in 0..wave.halves() {
                let first = number * size + 32 * half as u32;
                wave.set_lane_vec(half, 0, LaneVec(std::array::from_fn(|lane| first + lane as u32)));
            }
            wave
        };
        Machine {
            waves: (0..waves).map(wave).collect(),
            ended: vec![false; waves as usize],
            data: buffer(waves, size),
            lds: vec![0; SHARED as usize],
            scratch: vec![vec![0; (SCRATCH * size) as usize]; waves as usize],
            executed: 0,
        }
    }

    /// Runs a turn of a wave.
    fn turn(&mut self, program: &Program, wave: usize, budget: u64, code: Option<&Jit>) {
        if self.ended[wave] {
            return;
        }
        let Machine { waves, ended, data, lds, scratch, executed } = self;
        let mut workgroup = Workgroup::new(1);
        let result = with_memory(data, |memory| {
            let mut context = Context {
                memory,
                lds,
                scratch: &mut scratch[wave],
                scratch_stride: SCRATCH,
                workgroup: &mut workgroup,
                instructions: *executed,
                cancel: None,
            };
            let code = code.map(|code| code as &dyn Compiled);
            let (wave, others) = (&mut waves[wave], &mut interp::SingleWave);
            interp::run_waves(program, wave, &mut context, budget, executed, code, others)
        });
        match result {
            Ok(()) => {}
            Err(Event::EndPgm) => ended[wave] = true,
            Err(event) => panic!("{event:?}"),
        }
    }

    /// Describes the first difference to another machine.
    fn difference(&self, other: &Machine) -> Option<String> {
        if (self.executed, &self.ended) != (other.executed, &other.ended) {
            return Some(format!("{} instructions instead of {}", self.executed, other.executed));
        }
        for (n, (a, b)) in self.waves.iter().zip(&other.waves).enumerate() {
            if (a.pc, a.scc, a.sgprs, a.mode) != (b.pc, b.scc, b.sgprs, b.mode) {
                return Some(format!("wave {n}: PC {:x} and {:x}, or scalar state", a.pc, b.pc));
            }
            if let Some(at) = registers(a, 32).iter().zip(registers(b, 32)).position(|(a, b)| *a != b) {
                return Some(format!("wave {n} at {:x}: v{} of half {}", a.pc, at % 32, at / 32));
            }
            let extended = (1..4).flat_map(|bank| 256 * bank..256 * bank + 32);
            if let Some(at) = extended.into_iter().find(|v| a.find_vgpr(0, *v) != b.find_vgpr(0, *v)) {
                return Some(format!("wave {n} at {:x}: v{at}", a.pc));
            }
        }
        (self.data != other.data || self.lds != other.lds || self.scratch != other.scratch)
            .then(|| "memory".to_string())
    }
}

/// Runs waves in turns that end anywhere, interpreted and compiled, and compares them after each turn.
fn compare_turns(
    program: &Program,
    (waves, size, mode): (u32, u32, u32),
    code: &Jit,
    seed: &mut u64,
    text: &dyn Fn() -> String,
) {
    let [mut plain, mut compiled] = [(); 2].map(|()| Machine::new(waves, size, mode));
    while plain.ended.contains(&false) {
        let wave = (random(seed) % waves as u64) as usize;
        // Short turns are interpreted, so that the next one begins anywhere. Code runs in the long ones.
        let budget = if random(seed).is_multiple_of(4) { 1 } else { 1024 } + random(seed) % 60;
        plain.turn(program, wave, budget, None);
        compiled.turn(program, wave, budget, Some(code));
        if let Some(difference) = compiled.difference(&plain) {
            panic!("{difference}\n{}", text());
        }
        assert!(plain.executed < LIMIT, "the program does not end\n{}", text());
    }
}

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Compares random programs. `WAVESIM_SEED` and `WAVESIM_PROGRAMS` extend the search.
fn random_programs(arch: Arch) {
    let (first, count) = (env("WAVESIM_SEED", 1) << 20, env("WAVESIM_PROGRAMS", 60));
    let (mut entered, mut units, mut paths) = (0, 0, [0; 2]);
    for case in first..first + count {
        let mut seed = case << 8 ^ arch as u64;
        let mut any = |n: u64| random(&mut seed) % n;
        let size = if any(3) == 0 && arch != Arch::Cdna5 { 64 } else { 32 };
        let shape = (1 + any(4) as u32, size, [0xf0, 0xc0][any(2) as usize]);
        let threshold = [0, 0, 1, 5][any(4) as usize];
        let features = Features { arch, size, barriers: any(2) == 0 };
        let lines = Builder::program(any(u64::MAX), features);
        let program = assemble(arch, size, &lines);
        let text = || format!("{arch:?} case {case}, {shape:?}, threshold {threshold}\n{}", lines.join("\n"));
        let code = match any(2) {
            0 => Jit::checked(&program, threshold),
            _ => Jit::with_threshold(&program, threshold),
        };
        let code = code.expect("a supported host");
        if !features.barriers {
            compare_turns(&program, shape, &code, &mut seed, &text);
        }
        for schedule in [Schedule::RoundRobin, Schedule::Reverse] {
            for limit in [LIMIT, 1030 + random(&mut seed) % 3000] {
                let expected = launch(&program, shape, schedule, limit, None);
                assert!(limit < LIMIT || expected.0.is_ok(), "{expected:?}\n{}", text());
                // In the second run, code exists from the beginning.
                for run in 0..2 {
                    let found = launch(&program, shape, schedule, limit, Some(&code));
                    assert_eq!(found.0, expected.0, "run {run}\n{}", text());
                    assert!(found.1 == expected.1, "{schedule:?}, limit {limit}, run {run}\n{}", text());
                }
            }
        }
        let stats = code.stats();
        assert_eq!(stats.failed, 0, "{}", text());
        entered += code.has_code() as u64;
        units += stats.units as u64;
        paths[0] += stats.paths.cached_offsets as u64;
        paths[1] += stats.paths.fast_runs as u64;
    }
    // Fewer loops have a special path if other VGPRs are extended in each.
    let least = if arch == Arch::Cdna5 { count / 3 } else { count };
    assert!(paths.iter().all(|emitted| *emitted > least), "{paths:?} special paths");
    assert!(2 * entered > count && units > 2 * count, "{entered} of {count} programs, {units} units");
}

#[test]
fn random_programs_rdna3() {
    random_programs(Arch::Rdna3);
}

#[test]
fn random_programs_rdna4() {
    random_programs(Arch::Rdna4);
}

/// With VGPRs beyond v255: blocks are reached with different bits in MODE, units begin with any of them, and handlers
/// run among compiled code.
#[test]
fn random_programs_cdna5() {
    random_programs(Arch::Cdna5);
}

/// Units track the bits that extend VGPR numbers instead of running the instruction that sets them.
#[test]
fn tracked_bits_are_those_that_the_semantics_set() {
    for immediate in 0..256 {
        let lines = [format!("s_set_vgpr_msb {immediate}"), "s_endpgm".to_string()];
        let program = assemble(Arch::Cdna5, 32, &lines);
        let mut machine = Machine::new(1, 32, 0xf0);
        machine.turn(&program, 0, LIMIT, None);
        let tracked = vgpr_msbs_after(&program, 0);
        assert_eq!(tracked, Some(machine.waves[0].mode & VGPR_MSBS), "{immediate:#x}");
        assert_eq!(vgpr_msbs_after(&program, 1), None);
    }
}

/// A unit classifies the offsets in v20, another one those in v21. Both call the result by the same number,
/// and the second one runs right after the first.
#[test]
fn cached_facts_belong_to_one_unit() {
    for (first, bytes, second) in [
        ("ds_load_u8 v1, v20", 1, "ds_load_u8 v2, v21"),
        ("global_load_u8 v1, v20, s[2:3]", 1, "global_load_u8 v2, v21, s[2:3]"),
        ("global_load_b32 v1, v20, s[2:3]", 4, "global_load_u16 v2, v21, s[2:3]"),
        ("ds_load_u16 v1, v20", 2, "global_load_b32 v2, v21, s[2:3]"),
    ] {
        let unit = |name: &str, access: &str, sum: &str| {
            [
                format!("{name}:"),
                "s_movk_i32 s7, 5".to_string(),
                format!("l{name}:"),
                access.to_string(),
                sum.to_string(),
                "s_sub_u32 s7, s7, 1".to_string(),
                "s_cmp_gt_i32 s7, 0".to_string(),
                format!("s_cbranch_scc1 @l{name}"),
                "s_setpc_b64 s[30:31]".to_string(),
            ]
        };
        let call =
            |name: &str| [format!("s_movk_i32 s26, #{name}"), "s_swappc_b64 s[30:31], s[26:27]".into()];
        let offsets = format!("v_mul_u32_u24 v20, {bytes}, v0");
        let begin = [
            "s_mov_b32 s2, 0x100000",
            "s_mov_b32 s3, 0",
            "s_mov_b32 s27, 0",
            &offsets,
            "v_mov_b32 v21, 8",
            "ds_store_b32 v20, v0",
            "s_movk_i32 s6, 4",
            "again:",
        ];
        let end = ["s_sub_u32 s6, s6, 1", "s_cmp_gt_i32 s6, 0", "s_cbranch_scc1 @again", "s_endpgm"];
        let lines: Vec<String> = begin
            .map(String::from)
            .into_iter()
            .chain(call("f"))
            .chain(call("g"))
            // Nor does the first unit's fact survive that another unit writes v20.
            .chain(["v_xor_b32 v20, 4, v20".to_string()])
            .chain(end.map(String::from))
            .chain(unit("f", first, "v_add_nc_u32 v3, v3, v1"))
            .chain(unit("g", second, "v_add_nc_u32 v4, v4, v2"))
            .collect();
        for size in [32, 64] {
            let program = assemble(Arch::Rdna3, size, &lines);
            let code = Jit::with_threshold(&program, 0).expect("a supported host");
            let [mut plain, mut compiled] = [(); 2].map(|()| Machine::new(1, size, 0xf0));
            plain.turn(&program, 0, LIMIT, None);
            compiled.turn(&program, 0, LIMIT, Some(&code));
            assert_eq!(compiled.difference(&plain), None, "wave{size}, {first}, {second}");
            assert!(plain.ended[0] && code.stats().units > 3);
            assert_eq!(code.stats().paths.cached_offsets, 2, "each unit looks up one classification");
        }
    }
}
