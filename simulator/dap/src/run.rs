//! Execution and stops: threads, steps, continuing and going back.

use super::protocol::{GotoArguments, LineArguments, StepArguments};
use super::session::{Answer, Session};
use serde_json::{Value, json};
use wavesim_debug::stop::Stop;
use wavesim_debug::view;
use wavesim_engine::sched::group::Status;

/// The requested execution. It runs in slices, between which requests are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// Runs all waves to the next stop.
    Continue,
    /// Runs all waves, continuing after an interruption by a request.
    Resumed,
    /// Executes one instruction of the selected wave.
    Instruction { over: bool },
    /// Executes one source line of the selected wave.
    Line { over: bool },
    /// Runs the selected wave until its frame has returned, or to its end.
    Out,
}

impl Session<'_, '_> {
    pub fn configuration_done(&mut self) -> Answer {
        self.configured = true;
        Ok(json!({}))
    }

    /// Performs the actions that follow the response to a request: events must come after the response.
    pub fn after(&mut self, command: &str) {
        match command {
            "configurationDone" if self.arguments.stop_on_entry => self.report("entry"),
            "configurationDone" => {
                self.debugger.begin();
                self.run = Some(Run::Resumed);
            }
            "stepBack" => self.report("step"),
            "reverseContinue" => self.report("step"),
            "goto" => self.report("goto"),
            "pause" => self.report("pause"),
            "continue" | "next" | "stepIn" | "stepOut" if self.ended => self.terminated(),
            _ => {}
        }
    }

    /// Returns the thread id of a wave: its number among all waves of the grid, counted from 1.
    fn thread(&self, wave: usize) -> i64 {
        let timeline = &self.debugger.timeline;
        (timeline.position().0 * timeline.waves() as u64 + wave as u64 + 1) as i64
    }

    /// Selects the wave of a thread.
    pub fn select_thread(&mut self, thread: i64) -> Result<(), String> {
        let wave = (0..self.debugger.timeline.waves()).find(|&wave| self.thread(wave) == thread);
        self.debugger.focus.wave = wave.ok_or("the workgroup of this wave does not run now")?;
        self.debugger.select_frame(0)
    }

    pub fn threads(&self) -> Value {
        let timeline = &self.debugger.timeline;
        let [x, y, z] = timeline.workgroup();
        let threads: Vec<Value> = (0..timeline.waves())
            .map(|wave| {
                let status = match timeline.status(wave) {
                    Status::Running => String::new(),
                    status => format!(" ({})", view::status_text(status)),
                };
                let name = format!("workgroup ({x},{y},{z}) wave {wave}{status}");
                json!({"id": self.thread(wave), "name": name})
            })
            .collect();
        json!({"threads": threads})
    }

    fn idle(&self) -> Result<(), String> {
        if self.run.is_some() { Err("the kernel runs; `pause` stops it".to_string()) } else { Ok(()) }
    }

    pub fn start(&mut self, run: Run, arguments: StepArguments) -> Answer {
        self.idle()?;
        self.select_thread(arguments.thread_id)?;
        if !self.ended {
            self.forget_handles();
            self.debugger.begin();
            self.run = Some(run);
        }
        Ok(json!({"allThreadsContinued": true}))
    }

    pub fn start_step(&mut self, command: &str, arguments: StepArguments) -> Answer {
        let instruction = arguments.granularity.as_deref() == Some("instruction");
        let over = command == "next";
        let run = match command {
            "stepOut" => Run::Out,
            _ if instruction || !self.listing.has_lines() => Run::Instruction { over },
            _ => Run::Line { over },
        };
        self.start(run, arguments)
    }

    pub fn step_back(&mut self, arguments: StepArguments) -> Answer {
        self.idle()?;
        self.select_thread(arguments.thread_id)?;
        self.forget_handles();
        self.debugger.step_back()?;
        self.ended = false;
        Ok(json!({}))
    }

    pub fn reverse_continue(&mut self, arguments: StepArguments) -> Answer {
        self.idle()?;
        self.select_thread(arguments.thread_id)?;
        self.forget_handles();
        self.debugger.run_back();
        self.ended = false;
        Ok(json!({}))
    }

    pub fn pause(&mut self) -> Answer {
        if self.run.take().is_none() {
            return Err("the kernel does not run".to_string());
        }
        self.debugger.stops = vec![Stop::Interrupted];
        Ok(json!({}))
    }

    pub fn goto_targets(&mut self, arguments: LineArguments) -> Answer {
        let line = arguments.line + 1 - self.client.first_line;
        let prepared = self.debugger.timeline.prepared;
        let lines = self.listing.lines(prepared, &arguments.source, self.host)?;
        let first = lines.get(&line).ok_or("there is no instruction in this line")?;
        let text = view::instruction(&self.debugger.timeline, *first);
        Ok(json!({"targets": [{"id": first, "label": text, "line": arguments.line}]}))
    }

    pub fn goto(&mut self, arguments: GotoArguments) -> Answer {
        self.idle()?;
        self.select_thread(arguments.thread_id)?;
        let pc = self.debugger.timeline.prepared.program.address(arguments.target_id);
        self.forget_handles();
        self.debugger.assign("pc", &format!("0x{pc:x}"))?;
        self.debugger.stops = vec![Stop::Done];
        Ok(json!({}))
    }

    /// Runs until the kernel stops or a request is waiting.
    pub fn run_slice(&mut self) {
        let Some(run) = self.run else { return };
        let result = match run {
            Run::Continue => self.debugger.run_while(true, &[], &mut |_, _| false),
            Run::Resumed => self.debugger.run_while(false, &[], &mut |_, _| false),
            Run::Instruction { over: true } => self.debugger.step_over_call(),
            Run::Instruction { over: false } => self.debugger.step_wave(1),
            Run::Line { over } => self.debugger.step_line(over),
            Run::Out => self.debugger.finish_frame(),
        };
        for line in std::mem::take(&mut self.debugger.log) {
            self.sender.output("console", &line);
        }
        if let Err(message) = result {
            self.sender.output("stderr", &message);
            self.run = None;
            self.report("breakpoint");
            return;
        }
        if self.debugger.stops.last() == Some(&Stop::Interrupted) {
            self.debugger.stops.clear();
            if run == Run::Continue {
                self.run = Some(Run::Resumed);
            }
            return;
        }
        self.run = None;
        self.report("step");
    }

    /// Reports to the client that the kernel has stopped. `done` is the reason if the command has completed.
    pub fn report(&mut self, done: &str) {
        self.show_threads();
        let stops = self.debugger.stops.clone();
        let ended = stops.iter().any(|s| matches!(s, Stop::Ended { .. }));
        if ended {
            self.show_outputs();
            if self.arguments.stop_at_end == Some(false) {
                self.terminated();
                return;
            }
            self.ended = true;
        }
        let exception = stops.iter().find(|s| matches!(s, Stop::Finding(_) | Stop::Fault(_)));
        let Some(stop) = exception.or(stops.first()) else { return };
        let reason = match stop {
            Stop::Done | Stop::Early(_) => done,
            Stop::Start => "entry",
            Stop::Breakpoint { number, .. } => self.kind_of(*number),
            Stop::Watchpoint { .. } => "data breakpoint",
            Stop::Finding(_) | Stop::Fault(_) | Stop::Deadlock | Stop::Limit(_) => "exception",
            Stop::Ended { .. } | Stop::Interrupted => "pause",
        };
        let hits: Vec<u32> = stops
            .iter()
            .filter_map(|s| match s {
                Stop::Breakpoint { number, .. } | Stop::Watchpoint { number, .. } => Some(*number),
                _ => None,
            })
            .collect();
        let mut body = json!({
            "reason": reason, "threadId": self.thread(self.debugger.focus.wave), "allThreadsStopped": true,
        });
        let title = stop.title();
        if !title.is_empty() {
            body["description"] = json!(title);
            body["text"] = json!(title);
        }
        if !hits.is_empty() {
            body["hitBreakpointIds"] = json!(hits);
        }
        // The console shows details that do not fit into a title.
        for stop in &stops {
            match stop {
                Stop::Finding(_) | Stop::Watchpoint { .. } => {
                    self.sender.output("console", &stop.to_string())
                }
                Stop::Fault(fault) => self.sender.output("stderr", &fault.to_string()),
                Stop::Deadlock => {
                    let waves = view::waves(&self.debugger.timeline, self.debugger.focus);
                    self.sender.output("stderr", &format!("{stop}{waves}"));
                }
                Stop::Ended { .. } | Stop::Limit(_) => self.sender.output("console", &stop.to_string()),
                _ => {}
            }
        }
        self.sender.event("stopped", body);
    }

    /// Reports the threads that have started and ended when another workgroup runs.
    fn show_threads(&mut self) {
        let now: Vec<i64> = (0..self.debugger.timeline.waves()).map(|wave| self.thread(wave)).collect();
        if now == self.reported_threads {
            return;
        }
        for id in &self.reported_threads {
            self.sender.event("thread", json!({"reason": "exited", "threadId": id}));
        }
        for id in &now {
            self.sender.event("thread", json!({"reason": "started", "threadId": id}));
        }
        self.reported_threads = now;
    }

    /// Sends the outputs of the kernel in the format of `wavesim run`.
    fn show_outputs(&mut self) {
        for buffer in self.debugger.timeline.prepared.buffers.iter().filter(|b| b.output) {
            if let Ok(array) = buffer.read(self.debugger.timeline.memory()) {
                let shape: Vec<String> = buffer.shape.iter().map(u64::to_string).collect();
                let text = wavesim_array::show::show(&array, false);
                let (name, dtype) = (&buffer.name, buffer.dtype.name());
                self.sender.output("stdout", &format!("{name}: {dtype}[{}] =\n{text}", shape.join(",")));
            }
        }
    }

    /// Ends the session.
    pub fn terminated(&mut self) {
        let code = i32::from(self.debugger.timeline.fault().is_some());
        self.sender.event("exited", json!({"exitCode": code}));
        self.sender.event("terminated", json!({}));
    }

    pub fn exception_info(&mut self) -> Answer {
        let stops = &self.debugger.stops;
        let (id, text, detail) = stops
            .iter()
            .find_map(|stop| match stop {
                Stop::Finding(f) => Some((f.check.name().to_string(), f.message.clone(), f.to_string())),
                Stop::Fault(f) => Some((f.kind.name().to_string(), f.message.clone(), f.to_string())),
                Stop::Deadlock => {
                    let waves = view::waves(&self.debugger.timeline, self.debugger.focus);
                    Some(("deadlock".to_string(), stop.title(), waves))
                }
                Stop::Limit(_) => Some(("limit".to_string(), stop.title(), String::new())),
                _ => None,
            })
            .ok_or("the kernel has not stopped for a check or a fault")?;
        Ok(json!({
            "exceptionId": id, "description": text, "breakMode": "always",
            "details": {"message": text, "typeName": id, "stackTrace": detail},
        }))
    }
}
