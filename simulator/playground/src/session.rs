//! The debugger of a page: commands, and the state after each as JSON.

use crate::diagnose::launch;
use crate::program::{Program, encode};
use crate::run::{fault_json, output};
use self_cell::self_cell;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use wavesim_debug::command::Debugger;
use wavesim_debug::explain::explain;
use wavesim_debug::expr::{self, Register};
use wavesim_debug::search::WriteSearch;
use wavesim_debug::timeline::Timeline;
use wavesim_debug::view;
use wavesim_engine::sched::dispatch::{Dispatch, DispatchError, INTERRUPT};
use wavesim_engine::sched::group::Status;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{self, Effects, File, register_name};
use wavesim_machine::state::wave::{M0, VCC_LO};

self_cell!(
    /// A kernel and its launch.
    struct Launch {
        owner: Prepared,
        #[covariant]
        dependent: Dispatch,
    }
);

self_cell!(
    /// A debugger and what it runs.
    struct Running {
        owner: Launch,
        #[not_covariant]
        dependent: Debugger,
    }
);

/// How often a command polls before it returns to the page, which then goes on with it or not. `continue` polls at
/// least once per turn of a wave.
const POLLS: u32 = 2000;

thread_local! {
    static POLLS_LEFT: Cell<u32> = const { Cell::new(0) };
    /// Whether the last command has been paused.
    static PAUSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a command has run long enough.
fn out_of_polls() -> bool {
    let left = POLLS_LEFT.get();
    POLLS_LEFT.set(left.saturating_sub(1));
    let pause = left == 0 || INTERRUPT.load(Ordering::Relaxed);
    PAUSED.set(PAUSED.get() | pause);
    pause
}

/// What the page shows.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct View {
    /// Selects a wave.
    pub wave: Option<usize>,
    /// Selects a lane.
    pub lane: Option<u32>,
    /// The VGPR whose values all lanes of all waves are coloured by.
    pub grid: Option<u16>,
}

/// A debugger with what its state is computed from.
pub struct Session {
    running: Running,
    effects: Vec<Effects>,
    /// Registers that the program mentions.
    sgprs: Vec<u16>,
    vgprs: Vec<u16>,
}

impl Session {
    /// A debugger at the start of a run.
    pub fn start(program: &Program, max_instructions: u64) -> Result<Session, String> {
        let prepared = program.prepare(0)?;
        let effects = effects::table(&prepared.program, prepared.shape.wave_size);
        let mentioned = |file: File, most: u16| -> Vec<u16> {
            let uses = effects.iter().flat_map(|e| e.reads.iter().chain(&e.writes));
            let uses = uses.filter(|u| u.file == file);
            let numbers: BTreeSet<u16> =
                uses.flat_map(|u| u.first..u.first.saturating_add(u.count)).collect();
            numbers.into_iter().filter(|n| *n < most).collect()
        };
        let (sgprs, vgprs) = (mentioned(File::Sgpr, VCC_LO as u16), mentioned(File::Vgpr, 256));
        let launch = Launch::new(prepared, |prepared| prepared.dispatch(max_instructions));
        let running = Running::try_new(launch, |launch| {
            let timeline = Timeline::new(launch.borrow_owner(), launch.borrow_dependent())?;
            Ok(Debugger::new(timeline, out_of_polls))
        });
        let running = running.map_err(|e: DispatchError| e.to_string())?;
        Ok(Session { running, effects, sgprs, vgprs })
    }

    fn prepared(&self) -> &Prepared {
        self.running.borrow_owner().borrow_owner()
    }

    fn select(&mut self, view: &View) {
        self.running.with_dependent_mut(|_, debugger| {
            if let Some(wave) = view.wave.filter(|w| *w < debugger.timeline.waves()) {
                debugger.focus.wave = wave;
            }
            let size = debugger.timeline.wave(debugger.focus.wave).size;
            if let Some(lane) = view.lane.filter(|l| *l < size) {
                debugger.focus.lane = lane;
            }
        });
    }

    /// Runs a command (or none), and gives what it wrote and the state.
    pub fn command(&mut self, line: &str, view: &View) -> Result<Value, String> {
        self.select(view);
        if line.is_empty() {
            return Ok(self.state(view));
        }
        POLLS_LEFT.set(POLLS);
        PAUSED.set(false);
        let (result, _) = self.running.with_dependent_mut(|_, debugger| debugger.execute(line));
        let mut state = self.state(view);
        match result {
            Ok(text) => state["text"] = json!(text),
            Err(message) => state["failed"] = json!(message),
        }
        // The page sends the command again, unless its user has had enough.
        state["paused"] = json!(PAUSED.get());
        Ok(state)
    }

    /// The whole state, as the page shows it.
    pub fn state(&self, view: &View) -> Value {
        self.running.with_dependent(|_, debugger| self.state_of(debugger, view))
    }

    fn state_of(&self, debugger: &Debugger<'_>, view: &View) -> Value {
        let timeline = &debugger.timeline;
        let program = &timeline.prepared.program;
        let focus = debugger.focus;
        let wave = timeline.wave(focus.wave);
        let line = |pc: u64| program.inst_at(pc).map(|at| program.lines[at]);
        let waves: Vec<Value> = (0..timeline.waves())
            .map(|at| {
                let w = timeline.wave(at);
                let ended = timeline.status(at) == Status::Ended;
                let grid = view.grid.map(|r| (0..w.size).map(|l| w.vgpr(l, r as u32)).collect::<Vec<_>>());
                json!({
                    "status": view::status_text(timeline.status(at)),
                    "ended": ended,
                    "exec": hex(w.exec()),
                    "pc": w.pc,
                    "line": if ended { None } else { line(w.pc) },
                    "text": program.inst_at(w.pc).map(|at| program.text(at)),
                    "grid": grid,
                })
            })
            .collect();
        let memory = timeline.memory();
        let sgprs: Vec<Value> = self
            .sgprs
            .iter()
            .map(|&r| {
                let low = wave.sgpr(r as u32);
                // The first of two registers that hold the address of an argument.
                let address = low as u64 | (wave.sgpr(r as u32 + 1) as u64) << 32;
                let name = memory.describe(address).filter(|_| address != 0);
                let name = name.map(|n| n.strip_suffix("+0x0").map_or(n.clone(), str::to_string));
                json!({"name": register_name(program.arch, File::Sgpr, r, 1), "value": low, "points": name})
            })
            .collect();
        let vgprs: Vec<Value> = self
            .vgprs
            .iter()
            .map(|&r| {
                let values: Vec<u32> = (0..wave.size).map(|l| wave.vgpr(l, r as u32)).collect();
                json!({"name": register_name(program.arch, File::Vgpr, r, 1), "number": r, "values": values})
            })
            .collect();
        let (index, total) = timeline.position();
        let at = program.inst_at(wave.pc);
        let names = |uses: &[effects::Use]| -> Vec<String> {
            let of = |u: &effects::Use| register_name(program.arch, u.file, u.start(wave), u.count);
            uses.iter().map(of).collect()
        };
        let breakpoints: Vec<Option<u32>> = debugger.breakpoints.iter().map(|b| line(b.pc)).collect();
        json!({
            "launch": launch(timeline.prepared),
            "time": timeline.time(),
            "finished": timeline.finished(),
            "stuck": timeline.next_wave().is_none(),
            "fault": timeline.fault().map(fault_json),
            "workgroup": timeline.workgroup(),
            "index": index,
            "total": total,
            "wave": focus.wave,
            "lane": focus.lane,
            "waves": waves,
            "scalars": {
                "pc": wave.pc, "scc": wave.scc, "mode": wave.mode, "m0": wave.sgprs[M0],
                "vcc": hex(wave.vcc()), "exec": hex(wave.exec()),
            },
            "sgprs": sgprs,
            "vgprs": vgprs,
            "reads": at.map(|at| names(&self.effects[at].reads)),
            "writes": at.map(|at| names(&self.effects[at].writes)),
            "explain": explain(timeline, focus, None).unwrap_or_else(|message| message),
            "instruction": at.map(|at| program.insts[at].instruction(program.arch.table()).name.to_lowercase()),
            "listing": match &timeline.prepared.source {
                Some(_) => None,
                None => Some(view::listing(timeline, wave.pc, 12, &debugger.breakpoints)),
            },
            "breakpoints": breakpoints,
            "buffers": timeline.prepared.buffers.iter().map(|b| b.name.as_str()).collect::<Vec<_>>(),
        })
    }

    /// The last write of a register before now: its step, line and instruction.
    pub fn last_write(&mut self, wave: usize, lane: u32, register: &str) -> Result<Value, String> {
        let effects = &self.effects;
        self.running.with_dependent_mut(|_, debugger| {
            let timeline = &mut debugger.timeline;
            if wave >= timeline.waves() || lane >= timeline.wave(wave).size {
                return Err(format!("there is no wave {wave} with a lane {lane}"));
            }
            let wide = timeline.wave(wave).size == 64;
            let arch = timeline.prepared.program.arch;
            let (file, number) = match expr::register(register, wide, arch) {
                Some(Register::Sgpr(first, _)) => (File::Sgpr, first),
                Some(Register::Vgpr(first, _)) => (File::Vgpr, first),
                Some(Register::Scc) => (File::Scc, 0),
                _ => return Err(format!("`{register}` is not a register whose writes are recorded")),
            };
            let workgroup = timeline.workgroup();
            let lane = (file == File::Vgpr).then_some(lane);
            let mut search = WriteSearch::new(effects, workgroup, wave, (file, number), lane);
            let start = timeline.group_start(timeline.position().0).unwrap_or(0);
            let Some(time) = timeline.find_back(start, &mut search) else { return Ok(Value::Null) };
            let now = timeline.time();
            timeline.go_to(time);
            let pc = timeline.wave(wave).pc;
            let program = &timeline.prepared.program;
            let at = program.inst_at(pc);
            let found = json!({
                "time": time,
                "line": at.map(|at| program.lines[at]),
                "text": at.map(|at| program.text(at)),
            });
            timeline.go_to(now);
            Ok(found)
        })
    }

    /// The content of an argument, or of LDS (`lds`).
    pub fn memory(&mut self, name: &str) -> Result<Value, String> {
        if name == "lds" {
            let lds = self.running.with_dependent(|_, debugger| encode(&debugger.timeline.group.lds));
            return Ok(json!({"name": "lds", "dtype": "u32", "data": lds, "address": 0}));
        }
        let buffer = self.prepared().buffer(name).ok_or_else(|| format!("no argument is called `{name}`"))?;
        let array = buffer.read(&self.prepared().memory).map_err(|e| e.to_string())?;
        let mut value = output(name, &array);
        value["address"] = json!(buffer.address);
        Ok(value)
    }
}

/// 64-bit masks as text: numbers of browsers are floats.
fn hex(mask: u64) -> String {
    format!("{mask:x}")
}
