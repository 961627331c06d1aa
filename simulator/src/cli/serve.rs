//! `wavesim serve`: the playground's page, with this process as its engine.
//!
//! The page sends the requests of `wavesim_playground` by HTTP. Each page has an engine of its own. Only pages of this
//! server are answered: requests that name another host or come from another origin are refused, so that no site that
//! is open in the same browser reaches it.

use super::output::emit;
use anyhow::{Context as _, bail};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{Read as _, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use tiny_http::{Header, Method, Request, Response, Server};
use wavesim_engine::sched::dispatch::INTERRUPT;
use wavesim_playground::Playground;

/// The page that was built with the binary: names and contents, or nothing.
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

The page is built by scripts/build-web.sh (docs/playground.md). A binary that was
built with WAVESIM_PAGE=web/page/dist holds it; others take --page.")]
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
}

/// Threads that answer requests: a page has two engines, one of which may be busy.
const THREADS: usize = 4;
/// Engines at most: the one that was used the longest ago is dropped.
const MAX_SESSIONS: usize = 16;
/// Bytes of a request at most: a code object in base64.
const MAX_REQUEST: u64 = 32 << 20;

/// An engine: a thread that answers one request after the other, until nobody can send any more.
type Engine = Arc<Mutex<Sender<(String, Sender<String>)>>>;

fn start_engine() -> Engine {
    let (sender, requests) = channel::<(String, Sender<String>)>();
    std::thread::spawn(move || {
        let mut playground = Playground::default();
        for (request, answer) in requests {
            // Whoever asked may have gone.
            let _ = answer.send(playground.request(&request));
        }
    });
    Arc::new(Mutex::new(sender))
}

struct State {
    /// By path.
    files: BTreeMap<String, Vec<u8>>,
    /// What the page opens, as JSON.
    program: String,
    /// Engines by the page's own number, the last used one last.
    sessions: Mutex<Vec<(String, Engine)>>,
    /// Names that requests may have for this server; `None`: it is open to others.
    hosts: Option<[String; 3]>,
}

/// Serves until it is interrupted.
pub fn run(args: &ServeArgs, _out: &mut dyn Write) -> anyhow::Result<u8> {
    let files = match &args.page {
        Some(folder) => page(folder)?,
        None => embedded::PAGE.iter().map(|(name, bytes)| (name.to_string(), bytes.to_vec())).collect(),
    };
    if !files.contains_key("index.html") {
        bail!(
            "this binary has no page: build it with scripts/build-web.sh, and give its folder with --page web/page/dist \
             (or build the binary with WAVESIM_PAGE=web/page/dist)"
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
    let server = Server::http(address).map_err(|e| anyhow::anyhow!("{address}: {e}"))?;
    let port = server.server_addr().to_ip().map_or(args.port, |a| a.port());
    let local = args.listen.is_loopback();
    let hosts = ["localhost".to_string(), args.listen.to_string(), format!("[{}]", args.listen)];
    let hosts = local.then(|| hosts.map(|host| format!("{host}:{port}")));
    let state = State { files, program, sessions: Mutex::default(), hosts };
    if !local {
        emit("warning: everyone who can reach this address can run kernels on this machine");
    }
    emit(format!("serving http://{}/ until Ctrl-C", SocketAddr::new(args.listen, port)));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for request in server.incoming_requests() {
                    state.answer(request);
                }
            });
        }
    });
    Ok(super::OK)
}

/// The files of a built page, without the WebAssembly module, which a native engine replaces.
fn page(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|e| e != "wasm") {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                files.insert(name, wavesim_files::read(&path)?);
            }
        }
    }
    Ok(files)
}

/// Locks, also what a thread that has panicked has locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn header<'r>(request: &'r Request, name: &'static str) -> Option<&'r str> {
    request.headers().iter().find(|h| h.field.equiv(name)).map(|h| h.value.as_str())
}

fn text(status: u16, kind: &str, body: Vec<u8>) -> Response<std::io::Cursor<Vec<u8>>> {
    let mut response = Response::from_data(body).with_status_code(status);
    let policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                  script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'";
    for (name, value) in [
        ("Content-Type", kind),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", policy),
    ] {
        // Names and values are constants without control characters.
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    response
}

impl State {
    fn answer(&self, mut request: Request) {
        let response = self.response(&mut request);
        // The browser may have gone.
        let _ = request.respond(response);
    }

    fn response(&self, request: &mut Request) -> Response<std::io::Cursor<Vec<u8>>> {
        let refused = |status, why: &str| text(status, "text/plain; charset=utf-8", why.into());
        if !self.is_own(request) {
            return refused(403, "this server answers its own pages only");
        }
        let path = request.url().split(['?', '#']).next().unwrap_or("/").trim_start_matches('/').to_string();
        match (request.method(), path.as_str()) {
            (Method::Post, "api") => self.api(request),
            (Method::Post, "stop") => {
                self.stop(request);
                text(200, "text/plain; charset=utf-8", Vec::new())
            }
            (Method::Get, "program") => text(200, "application/json", self.program.clone().into()),
            (Method::Get, path) => self.file(if path.is_empty() { "index.html" } else { path }),
            _ => refused(405, "this server knows GET, and POST of requests"),
        }
    }

    /// Whether a request names this host, and comes from one of its pages.
    fn is_own(&self, request: &Request) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let own = |host: &str| hosts.iter().any(|h| h == host);
        let origin = header(request, "Origin").map(|origin| origin.strip_prefix("http://").unwrap_or("?"));
        header(request, "Host").is_some_and(own) && origin.is_none_or(own)
    }

    fn file(&self, path: &str) -> Response<std::io::Cursor<Vec<u8>>> {
        let Some(bytes) = self.files.get(path) else {
            return text(404, "text/plain; charset=utf-8", "there is no such file".into());
        };
        let kind = match Path::new(path).extension().and_then(|e| e.to_str()) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        };
        if path == "index.html" {
            let mark = "<head>\n    <meta name=\"wavesim-engine\" content=\"native\" />";
            let page = String::from_utf8_lossy(bytes).replacen("<head>", mark, 1);
            return text(200, kind, page.into());
        }
        text(200, kind, bytes.clone())
    }

    /// The engine of the page that asks.
    fn engine(&self, request: &Request) -> Engine {
        let name = header(request, "X-Session").unwrap_or_default().to_string();
        let mut sessions = lock(&self.sessions);
        let engine = match sessions.iter().position(|s| s.0 == name) {
            Some(at) => sessions.remove(at).1,
            None => start_engine(),
        };
        if sessions.len() >= MAX_SESSIONS {
            sessions.remove(0);
        }
        sessions.push((name, engine.clone()));
        engine
    }

    fn api(&self, request: &mut Request) -> Response<std::io::Cursor<Vec<u8>>> {
        let engine = self.engine(request);
        let mut body = String::new();
        let read = request.as_reader().take(MAX_REQUEST + 1).read_to_string(&mut body);
        if read.is_err() || body.len() as u64 > MAX_REQUEST {
            let why = format!("a request is text of at most {} MB", MAX_REQUEST >> 20);
            return text(413, "text/plain; charset=utf-8", why.into());
        }
        // Locked until the answer is there: `stop` waits for that.
        let sender = lock(&engine);
        let (answer, answers) = channel();
        let answer = sender.send((body, answer)).ok().and_then(|()| answers.recv().ok());
        let answer =
            answer.unwrap_or_else(|| json!({"error": "the engine has failed: reload the page"}).to_string());
        text(200, "application/json", answer.into())
    }

    /// Interrupts what the page runs, and whatever else runs at this moment.
    fn stop(&self, request: &Request) {
        let engine = self.engine(request);
        INTERRUPT.store(true, Ordering::Relaxed);
        // Its thread has ended the run once the engine is free.
        drop(lock(&engine));
        INTERRUPT.store(false, Ordering::Relaxed);
    }
}
