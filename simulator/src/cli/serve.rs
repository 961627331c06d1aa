//! `wavesim serve`: the playground's page, with this process as its engine.
//!
//! The page sends the requests of `wavesim_playground` by HTTP. Each page has its own engines and numbers its
//! requests. A stop names the last request to be stopped: that request ends whether or not it has started,
//! and later requests are unaffected. The server answers only its own pages. Requests that name another host
//! or come from another origin are rejected, so that other sites in the same browser cannot reach it.

mod compiler;
mod http;
mod links;

use super::connections::{Connection, Connections};
use super::output::emit;
use anyhow::{Context as _, bail};
use http::{Answer, Head, Timed};
use links::Links;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use wavesim_playground::Playground;
use wavesim_playground::budget::{Budget, Reservation};
use wavesim_playground::compile::Compiler;

/// The page embedded in the binary: names and contents, or nothing.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/page.rs"));
}

/// Serve the playground: write, run, step and check kernels in a browser
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim serve
  wavesim serve examples/mandelbrot.rdna
  wavesim serve --page web/page/dist --port 9000

The page compiles OpenCL C and HIP with the installed clang. It is built by
cargo xtask build-web (docs/playground.md). A binary that was built with
WAVESIM_PAGE=web/page/dist holds it; others take --page.")]
pub struct ServeArgs {
    /// A text kernel or assembly file that the page opens
    pub file: Option<PathBuf>,
    /// The port; 0: a free one
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// The address to listen on: anything but the local host lets others run kernels here
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub listen: IpAddr,
    /// The folder of the built page [default: the page in this binary]
    #[arg(long, value_name = "DIR")]
    pub page: Option<PathBuf>,
    /// Keep shared programs in this folder, for short links
    #[arg(long, value_name = "DIR")]
    pub links: Option<PathBuf>,
    /// With --listen: compile source code for others, too; it can read the files of this machine
    #[arg(long)]
    pub compile: bool,
}

/// Maximum number of connections, each with a thread: browsers open six for all pages of a host.
const MAX_CONNECTIONS: usize = 64;
/// Maximum number of requests that run or wait for an engine; others are refused, so that connections remain for stops
/// and for the page's files.
const MAX_WORKING: usize = 40;
/// Maximum number of requests of a page that run or wait.
const MAX_QUEUED: usize = 8;
/// Maximum number of engines; the least recently used one is dropped.
const MAX_SESSIONS: usize = 16;
/// Upper bound of the memory of all engines, requests and answers, in bytes.
const MEMORY: usize = 1 << 30;
/// If less of it is left, the debuggers of the least recently used engines are dropped.
const SPARE_MEMORY: usize = 256 << 20;
/// Maximum size of a request, which may hold a code object in base64, in bytes.
const MAX_REQUEST: u64 = 32 << 20;
/// Maximum duration of a request, regardless of its own limit.
const MAX_TIME: Duration = Duration::from_secs(600);

/// Upper bound of the bytes that an element of a list of a request takes while it is parsed.
const ELEMENT_BYTES: usize = 96;

/// The number of requests without a number, which cannot be stopped before they run.
const ALL: u64 = u64::MAX;

/// A request with its number, and the channel for its answer.
struct Job {
    number: u64,
    text: String,
    answer: Sender<String>,
}

/// An engine: a thread that answers one request after another, until no sender is left.
struct Engine {
    jobs: Mutex<Sender<Job>>,
    requests: Mutex<RequestState>,
    /// Interrupts the running request.
    interrupt: Arc<AtomicBool>,
}

/// The running request, and the requests that must not run.
#[derive(Default)]
struct RequestState {
    running: Option<u64>,
    /// The number of requests that run or wait.
    queued: usize,
    /// The engine has been dropped: no request runs any more.
    closed: bool,
    /// Whether the engine keeps a debugger.
    debugger: bool,
    /// The highest number of the stopped requests.
    stopped: u64,
}

impl Engine {
    fn start(budget: &Arc<Budget>, compiler: Option<Arc<dyn Compiler>>) -> std::io::Result<Arc<Engine>> {
        let (sender, jobs) = channel::<Job>();
        let interrupt = Arc::new(AtomicBool::new(false));
        let engine = Arc::new(Engine {
            jobs: Mutex::new(sender),
            requests: Mutex::default(),
            interrupt: interrupt.clone(),
        });
        // The thread ends when the engine is dropped.
        let requests = Arc::downgrade(&engine);
        let budget = budget.clone();
        std::thread::Builder::new().spawn(move || {
            let mut playground = Playground::with_budget(interrupt, budget);
            if let Some(compiler) = compiler {
                playground = playground.with_compiler(compiler);
            }
            for job in jobs {
                let begun = requests.upgrade().is_some_and(|engine| engine.start_request(job.number));
                let text = match begun {
                    true => playground.request(&job.text),
                    false => json!({"error": "stopped"}).to_string(),
                };
                // The client may have disconnected.
                let _ = job.answer.send(text);
                if let Some(engine) = requests.upgrade() {
                    let mut requests = lock(&engine.requests);
                    requests.running = None;
                    requests.queued -= 1;
                    requests.debugger = playground.has_session();
                }
            }
        })?;
        Ok(engine)
    }

    /// Starts a request, unless it has been stopped. Returns whether it starts.
    fn start_request(&self, number: u64) -> bool {
        let mut requests = lock(&self.requests);
        let begins = number > requests.stopped && !requests.closed;
        requests.running = begins.then_some(number);
        self.interrupt.store(requests.closed, Ordering::Relaxed);
        begins
    }

    /// Stops all requests up to this one.
    fn stop(&self, number: u64) {
        let mut requests = lock(&self.requests);
        if number < ALL {
            requests.stopped = requests.stopped.max(number);
        }
        if requests.running.is_some_and(|running| running <= number) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
    }

    /// Stops all requests for good. The thread ends when they have been answered.
    fn close(&self) {
        let mut requests = lock(&self.requests);
        requests.closed = true;
        self.interrupt.store(true, Ordering::Relaxed);
    }

    /// Answers a request within a time limit.
    fn answer(&self, number: u64, text: String, limit: Duration) -> String {
        let (sender, answers) = channel();
        {
            let mut requests = lock(&self.requests);
            if requests.queued >= MAX_QUEUED {
                return json!({"error": "too many requests of this page wait"}).to_string();
            }
            requests.queued += 1;
        }
        let sent = lock(&self.jobs).send(Job { number, text, answer: sender }).is_ok();
        let mut answer = answers.recv_timeout(limit);
        if answer == Err(RecvTimeoutError::Timeout) {
            self.stop(number);
            answer = answers.recv().map_err(|_| RecvTimeoutError::Disconnected);
        }
        let failed = || json!({"error": "the engine has failed: reload the page"}).to_string();
        answer.ok().filter(|_| sent).unwrap_or_else(failed)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.interrupt.store(true, Ordering::Relaxed);
    }
}

struct State {
    /// By path.
    files: BTreeMap<String, Vec<u8>>,
    /// The program that the page opens, as JSON.
    program: String,
    /// Engines by the page's name for them, the most recently used one last.
    sessions: Mutex<Vec<(String, Arc<Engine>)>>,
    /// Number of requests that run or wait.
    working: AtomicUsize,
    budget: Arc<Budget>,
    /// Names by which requests may address this server; `None` if it is open to others.
    hosts: Option<Vec<String>>,
    compiler: Option<Arc<dyn Compiler>>,
    links: Option<Links>,
}

/// Serves until it is interrupted.
pub fn run(args: &ServeArgs, _out: &mut dyn Write) -> anyhow::Result<u8> {
    let files = match &args.page {
        Some(folder) => page(folder)?,
        None => embedded::PAGE.iter().map(|(name, bytes)| (name.to_string(), bytes.to_vec())).collect(),
    };
    if !files.contains_key("index.html") {
        bail!(
            "this binary has no page, as it was built without one. In a clone of its repository:\n  \
             cargo xtask build-web                    builds the page (--help: what it needs)\n  \
             wavesim serve --page web/page/dist       serves it\n\
             Binaries of releases have the page; WAVESIM_PAGE=web/page/dist cargo build builds one with it"
        );
    }
    let program = match &args.file {
        Some(path) => {
            let name = super::input_name(path);
            json!({"name": name, "text": wavesim_files::read_text(path)?}).to_string()
        }
        None => "null".to_string(),
    };
    let address = SocketAddr::new(args.listen, args.port);
    let listener = TcpListener::bind(address).with_context(|| address.to_string())?;
    let port = listener.local_addr().map_or(args.port, |a| a.port());
    let local = args.listen.is_loopback();
    let mut state = State::new(files, program, local.then(|| names(args.listen, port)));
    // Sources can include any file that this process can read.
    if local || args.compile {
        state.compiler = Some(Arc::new(compiler::Installed));
    }
    state.links = args.links.as_deref().map(Links::open).transpose()?;
    if !local {
        emit("warning: everyone who can reach this address can run kernels on this machine");
    }
    emit(format!("serving http://{}/ until Ctrl-C", SocketAddr::new(args.listen, port)));
    let refuse = |stream: TcpStream| {
        // The answer is short: it does not block.
        let _ = Answer::text(503, "too many requests run").write(&mut &stream);
    };
    Connections::new(MAX_CONNECTIONS).serve(&listener, refuse, move |connection| {
        // The browser may have disconnected.
        let _ = state.connection(&connection);
    })
}

/// Returns the names by which browsers address this server. They omit the default port.
fn names(address: IpAddr, port: u16) -> Vec<String> {
    let host = SocketAddr::new(address, port).to_string();
    let host = host.strip_suffix(&format!(":{port}")).unwrap_or_default().to_string();
    let mut names = Vec::new();
    for host in ["localhost".to_string(), host] {
        names.push(format!("{host}:{port}"));
        if port == 80 {
            names.push(host);
        }
    }
    names
}

/// Reads the files of a built page, without the WebAssembly module, which the native engine replaces.
fn page(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|e| e != "zst") {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                files.insert(name, wavesim_files::read(&path)?);
            }
        }
    }
    Ok(files)
}

/// Locks a mutex, ignoring poisoning by a thread that panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl State {
    fn new(files: BTreeMap<String, Vec<u8>>, program: String, hosts: Option<Vec<String>>) -> State {
        let budget = Arc::new(Budget::new(MEMORY));
        State {
            files,
            program,
            sessions: Mutex::default(),
            working: AtomicUsize::new(0),
            budget,
            hosts,
            compiler: None,
            links: None,
        }
    }

    fn connection(&self, connection: &Connection) -> std::io::Result<()> {
        let stream = connection.stream();
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(Timed::new(stream, http::HEAD_TIME));
        let mut reserved = Vec::new();
        let answer = match Head::read(&mut reader) {
            Ok(None) => return Ok(()),
            Ok(Some(head)) => {
                let answer = self.answer(&head, &mut reader, connection, &mut reserved);
                answer.unwrap_or_else(|refused| refused)
            }
            Err(refused) => refused,
        };
        answer.write(&mut Timed::new(stream, http::ANSWER_TIME))?;
        http::finish(stream);
        Ok(())
    }

    /// Answers a request. `reserved` takes the memory of the answer.
    fn answer(
        &self,
        head: &Head,
        reader: &mut BufReader<Timed<'_>>,
        connection: &Connection,
        reserved: &mut Vec<Reservation>,
    ) -> Result<Answer, Answer> {
        if !self.is_same_origin(head) {
            return Err(Answer::text(403, "this server answers its own pages only"));
        }
        match (head.method.as_str(), head.path.as_str()) {
            ("POST", "api") => {
                let length = head.length(MAX_REQUEST)?;
                let reserve = |bytes: usize| {
                    self.budget
                        .reserve(bytes)
                        .ok_or_else(|| Answer::text(503, "this server has no memory left"))
                };
                let body = reserve(length as usize)?;
                reader.get_mut().restart(http::BODY_TIME);
                let text = head.body(reader, &mut connection.stream(), length)?;
                // Parsing a list takes much more than its text: an element has a comma.
                let elements = text.bytes().filter(|byte| *byte == b',').count();
                let parsed = reserve(text.len().saturating_add(elements.saturating_mul(ELEMENT_BYTES)))?;
                let (session, number) = request(head);
                let limit = head.parameter("limit").and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
                let limit = limit.unwrap_or(MAX_TIME).min(MAX_TIME);
                let answer =
                    self.work(connection, || Ok(self.engine(session)?.answer(number, text, limit)))?;
                drop((body, parsed));
                reserved.push(reserve(answer.len())?);
                Ok(Answer::new(200, "application/json", answer))
            }
            ("POST", "stop") => {
                let (session, number) = request(head);
                if let Some(engine) = lock(&self.sessions).iter().find(|s| s.0 == session) {
                    engine.1.stop(number);
                }
                Ok(Answer::text(200, ""))
            }
            ("POST", "links") => {
                let links = self.links.as_ref();
                let links = links.ok_or_else(|| Answer::text(404, "this server keeps no links"))?;
                let length = head.length(links::MAX_LINK)?;
                reader.get_mut().restart(http::BODY_TIME);
                links.keep(&head.body(reader, &mut connection.stream(), length)?)
            }
            ("GET", path) if path.starts_with("links/") => Ok(match &self.links {
                Some(links) => links.get(&path["links/".len()..]),
                None => Answer::text(404, "this server keeps no links"),
            }),
            ("GET", "program") => Ok(Answer::new(200, "application/json", self.program.clone())),
            ("GET", path) => Ok(self.file(if path.is_empty() { "index.html" } else { path })),
            _ => Err(Answer::text(405, "this server knows GET, and POST of requests")),
        }
    }

    /// Runs a request, during which its connection is not ended in favour of others.
    fn work<R>(
        &self,
        connection: &Connection,
        work: impl FnOnce() -> Result<R, Answer>,
    ) -> Result<R, Answer> {
        let result = match self.working.fetch_add(1, Ordering::Relaxed) < MAX_WORKING {
            true => {
                connection.set_waiting(false);
                work()
            }
            false => Err(Answer::text(503, "too many requests run")),
        };
        self.working.fetch_sub(1, Ordering::Relaxed);
        connection.set_waiting(true);
        result
    }

    /// Returns whether a request addresses this host and comes from one of its pages.
    fn is_same_origin(&self, head: &Head) -> bool {
        let host = head.header("host");
        let origin = head.header("origin").map(|origin| origin.strip_prefix("http://").unwrap_or("?"));
        match &self.hosts {
            Some(hosts) => {
                let own = |host: &str| hosts.iter().any(|h| h.eq_ignore_ascii_case(host));
                host.is_some_and(own) && origin.is_none_or(own)
            }
            // The server cannot know all its names, but a page that it has served has the name that the page
            // requests.
            None => origin.is_none_or(|origin| Some(origin) == host),
        }
    }

    fn file(&self, path: &str) -> Answer {
        let Some(bytes) = self.files.get(path) else {
            return Answer::text(404, "there is no such file");
        };
        let kind = match Path::new(path).extension().and_then(|e| e.to_str()) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        };
        if path == "index.html" {
            let mark = match self.links {
                Some(_) => "<head>\n    <meta name=\"wavesim-engine\" content=\"native\" data-links=\"\" />",
                None => "<head>\n    <meta name=\"wavesim-engine\" content=\"native\" />",
            };
            let page = String::from_utf8_lossy(bytes).replacen("<head>", mark, 1);
            return Answer::new(200, kind, page);
        }
        Answer::new(200, kind, bytes.clone())
    }

    /// Returns the engine of a page, started if necessary.
    fn engine(&self, name: &str) -> Result<Arc<Engine>, Answer> {
        let mut sessions = lock(&self.sessions);
        let engine = match sessions.iter().position(|s| s.0 == name) {
            Some(at) => sessions.remove(at).1,
            None => Engine::start(&self.budget, self.compiler.clone())
                .map_err(|e| Answer::text(503, format!("this server cannot start an engine: {e}")))?,
        };
        if sessions.len() >= MAX_SESSIONS {
            // The page of its running request is presumed gone.
            sessions.remove(0).1.close();
        }
        if self.budget.left() < SPARE_MEMORY {
            // The thread of an idle engine ends, and returns its memory, as soon as nothing refers to the engine.
            let idle = sessions.iter().position(|s| {
                let requests = lock(&s.1.requests);
                requests.debugger && requests.queued == 0
            });
            idle.into_iter().for_each(|at| sessions.remove(at).1.close());
        }
        sessions.push((name.to_string(), engine.clone()));
        Ok(engine)
    }
}

/// Returns the page's name for its engine, and the number of the request.
fn request(head: &Head) -> (&str, u64) {
    let number = head.parameter("request").and_then(|n| n.parse().ok());
    (head.parameter("session").unwrap_or_default(), number.unwrap_or(ALL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_leave_the_usual_port_out() {
        let local = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(names(local, 8000), ["localhost:8000", "127.0.0.1:8000"]);
        assert_eq!(names(local, 80), ["localhost:80", "localhost", "127.0.0.1:80", "127.0.0.1"]);
        let six = IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(names(six, 9), ["localhost:9", "[::1]:9"]);
    }

    fn state(hosts: Option<Vec<String>>) -> State {
        State::new(BTreeMap::new(), String::new(), hosts)
    }

    fn is_same_origin(state: &State, headers: &str) -> bool {
        let text = format!("GET / HTTP/1.1\r\n{headers}\r\n");
        state.is_same_origin(&Head::read(&mut text.as_bytes()).unwrap().unwrap())
    }

    #[test]
    fn only_own_pages_are_served() {
        let local = state(Some(names(IpAddr::from([127, 0, 0, 1]), 80)));
        assert!(is_same_origin(&local, "Host: localhost\r\n"));
        assert!(is_same_origin(&local, "Host: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"));
        assert!(!is_same_origin(&local, "Host: evil.example\r\n"));
        assert!(!is_same_origin(&local, "Host: localhost\r\nOrigin: http://evil.example\r\n"));
        assert!(!is_same_origin(&local, "Host: localhost\r\nOrigin: null\r\n"));
        // Open to others, but not to the pages of other servers.
        let open = state(None);
        assert!(is_same_origin(&open, "Host: gpu.example:8000\r\n"));
        assert!(is_same_origin(&open, "Host: gpu.example:8000\r\nOrigin: http://gpu.example:8000\r\n"));
        assert!(!is_same_origin(&open, "Host: gpu.example:8000\r\nOrigin: http://evil.example\r\n"));
    }

    #[test]
    fn a_stop_ends_only_the_named_requests() {
        let run = json!({
            "op": "run", "max_instructions": 1_000_000_000_000_000u64,
            "program": {"text": "---\nlocal = 32, 1, 1\n---\nloop:\n  s_branch loop\n"},
        });
        let budget = Arc::default();
        let (one, two) = (Engine::start(&budget, None).unwrap(), Engine::start(&budget, None).unwrap());
        let limit = Duration::from_secs(60);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| one.answer(1, run.to_string(), limit));
            let other = scope.spawn(|| two.answer(1, run.to_string(), Duration::from_secs(2)));
            std::thread::sleep(Duration::from_millis(300));
            // This request waits for its turn, and is stopped before it starts.
            let waiting = scope.spawn(|| one.answer(2, run.to_string(), limit));
            std::thread::sleep(Duration::from_millis(100));
            one.stop(2);
            one.stop(0);
            assert!(running.join().unwrap().contains("interrupted"));
            assert!(waiting.join().unwrap().contains("stopped"));
            assert!(!other.is_finished(), "the stop was not for this one");
            // Its own limit ends it.
            assert!(other.join().unwrap().contains("interrupted"));
        });
        let names = r#"{"op":"names","arch":"rdna4"}"#;
        assert!(one.answer(3, names.to_string(), limit).contains("v_add_f32"));
        assert!(two.answer(2, names.to_string(), limit).contains("v_add_f32"));
    }

    /// A run that does not end, with a buffer of nearly 64 MB.
    fn endless() -> String {
        let text = "---\nlocal = 32, 1, 1\nx: u8[60000000]\n---\nloop:\n  s_branch loop\n";
        json!({"op": "run", "max_instructions": 1_000_000_000_000_000u64, "program": {"text": text}})
            .to_string()
    }

    /// The engine of a page that is presumed gone runs none of its requests any more.
    #[test]
    fn evicted_engines_stop() {
        let state = state(None);
        let limit = Duration::from_secs(60);
        let engine = |name: &str| state.engine(name).unwrap();
        let first = engine("first");
        std::thread::scope(|scope| {
            let requests: Vec<_> = (1..4)
                .map(|number| {
                    let first = &first;
                    scope.spawn(move || first.answer(number, endless(), limit))
                })
                .collect();
            while lock(&first.requests).queued < 3 || lock(&first.requests).running.is_none() {
                std::thread::sleep(Duration::from_millis(10));
            }
            (0..MAX_SESSIONS).for_each(|n| drop(engine(&n.to_string())));
            let answers: Vec<String> = requests.into_iter().map(|r| r.join().unwrap()).collect();
            assert_eq!(answers.iter().filter(|a| a.contains("stopped")).count(), 3, "{answers:?}");
        });
        assert!(first.answer(9, r#"{"op":"names","arch":"rdna4"}"#.to_string(), limit).contains("stopped"));
    }

    /// All requests together take a bounded part of memory; those that do not fit are refused or wait.
    #[test]
    fn memory_is_bounded_over_all_pages() {
        let budget = Arc::new(Budget::new(400 << 20));
        let engines: Vec<_> = (0..6).map(|_| Engine::start(&budget, None).unwrap()).collect();
        let limit = Duration::from_millis(1500);
        let answers: Vec<String> = std::thread::scope(|scope| {
            let started = |engine| scope.spawn(move || Engine::answer(engine, 1, endless(), limit));
            let mut all = vec![started(&*engines[0])];
            // The others come when the first one has its memory: six that prepare at once leave none for a run.
            while budget.left() > 200 << 20 {
                std::thread::sleep(Duration::from_millis(1));
            }
            all.extend(engines[1..].iter().map(|engine| started(&**engine)));
            all.into_iter().map(|answer| answer.join().unwrap()).collect()
        });
        let ran = answers.iter().filter(|a| a.contains("interrupted")).count();
        let waited = answers.iter().filter(|a| a.contains("\"stopped\"") || a.contains("memory")).count();
        assert!(ran >= 1 && waited >= 1 && ran + waited == 6, "{answers:?}");
        // Everything has been returned.
        assert_eq!(budget.left(), 400 << 20);
    }
}
