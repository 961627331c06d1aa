//! `print` directives of text kernels, which show registers whenever execution reaches them.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::ControlFlow;
use wavesim_array::show;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{File, register_name};
use wavesim_machine::state::Wave;
use wavesim_machine::state::wave::M0;
use wavesim_text::print::{Print, PrintArg, PrintRegister};

/// Evaluates the directives when a wave is about to execute the instruction after them.
pub struct Prints<'a> {
    prints: &'a [Print],
    /// By wave of the workgroup: whether its last instruction jumped.
    jumped: Vec<bool>,
    /// The same, of parked workgroups.
    parked: HashMap<[u32; 3], Vec<bool>>,
    out: &'a mut dyn Write,
    error: Option<io::Error>,
}

impl<'a> Prints<'a> {
    /// Creates an observer that evaluates `prints` and writes to `out`.
    pub fn new(prints: &'a [Print], out: &'a mut dyn Write) -> Prints<'a> {
        Prints { prints, jumped: Vec::new(), parked: HashMap::new(), out, error: None }
    }

    /// Returns the first write error, if there was one.
    pub fn finish(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }
}

/// Returns the output of a directive for a wave; `None` if the directive selects another wave.
fn show(arch: Arch, print: &Print, wave: &Wave) -> Option<String> {
    if print.wave.is_some_and(|w| w != wave.id) {
        return None;
    }
    // A work-item is a lane of one wave.
    let lane = match print.thread {
        Some(thread) if thread / wave.size() != wave.id => return None,
        thread => thread.map(|t| t % wave.size()),
    };
    let [x, y, z] = wave.workgroup;
    let mut out = format!("line {}: workgroup ({x},{y},{z}) wave {}", print.line, wave.id);
    if let Some(lane) = lane {
        out.push_str(&format!(" lane {lane}"));
    }
    out.push('\n');
    for arg in &print.args {
        register(arch, arg, wave, lane, &mut out);
    }
    Some(out)
}

fn register(arch: Arch, arg: &PrintArg, wave: &Wave, lane: Option<u32>, out: &mut String) {
    // A 64-bit type takes two registers.
    let step = if arg.dtype.is_some_and(|d| d.size() == 8) { 2 } else { 1 };
    let digits = wave.size() as usize / 4;
    match arg.register {
        PrintRegister::Exec => out.push_str(&format!("  exec = 0x{:0digits$x}\n", wave.exec())),
        PrintRegister::Vcc => out.push_str(&format!("  vcc = 0x{:0digits$x}\n", wave.vcc())),
        PrintRegister::Scc => out.push_str(&format!("  scc = {}\n", wave.scc)),
        PrintRegister::M0 => out.push_str(&format!("  m0 = 0x{:08x}\n", wave.sgprs[M0])),
        PrintRegister::Sgpr(first, count) => {
            for r in (first..first + count).step_by(step as usize) {
                let n = step.min(first + count - r);
                let bits = (0..n).fold(0u64, |v, k| v | (wave.sgpr((r + k) as u32) as u64) << (32 * k));
                let name = register_name(arch, File::Sgpr, r, n);
                out.push_str(&format!("  {name} = {}\n", show::bits(bits, arg.dtype, n)));
            }
        }
        PrintRegister::Vgpr(first, count) => {
            for r in (first..first + count).step_by(step as usize) {
                let n = step.min(first + count - r);
                let value = |lane: u32| {
                    let bits =
                        (0..n).fold(0u64, |v, k| v | (wave.vgpr(lane, (r + k) as u32) as u64) << (32 * k));
                    show::bits(bits, arg.dtype, n)
                };
                let name = register_name(arch, File::Vgpr, r, n);
                match lane {
                    Some(lane) => out.push_str(&format!("  {name} = {}\n", value(lane))),
                    None => {
                        let list: Vec<(u32, String)> = (0..wave.size()).map(|l| (l, value(l))).collect();
                        out.push_str(&format!("  {name} =\n{}", show::lanes(&list, wave.exec())));
                    }
                }
            }
        }
    }
}

impl Observer for Prints<'_> {
    fn group_started(&mut self, _workgroup: [u32; 3], waves: usize) {
        self.jumped.clear();
        self.jumped.resize(waves, false);
    }

    fn group_parked(&mut self, workgroup: [u32; 3]) {
        self.parked.insert(workgroup, std::mem::take(&mut self.jumped));
    }

    fn group_resumed(&mut self, workgroup: [u32; 3]) {
        self.jumped = self.parked.remove(&workgroup).unwrap_or_default();
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let jumped = self.jumped[step.wave.id as usize];
        // Directives are sorted by offset, so those of this instruction are adjacent.
        let first = self.prints.partition_point(|p| p.pc < step.pc);
        let here = self.prints[first..].iter().take_while(|p| p.pc == step.pc);
        for print in here.filter(|p| !(jumped && p.above_label)) {
            if let (Some(text), None) = (show(step.program.arch, print, step.wave), &self.error) {
                self.error = self.out.write_all(text.as_bytes()).err();
            }
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.jumped[step.wave.id as usize] = done.jumped;
    }
}
