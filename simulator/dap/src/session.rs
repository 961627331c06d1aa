//! A session: reads and answers requests, and runs the kernel in between.

use super::Host;
use super::protocol::{InitializeArguments, LaunchArguments, Request};
use super::run::Run;
use super::source::Listing;
use super::variables::{Handle, NamedObject};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use wavesim_debug::command::Debugger;
use wavesim_debug::timeline::Timeline;
use wavesim_engine::sched::dispatch::Dispatch;
use wavesim_inspect::check::Check;

/// The id of a frame is that of its thread, plus this number for each frame inside it.
pub(super) const FRAME: i64 = 1 << 40;

/// The result of a request: the body of the response, or an error message.
pub(super) type Answer = Result<Value, String>;

/// Properties that the client has announced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client {
    /// The number of the first line: 0 or 1.
    pub first_line: i64,
    /// The number of the first column.
    pub first_column: i64,
    /// Whether the client supports the `invalidated` event.
    pub invalidated: bool,
}

/// Sends responses and events with sequence numbers.
pub(super) struct Sender<'h> {
    host: &'h dyn Host,
    number: Cell<i64>,
}

impl Sender<'_> {
    fn number(&self) -> i64 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    pub fn event(&self, event: &str, body: Value) {
        self.host.send(&json!({"seq": self.number(), "type": "event", "event": event, "body": body}));
    }

    /// Sends text for the console of the client.
    pub fn output(&self, category: &str, text: &str) {
        if !text.is_empty() {
            let text = if text.ends_with('\n') { text.to_string() } else { format!("{text}\n") };
            self.event("output", json!({"category": category, "output": text}));
        }
    }

    pub fn respond(&self, request: &Request, answer: Answer) {
        let mut message = json!({
            "seq": self.number(), "type": "response", "request_seq": request.seq,
            "success": answer.is_ok(), "command": request.command,
        });
        match answer {
            Ok(body) => message["body"] = body,
            Err(text) => {
                // `format` is a template in which braces denote variables.
                let format = text.replace('{', "(").replace('}', ")");
                message["message"] = json!(text);
                message["body"] = json!({"error": {"id": 1, "format": format, "showUser": true}});
            }
        }
        self.host.send(&message);
    }
}

/// Serves one client until it disconnects.
pub fn serve(host: &dyn Host) {
    let sender = Sender { host, number: Cell::new(0) };
    let mut client = Client { first_line: 1, first_column: 1, invalidated: false };
    while let Some(message) = host.receive() {
        let request = match message {
            Ok(request) => request,
            Err(text) => {
                sender.output("stderr", &text);
                continue;
            }
        };
        match request.command.as_str() {
            "initialize" => {
                let answer = initialize(&request, &mut client);
                sender.respond(&request, answer);
            }
            "launch" => match arguments(&request).and_then(|a| Ok((host.load(&a)?, a))) {
                Ok((launch, arguments)) => {
                    let prepared = &launch.prepared;
                    let (schedule, order) = (launch.schedule, launch.order);
                    let mut dispatch =
                        Dispatch { schedule, order, ..prepared.dispatch(launch.max_instructions) };
                    let model = match launch
                        .recorded
                        .as_ref()
                        .map(|recorded| recorded.model(&prepared.program, prepared.shape.wave_size))
                    {
                        Some(Err(e)) => {
                            sender.respond(&request, Err(e.to_string()));
                            continue;
                        }
                        Some(Ok(model)) => model,
                        None => None,
                    };
                    if let Some(recorded) = launch.recorded {
                        dispatch.follow(recorded);
                        dispatch.delayed = model.as_ref();
                    }
                    let timeline = match Timeline::new(prepared, &dispatch) {
                        Ok(timeline) => timeline,
                        Err(e) => {
                            sender.respond(&request, Err(e.to_string()));
                            continue;
                        }
                    };
                    let debugger = Debugger::new(timeline, || host.waiting());
                    let mut session = Session::new(&sender, client, debugger, arguments);
                    sender.respond(&request, Ok(json!({})));
                    sender.event("initialized", json!({}));
                    if session.serve() {
                        return;
                    }
                }
                Err(message) => sender.respond(&request, Err(message)),
            },
            "attach" => {
                let message = "there is nothing to attach to; use `launch`, which starts a kernel";
                sender.respond(&request, Err(message.to_string()));
            }
            "disconnect" | "terminate" => {
                sender.respond(&request, Ok(json!({})));
                if request.command == "disconnect" {
                    return;
                }
            }
            other => sender.respond(&request, Err(format!("`{other}` needs a kernel: `launch` comes first"))),
        }
    }
}

/// Serves a client that attaches to a launch of a running program, until it disconnects. Returns the run,
/// which need not have ended.
pub fn serve_attached<'a>(host: &'a dyn Host, timeline: Timeline<'a>) -> Timeline<'a> {
    let sender = Sender { host, number: Cell::new(0) };
    let mut client = Client { first_line: 1, first_column: 1, invalidated: false };
    while let Some(message) = host.receive() {
        let Ok(request) = message.inspect_err(|text| sender.output("stderr", text)) else { continue };
        match request.command.as_str() {
            "initialize" => {
                let answer = initialize(&request, &mut client);
                sender.respond(&request, answer);
            }
            "attach" => {
                let allowed = arguments(&request).and_then(|a: LaunchArguments| host.admit(&a).map(|()| a));
                let arguments = match allowed {
                    Ok(arguments) => LaunchArguments { stop_on_entry: true, ..arguments },
                    Err(message) => {
                        sender.respond(&request, Err(message));
                        continue;
                    }
                };
                let debugger = Debugger::new(timeline, || host.waiting());
                let mut session = Session::new(&sender, client, debugger, arguments);
                sender.respond(&request, Ok(json!({})));
                sender.event("initialized", json!({}));
                session.serve();
                return session.debugger.into_timeline();
            }
            "disconnect" => {
                sender.respond(&request, Ok(json!({})));
                break;
            }
            other => {
                let message = format!("`{other}` needs a launch: `attach` to the one that waits comes first");
                sender.respond(&request, Err(message));
            }
        }
    }
    timeline
}

fn initialize(request: &Request, client: &mut Client) -> Answer {
    arguments(request).map(|a: InitializeArguments| {
        let first = |starts_at_1: Option<bool>| i64::from(starts_at_1 != Some(false));
        *client = Client {
            first_line: first(a.lines_start_at_1),
            first_column: first(a.columns_start_at_1),
            invalidated: a.supports_invalidated_event,
        };
        capabilities()
    })
}

/// Parses the arguments of a request; absent arguments are treated as empty.
pub(super) fn arguments<A: DeserializeOwned>(request: &Request) -> Result<A, String> {
    let value = if request.arguments.is_null() { json!({}) } else { request.arguments.clone() };
    serde_json::from_value(value).map_err(|e| format!("arguments of `{}`: {e}", request.command))
}

fn capabilities() -> Value {
    let filter = |check: &Check| json!({"filter": check.name(), "label": format!("Check: {}", check.title()), "default": false});
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true,
        "supportsInstructionBreakpoints": true,
        "supportsDataBreakpoints": true,
        "supportsDataBreakpointBytes": true,
        "supportsBreakpointLocationsRequest": true,
        "supportsStepBack": true,
        "supportsSteppingGranularity": true,
        "supportsSetVariable": true,
        "supportsSetExpression": true,
        "supportsEvaluateForHovers": true,
        "supportsCompletionsRequest": true,
        "completionTriggerCharacters": [" "],
        "supportsGotoTargetsRequest": true,
        "supportsReadMemoryRequest": true,
        "supportsWriteMemoryRequest": true,
        "supportsDisassembleRequest": true,
        "supportsExceptionInfoRequest": true,
        "supportsTerminateRequest": true,
        "supportsValueFormattingOptions": true,
        "supportsDelayedStackTraceLoading": true,
        "exceptionBreakpointFilters": Check::ALL.iter().map(filter).collect::<Vec<_>>(),
    })
}

/// The state of a debugged kernel.
pub(super) struct Session<'a, 's> {
    pub sender: &'s Sender<'s>,
    pub host: &'s dyn Host,
    pub client: Client,
    pub debugger: Debugger<'a>,
    pub listing: Listing,
    pub arguments: LaunchArguments,
    /// The objects of variable references, which count from 1. They are valid until the kernel runs again.
    pub handles: Vec<Handle>,
    /// Variables of the source, each with the expression that names it and the frame.
    pub objects: Vec<NamedObject>,
    /// The breakpoints of the client, by source or kind.
    pub breakpoints: BTreeMap<String, Vec<u32>>,
    /// The data breakpoints of the client.
    pub watched: Vec<u32>,
    /// The execution in progress.
    pub run: Option<Run>,
    /// Whether the client has sent its breakpoints.
    pub configured: bool,
    /// Whether the run has ended and this has been reported to the client.
    pub ended: bool,
    /// The threads that have been reported to the client.
    pub reported_threads: Vec<i64>,
}

impl<'a, 's> Session<'a, 's> {
    fn new(
        sender: &'s Sender<'s>,
        client: Client,
        mut debugger: Debugger<'a>,
        arguments: LaunchArguments,
    ) -> Session<'a, 's> {
        if let Some(files) = sender.host.files(&arguments) {
            debugger.set_files(files);
        }
        let listing = Listing::new(debugger.timeline.prepared, sender.host);
        Session {
            sender,
            host: sender.host,
            client,
            debugger,
            listing,
            arguments,
            handles: Vec::new(),
            objects: Vec::new(),
            breakpoints: BTreeMap::new(),
            watched: Vec::new(),
            run: None,
            configured: false,
            ended: false,
            reported_threads: Vec::new(),
        }
    }
}

impl Session<'_, '_> {
    /// Answers requests until the client disconnects (returns true) or the session ends (returns false).
    fn serve(&mut self) -> bool {
        loop {
            if self.run.is_some() {
                self.run_slice();
                if self.run.is_some() && !self.host.waiting() {
                    continue;
                }
            }
            let request = match self.host.receive() {
                None => return true,
                Some(Err(text)) => {
                    self.sender.output("stderr", &text);
                    continue;
                }
                Some(Ok(request)) => request,
            };
            let answer = self.answer(&request);
            let done = answer.is_ok();
            self.sender.respond(&request, answer);
            match request.command.as_str() {
                "disconnect" => return true,
                "terminate" => {
                    self.run = None;
                    self.terminated();
                }
                _ if done => self.after(&request.command),
                _ => {}
            }
        }
    }

    fn answer(&mut self, request: &Request) -> Answer {
        match request.command.as_str() {
            "configurationDone" => self.configuration_done(),
            "setBreakpoints" => self.set_breakpoints(arguments(request)?),
            "setFunctionBreakpoints" => self.set_function_breakpoints(arguments(request)?),
            "setInstructionBreakpoints" => self.set_instruction_breakpoints(arguments(request)?),
            "setDataBreakpoints" => self.set_data_breakpoints(arguments(request)?),
            "dataBreakpointInfo" => self.data_breakpoint_info(arguments(request)?),
            "setExceptionBreakpoints" => self.set_exception_breakpoints(arguments(request)?),
            "breakpointLocations" => self.breakpoint_locations(arguments(request)?),
            "threads" => Ok(self.threads()),
            "stackTrace" => self.stack_trace(arguments(request)?),
            "scopes" => self.scopes(arguments(request)?),
            "variables" => self.variables(arguments(request)?),
            "setVariable" => self.set_variable(arguments(request)?),
            "setExpression" => self.set_expression(arguments(request)?),
            "evaluate" => self.evaluate(arguments(request)?),
            "completions" => self.completions(arguments(request)?),
            "source" => self.source(arguments(request)?),
            "disassemble" => self.disassemble(arguments(request)?),
            "readMemory" => self.read_memory(arguments(request)?),
            "writeMemory" => self.write_memory(arguments(request)?),
            "gotoTargets" => self.goto_targets(arguments(request)?),
            "goto" => self.goto(arguments(request)?),
            "continue" => self.start(Run::Continue, arguments(request)?),
            "next" | "stepIn" | "stepOut" => self.start_step(&request.command, arguments(request)?),
            "stepBack" => self.step_back(arguments(request)?),
            "reverseContinue" => self.reverse_continue(arguments(request)?),
            "pause" => self.pause(),
            "exceptionInfo" => self.exception_info(),
            "disconnect" | "terminate" => Ok(json!({})),
            "initialize" | "launch" => Err("the kernel has been launched already".to_string()),
            other => Err(format!("the request `{other}` is not supported")),
        }
    }

    /// Selects a frame and its wave.
    pub fn select(&mut self, frame: Option<i64>) -> Result<(), String> {
        let Some(frame) = frame else { return Ok(()) };
        self.select_thread(frame % FRAME)?;
        self.debugger.select_frame(usize::try_from(frame / FRAME).unwrap_or(0))
    }

    /// Forgets the objects of variable references, which a change of state makes invalid.
    pub fn forget_handles(&mut self) {
        self.handles.clear();
        self.objects.clear();
    }
}
