//! State as text: positions, listings, registers, memory. [`super::explain`] shows the semantics of an
//! instruction.

use super::breakpoint::Breakpoint;
use super::expr::{Focus, Register};
use super::format::Format;
use super::frames::source_place;
use super::timeline::Timeline;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use wavesim_array::{DType, show};
use wavesim_engine::sched::group::Status;
use wavesim_isa::arch::Arch;
use wavesim_loader::debug_info::SourcePlace;
use wavesim_machine::exec::effects::{File, register_name};
use wavesim_machine::state::Wave;
use wavesim_machine::state::barrier::CLUSTER_INDEX;
use wavesim_machine::state::gws;
use wavesim_machine::state::wave::VCC_LO;

/// Returns the instruction at a PC: `line 12: v_add_f32 …` or, without source, `pc 0x30: …`.
pub fn instruction(timeline: &Timeline<'_>, pc: u64) -> String {
    let program = &timeline.prepared.program;
    match program.inst_at(pc) {
        Some(at) => format!("{}: {}", program.place(pc), program.text(at)),
        None => format!("{}: outside the program", program.place(pc)),
    }
}

/// Returns one line: the step, the workgroup, the wave and its instruction.
pub fn position(timeline: &Timeline<'_>, wave: usize) -> String {
    let [x, y, z] = timeline.workgroup();
    let w = timeline.wave(wave);
    let what = match timeline.status(wave) {
        Status::Ended => "has ended".to_string(),
        _ => instruction(timeline, w.pc),
    };
    format!("[step {}] workgroup ({x},{y},{z}) wave {wave}: {what}", timeline.time())
}

/// Returns the status as text: `runs`, `waits at the barrier` or `has ended`.
pub fn status_text(status: Status) -> String {
    match status {
        Status::Running => "runs".to_string(),
        Status::Waiting(0) => "waits at the barrier".to_string(),
        Status::Waiting(CLUSTER_INDEX) => "waits at the cluster's barrier".to_string(),
        Status::Waiting(n) => match gws::resource_of(n) {
            Some((number, _)) => format!("waits at global wave sync resource {number}"),
            None => format!("waits at barrier {n}"),
        },
        Status::Ended => "has ended".to_string(),
    }
}

/// Returns one line for each wave: status, EXEC and position.
pub fn waves(timeline: &Timeline<'_>, focus: Focus) -> String {
    let mut out = String::new();
    let (at, total) = timeline.position();
    let [x, y, z] = timeline.workgroup();
    // Writing to a string does not fail.
    let others = match timeline.suspended() {
        0 => String::new(),
        n => format!("; {n} more {} begun", if n == 1 { "has" } else { "have" }),
    };
    let _ = writeln!(out, "workgroup ({x},{y},{z}), number {} of {total}{others}", at + 1);
    for wave in 0..timeline.waves() {
        let w = timeline.wave(wave);
        let mark = if wave == focus.wave { '*' } else { ' ' };
        let digits = w.size() as usize / 4;
        let _ = writeln!(
            out,
            "{mark} wave {wave:<2} {:<21} exec {:0digits$x}  {}",
            status_text(timeline.status(wave)),
            w.exec(),
            instruction(timeline, w.pc)
        );
    }
    out
}

/// Returns the lines of source around a PC, or the instructions if there is no source.
pub fn listing(timeline: &Timeline<'_>, pc: u64, around: usize, breakpoints: &[Breakpoint]) -> String {
    let program = &timeline.prepared.program;
    let mut out = String::new();
    let stops: Vec<u64> = breakpoints.iter().flat_map(Breakpoint::pcs).collect();
    // Padding between functions has no line number.
    let placed = program.inst_at(pc).filter(|at| program.lines[*at] != 0);
    if let (Some(source), Some(at)) = (&timeline.prepared.source, placed) {
        let here = program.lines[at] as usize;
        let stop_lines: Vec<u32> =
            stops.iter().filter_map(|pc| program.inst_at(*pc)).map(|at| program.lines[at]).collect();
        for (number, text) in (1usize..).zip(source.text.lines()) {
            if number + around < here || number > here + around {
                continue;
            }
            let mark = if number == here { "=>" } else { "  " };
            let stop = if stop_lines.contains(&(number as u32)) { 'b' } else { ' ' };
            let _ = writeln!(out, "{mark}{stop}{number:>4}  {text}");
        }
        return out;
    }
    let at = program.pcs.partition_point(|p| *p < pc);
    for at in at.saturating_sub(around)..(at + around + 1).min(program.insts.len()) {
        let mark = if program.pcs[at] == pc { "=>" } else { "  " };
        let stop = if stops.contains(&program.pcs[at]) { 'b' } else { ' ' };
        let address = program.address(program.pcs[at]);
        let _ = writeln!(out, "{mark}{stop}{address:>5x}  {}", program.text(at));
    }
    out
}

/// Returns the lines of a source file around a place.
pub fn source(
    timeline: &Timeline<'_>,
    text: &str,
    place: &SourcePlace,
    around: usize,
    breakpoints: &[Breakpoint],
) -> String {
    let here = place.line as usize;
    let stops: Vec<SourcePlace> = breakpoints
        .iter()
        .flat_map(Breakpoint::pcs)
        .filter_map(|pc| source_place(timeline.prepared, pc))
        .filter(|stop| stop.path == place.path)
        .collect();
    let mut out = String::new();
    for (number, line) in (1usize..).zip(text.lines()) {
        if number + around < here || number > here + around {
            continue;
        }
        let mark = if number == here { "=>" } else { "  " };
        let stop = if stops.iter().any(|stop| stop.line as usize == number) { 'b' } else { ' ' };
        let _ = writeln!(out, "{mark}{stop}{number:>4}  {line}");
    }
    out
}

/// Returns the scalar state and the registers that are not zero.
pub fn registers(timeline: &Timeline<'_>, focus: Focus) -> String {
    let w = timeline.frame_wave(focus.wave);
    let digits = w.size() as usize / 4;
    let arch = timeline.prepared.program.arch;
    let pc = timeline.prepared.program.address(w.pc);
    let mut out = String::new();
    let _ = match arch.machine() {
        // Here EXEC is one of the scalar registers listed below.
        Some(_) => writeln!(out, "pc 0x{pc:x}"),
        None => writeln!(
            out,
            "pc 0x{pc:x}  exec {:0digits$x}  vcc {:0digits$x}  scc {}  m0 {:x}  mode {:x}",
            w.exec(),
            w.vcc(),
            w.scc,
            w.sgprs[wavesim_machine::state::wave::M0],
            w.mode
        ),
    };
    out.push_str(&scalars(arch, w));
    let used: Vec<u16> = (0..256).filter(|r| (0..w.size()).any(|l| w.vgpr(l, *r as u32) != 0)).collect();
    if used.is_empty() {
        out.push_str("all VGPRs are 0\n");
    }
    for r in used {
        let name = register_name(arch, File::Vgpr, r, 1);
        let _ = writeln!(out, "{name:<4} lane {}: {:08x}", focus.lane, w.vgpr(focus.lane, r as u32));
    }
    out
}

/// Returns the operand codes of the scalar registers that listings show.
pub fn scalar_codes(arch: Arch) -> Vec<u16> {
    match arch.machine() {
        Some(timeline) => (0..timeline.scalar.count).map(|n| timeline.scalar.code(n)).collect(),
        None => (0..VCC_LO as u16).collect(),
    }
}

fn scalars(arch: Arch, w: &Wave) -> String {
    let mut out = String::new();
    let mut count = 0;
    for r in scalar_codes(arch).into_iter().filter(|r| w.sgpr(*r as u32) != 0) {
        let _ = write!(out, "{:<4} {:08x}", register_name(arch, File::Sgpr, r, 1), w.sgpr(r as u32));
        count += 1;
        out.push_str(if count % 4 == 0 { "\n" } else { "   " });
    }
    if count == 0 {
        return "all SGPRs are 0\n".to_string();
    }
    if count % 4 != 0 {
        let end = out.trim_end().len();
        out.truncate(end);
        out.push('\n');
    }
    out
}

/// Returns the values of one or more registers; of VGPRs, in `lanes` or in all lanes.
pub fn register(
    timeline: &Timeline<'_>,
    focus: Focus,
    what: Register,
    format: Option<Format>,
    lanes: Option<RangeInclusive<u32>>,
) -> Result<String, String> {
    let w = timeline.frame_wave(focus.wave);
    let arch = timeline.prepared.program.arch;
    let mut out = String::new();
    // A 64-bit type takes two registers.
    let step = format.map_or(1, Format::registers);
    match what {
        Register::Sgpr(first, count) => {
            let mask = matches!(
                first as usize,
                wavesim_machine::state::wave::VCC_LO | wavesim_machine::state::wave::EXEC_LO
            );
            let step = if mask && count == 2 { 2 } else { step };
            for r in (first..first + count).step_by(step as usize) {
                let n = step.min(first + count - r);
                let bits = (0..n).fold(0u64, |v, k| v | (w.sgpr((r + k) as u32) as u64) << (32 * k));
                let _ = writeln!(
                    out,
                    "{} = {}",
                    register_name(arch, File::Sgpr, r, n),
                    Format::bits(format, bits, n)
                );
            }
        }
        Register::Vgpr(first, count) => {
            let lanes = lanes.unwrap_or(0..=w.size() - 1);
            if *lanes.end() >= w.size() {
                return Err(format!(
                    "there is no lane {}; the wave has lanes 0 to {}",
                    lanes.end(),
                    w.size() - 1
                ));
            }
            for r in (first..first + count).step_by(step as usize) {
                let n = step.min(first + count - r);
                let value = |l| {
                    let bits = (0..n).fold(0u64, |v, k| v | (w.vgpr(l, (r + k) as u32) as u64) << (32 * k));
                    Format::bits(format, bits, n)
                };
                let list: Vec<(u32, String)> = lanes.clone().map(|l| (l, value(l))).collect();
                let _ = writeln!(out, "{}", register_name(arch, File::Vgpr, r, n));
                out.push_str(&show::lanes(&list, w.exec()));
            }
        }
        Register::Scc => {
            let _ = writeln!(out, "scc = {}", w.scc);
        }
        Register::Pc => {
            let _ = writeln!(out, "pc = 0x{:x}", timeline.prepared.program.address(w.pc));
        }
        Register::Mode => {
            let _ = writeln!(out, "mode = 0x{:x}", w.mode);
        }
        Register::Status => {
            let status = wavesim_machine::exec::hwreg::status(
                timeline.prepared.program.arch,
                w,
                &timeline.group.shared,
            );
            let _ = writeln!(out, "status = 0x{status:x}");
        }
    }
    Ok(out)
}

/// Returns memory as a table of values. Addresses count units of `unit` bytes.
pub fn memory(bytes: &[u8], start: u64, unit: u64, dtype: DType) -> String {
    let size = dtype.size();
    let values: Vec<String> = bytes
        .chunks_exact(size)
        .map(|b| {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(b);
            show::bits(u64::from_le_bytes(wide), Some(dtype), 1)
        })
        .collect();
    let width = values.iter().map(String::len).max().unwrap_or(1);
    let columns = [16, 8, 4, 2].into_iter().find(|c| c * (width + 1) <= 64).unwrap_or(1);
    let mut out = String::new();
    for (row, cells) in values.chunks(columns).enumerate() {
        let _ = write!(out, "0x{:x}:", start + (row * columns * size) as u64 / unit);
        for cell in cells {
            let _ = write!(out, " {cell:>width$}");
        }
        out.push('\n');
    }
    out
}
