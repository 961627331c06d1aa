//! The debugger of a page: commands, and the resulting state as JSON.

use crate::budget::{self, Budget, Need, RESIDENT_BYTES, Reservation};
use crate::diagnose::launch;
use crate::program::{Program, encode};
use crate::run::{fault_json, output};
use self_cell::self_cell;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wavesim_debug::command::Debugger;
use wavesim_debug::explain::explain;
use wavesim_debug::expr::{self, Register};
use wavesim_debug::search::WriteSearch;
use wavesim_debug::timeline::{MIN_CHECKPOINTS, Timeline};
use wavesim_debug::view;
use wavesim_engine::sched::dispatch::{Dispatch, DispatchError};
use wavesim_engine::sched::group::Status;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{self, Effects, File, register_name};
use wavesim_machine::state::wave::{M0, VCC_LO};

self_cell!(
    /// A kernel and its launch.
    struct Launch {
        owner: (Prepared, Arc<AtomicBool>),
        #[covariant]
        dependent: Dispatch,
    }
);

self_cell!(
    /// A debugger and its launch.
    struct Running {
        owner: Launch,
        #[not_covariant]
        dependent: Debugger,
    }
);

/// Number of polls after which a command returns to the page, which may then repeat the command to continue.
/// `continue` polls at least once per turn of a wave.
const POLLS: u32 = 2000;
/// The same for a search in the background: about a second.
const SEARCH_POLLS: u32 = 60;
/// Commands that continue where they stopped if they are repeated.
const RESUMABLE: [&str; 7] = ["c", "continue", "u", "until", "fin", "finish", "advance"];
/// Maximum total size of the debugger's checkpoints: a browser page has less memory than a process.
const CHECKPOINT_BYTES: usize = 64 << 20;
/// Maximum number of bytes of memory in an answer.
const MAX_PART: u64 = 1 << 20;

/// The conditions under which a command of the debugger ends early.
struct PollBudget {
    /// Set by other threads to end the command.
    interrupt: Arc<AtomicBool>,
    polls_left: Cell<u32>,
    /// Whether the command has ended because its polls are used up.
    paused: Cell<bool>,
}

impl PollBudget {
    fn reset(&self, polls: u32) {
        self.polls_left.set(polls);
        self.paused.set(false);
    }

    /// Returns whether the command must end.
    fn should_stop(&self) -> bool {
        let left = self.polls_left.get();
        self.polls_left.set(left.saturating_sub(1));
        self.paused.set(self.paused.get() || left == 0);
        left == 0 || self.interrupt.load(Ordering::Relaxed)
    }
}

/// The parts of the state that the page shows.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct View {
    /// Selects a wave.
    pub wave: Option<usize>,
    /// Selects a lane.
    pub lane: Option<u32>,
    /// The VGPR whose values colour all lanes of all waves.
    pub grid: Option<u16>,
}

/// A debugger, and the data from which its state is computed.
pub struct Session {
    running: Running,
    budget: Rc<PollBudget>,
    effects: Vec<Effects>,
    /// Registers that the program names.
    sgprs: Vec<u16>,
    vgprs: Vec<u16>,
}

impl Session {
    /// Starts a debugger at the start of a run. Returns the memory that it takes with it.
    pub fn start(
        program: &Program,
        max_instructions: u64,
        interrupt: Arc<AtomicBool>,
        budget: &Arc<Budget>,
    ) -> Result<(Session, Reservation), String> {
        let mut reserved = budget.wait_for(budget::preparing(program.len_bytes()), &interrupt)?;
        let prepared = program.prepare(0)?;
        let need = Need::of(&prepared, &prepared.dispatch(max_instructions));
        reserved.resize(need.debug(CHECKPOINT_BYTES, MIN_CHECKPOINTS))?;
        let effects = effects::table(&prepared.program, prepared.shape.wave_size);
        let mentioned = |file: File, most: u16| -> Vec<u16> {
            let uses = effects.iter().flat_map(|e| e.reads.iter().chain(&e.writes));
            let uses = uses.filter(|u| u.file == file);
            let numbers: BTreeSet<u16> =
                uses.flat_map(|u| u.first..u.first.saturating_add(u.count)).collect();
            numbers.into_iter().filter(|n| *n < most).collect()
        };
        let (sgprs, vgprs) = (mentioned(File::Sgpr, VCC_LO as u16), mentioned(File::Vgpr, 256));
        let budget = PollBudget { interrupt, polls_left: Cell::new(0), paused: Cell::new(false) };
        let budget = Rc::new(budget);
        let launch = Launch::new((prepared, budget.interrupt.clone()), |(prepared, interrupt)| {
            let mut dispatch = prepared.dispatch(max_instructions);
            dispatch.cancel = Some(interrupt);
            dispatch.resident_bytes = RESIDENT_BYTES;
            dispatch
        });
        let running = Running::try_new(launch, |launch| {
            let mut timeline = Timeline::new(&launch.borrow_owner().0, launch.borrow_dependent())?;
            timeline.limit_checkpoints(CHECKPOINT_BYTES);
            let budget = budget.clone();
            Ok(Debugger::new(timeline, move || budget.should_stop()))
        });
        let running = running.map_err(|e: DispatchError| e.to_string())?;
        Ok((Session { running, budget, effects, sgprs, vgprs }, reserved))
    }

    fn prepared(&self) -> &Prepared {
        &self.running.borrow_owner().borrow_owner().0
    }

    fn select(&mut self, view: &View) {
        self.running.with_dependent_mut(|_, debugger| {
            if let Some(wave) = view.wave.filter(|w| *w < debugger.timeline.waves()) {
                debugger.focus.wave = wave;
            }
            let size = debugger.timeline.wave(debugger.focus.wave).size();
            if let Some(lane) = view.lane.filter(|l| *l < size) {
                debugger.focus.lane = lane;
            }
        });
    }

    /// Executes a command, if any, and returns its output and the state.
    pub fn command(&mut self, line: &str, view: &View) -> Result<Value, String> {
        self.select(view);
        if line.is_empty() {
            return Ok(self.state(view));
        }
        // A command that cannot continue where it stopped is never paused.
        let resumable = line.split_whitespace().next().is_some_and(|name| RESUMABLE.contains(&name));
        self.budget.reset(if resumable { POLLS } else { u32::MAX });
        let (result, _) = self.running.with_dependent_mut(|_, debugger| debugger.execute(line));
        let mut state = self.state(view);
        match result {
            Ok(text) => state["text"] = json!(text),
            Err(message) => state["failed"] = json!(message),
        }
        // The page repeats the command, unless its user interrupts it.
        state["paused"] = json!(self.budget.paused.get());
        Ok(state)
    }

    /// Returns the whole state, as the page shows it.
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
                let grid = view.grid.map(|r| (0..w.size()).map(|l| w.vgpr(l, r as u32)).collect::<Vec<_>>());
                json!({
                    "status": view::status_text(timeline.status(at)),
                    "ended": ended,
                    "exec": hex(w.exec()),
                    "pc": w.pc,
                    "address": program.address(w.pc),
                    "line": if ended { None } else { line(w.pc).filter(|line| *line != 0) },
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
                let values: Vec<u32> = (0..wave.size()).map(|l| wave.vgpr(l, r as u32)).collect();
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
            "scratch": timeline.prepared.shape.scratch_bytes,
            "buffers": timeline.prepared.buffers.iter().map(|b| b.name.as_str()).collect::<Vec<_>>(),
        })
    }

    /// Returns the last write of a register before the current time: its step, line and instruction. Returns
    /// `unknown` if the search takes too long.
    pub fn last_write(&mut self, wave: usize, lane: u32, register: &str) -> Result<Value, String> {
        let effects = &self.effects;
        self.budget.reset(SEARCH_POLLS);
        self.running.with_dependent_mut(|_, debugger| {
            let timeline = &mut debugger.timeline;
            if wave >= timeline.waves() || lane >= timeline.wave(wave).size() {
                return Err(format!("there is no wave {wave} with a lane {lane}"));
            }
            let wide = timeline.wave(wave).size() == 64;
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
            let found = timeline.find_back(start, &mut search);
            if timeline.take_cancelled() {
                return Ok(json!({"unknown": true}));
            }
            let Some(time) = found else { return Ok(Value::Null) };
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

    /// Returns a part of an argument, of LDS (`lds`), or of the selected lane's scratch (`scratch`), in
    /// bytes.
    pub fn memory(&mut self, name: &str, from: u64, len: u64) -> Result<Value, String> {
        let len = if len == 0 { MAX_PART } else { len.min(MAX_PART) };
        let part = |bytes: &[u8]| -> (u64, u64, String) {
            let total = bytes.len() as u64;
            let from = from.min(total);
            let to = from.saturating_add(len).min(total);
            (total, from, encode(&bytes[from as usize..to as usize]))
        };
        let own = |(total, from, data): (u64, u64, String)| json!({"name": name, "dtype": "u32", "total": total, "from": from, "data": data, "address": from});
        match name {
            "lds" => {
                return Ok(own(self.running.with_dependent(|_, d| part(&d.timeline.group.lds))));
            }
            "scratch" => {
                let (lane, wave) = self.running.with_dependent(|_, d| (d.focus.lane as usize, d.focus.wave));
                let stride = self.prepared().shape.scratch_bytes as usize;
                return Ok(own(self.running.with_dependent(|_, d| {
                    let size = d.timeline.wave(wave).size() as usize;
                    let mut own = vec![0; stride];
                    let read = d.timeline.group.read_scratch(wave * size + lane, 0, &mut own);
                    part(read.map_or(&[], |()| &own[..]))
                })));
            }
            _ => {}
        }
        let buffer = self.prepared().buffer(name).ok_or_else(|| format!("no argument is called `{name}`"))?;
        let array = buffer.read(&self.prepared().memory).map_err(|e| e.to_string())?;
        let mut value = output(name, &array);
        let (total, from, data) = part(&array.bytes);
        value["total"] = json!(total);
        value["from"] = json!(from);
        value["data"] = json!(data);
        value["address"] = json!(buffer.address + from);
        Ok(value)
    }
}

/// Formats a 64-bit mask as text, since browsers represent numbers as floats.
fn hex(mask: u64) -> String {
    format!("{mask:x}")
}
