//! An editor that attaches to a launch, through the Debug Adapter Protocol on a port.

use crate::launch::RunOptions;
use crate::message;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wavesim::debug::command::Files;
use wavesim_dap::protocol::{LaunchArguments, Request};
use wavesim_dap::{Host, Launch, wire};

/// Maximum size of a message of a client that has not given the token, in bytes.
const UNKNOWN_LIMIT: usize = 1 << 20;
/// Maximum number of messages that wait.
const MAX_WAITING: usize = 64;

#[derive(Default)]
struct Messages {
    waiting: VecDeque<Vec<u8>>,
    ended: bool,
    /// Whether the client has given the token.
    known: bool,
}

/// The messages of the client, which a thread reads.
#[derive(Default)]
struct Queue {
    state: Mutex<Messages>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads messages until the stream ends or fails.
    fn fill(&self, stream: TcpStream) {
        let mut from = BufReader::new(stream);
        loop {
            let limit = if self.lock().known { wire::LIMIT } else { UNKNOWN_LIMIT };
            let Ok(Some(message)) = wire::read(&mut from, limit) else { break };
            let full = |state: &mut Messages| state.waiting.len() >= MAX_WAITING;
            let mut state =
                self.changed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
            state.waiting.push_back(message);
            drop(state);
            self.changed.notify_all();
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }
}

/// A connected client.
pub struct Client {
    stream: RefCell<TcpStream>,
    queue: Arc<Queue>,
    token: String,
}

impl Client {
    /// Waits for a client. Its address and the token that it must give are reported on standard error.
    ///
    /// # Errors
    /// The port is not available, or the connection fails.
    pub fn wait(address: &str, options: &RunOptions<'_>) -> io::Result<Client> {
        let address =
            if address.contains(':') { address.to_string() } else { format!("127.0.0.1:{address}") };
        let listener = TcpListener::bind(&address)?;
        // The state of a hash is random: other users of the machine cannot predict it.
        let word = || RandomState::new().hash_one(std::process::id());
        let token = format!("{:016x}{:016x}", word(), word());
        message::report(&format!(
            "launch {} of `{}` waits for a debugger on {}/{token} (`attach` needs \"token\": \"{token}\")",
            options.number,
            options.kernel,
            listener.local_addr()?
        ));
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let queue = Arc::new(Queue::default());
        let (reader, from) = (queue.clone(), stream.try_clone()?);
        std::thread::Builder::new().spawn(move || reader.fill(from))?;
        Ok(Client { stream: RefCell::new(stream), queue, token })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // This also ends the thread.
        let _ = self.stream.borrow().shutdown(std::net::Shutdown::Both);
    }
}

impl Host for Client {
    fn receive(&self) -> Option<Result<Request, String>> {
        let idle = |state: &mut Messages| state.waiting.is_empty() && !state.ended;
        let state = self.queue.changed.wait_while(self.queue.lock(), idle);
        let message = state.unwrap_or_else(PoisonError::into_inner).waiting.pop_front()?;
        self.queue.changed.notify_all();
        Some(wire::parse(&message))
    }

    fn waiting(&self) -> bool {
        // The end of the stream interrupts a run, like a message.
        let state = self.queue.lock();
        state.ended || !state.waiting.is_empty()
    }

    fn send(&self, message: &wavesim_dap::Message) {
        // A disconnected client reads nothing; the next `receive` ends the session.
        let _ = wire::write(&mut *self.stream.borrow_mut(), message);
    }

    fn load(&self, _launch: &LaunchArguments) -> Result<Launch, String> {
        Err("the program launches its kernels itself".to_string())
    }

    fn admit(&self, attach: &LaunchArguments) -> Result<(), String> {
        if attach.token.as_deref() != Some(self.token.as_str()) {
            return Err("`attach` needs the attribute `token` that the program has printed".to_string());
        }
        self.queue.lock().known = true;
        Ok(())
    }

    fn files(&self, _: &LaunchArguments) -> Option<Box<dyn Files>> {
        Some(Box::new(super::ProcessFiles))
    }

    fn path(&self, name: &str) -> Option<String> {
        Path::new(name).canonicalize().ok().map(|path| path.display().to_string())
    }
}
