//! The connections of a server: bounded, and none of them can shut others out.
//!
//! A connection is *waiting* until its client has identified itself or sent its request, and again while the client
//! has to read. A new connection that exceeds the limit ends the oldest waiting one, so that clients that are silent or
//! slow only take each other's place.

use super::output::emit;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Time until the next attempt after the system has refused a connection, for example because the process has too many
/// open files.
const RETRY: Duration = Duration::from_millis(100);

/// Number of connections that are given up when the system refuses one.
const SPARE: usize = 4;

/// The open connections of a server, the oldest first.
pub struct Connections {
    most: AtomicUsize,
    open: Mutex<Vec<Arc<Entry>>>,
}

struct Entry {
    stream: TcpStream,
    waiting: AtomicBool,
}

/// A connection, which is closed when it is dropped.
pub struct Connection {
    entry: Arc<Entry>,
    all: Arc<Connections>,
}

impl Connections {
    /// Creates an empty set for at most `most` connections.
    pub fn new(most: usize) -> Arc<Connections> {
        Arc::new(Connections { most: AtomicUsize::new(most), open: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Ends the oldest waiting connection. Returns whether there was one.
    fn end_oldest(&self) -> bool {
        let mut open = self.lock();
        let Some(at) = open.iter().position(|entry| entry.waiting.load(Ordering::Relaxed)) else {
            return false;
        };
        // Its thread closes it as soon as its read or write fails.
        let _ = open.remove(at).stream.shutdown(Shutdown::Both);
        true
    }

    /// Lowers the limit to what the system admits, with some files and threads left for the work of the others.
    fn shrink(&self) {
        let most = self.lock().len().saturating_sub(SPARE).max(1);
        self.most.fetch_min(most, Ordering::Relaxed);
        while self.lock().len() > most && self.end_oldest() {}
    }

    /// Adds a connection; returns the stream if all others are at work.
    fn admit(self: &Arc<Connections>, stream: TcpStream) -> Result<Connection, TcpStream> {
        let full = self.lock().len() >= self.most.load(Ordering::Relaxed);
        if full && !self.end_oldest() {
            return Err(stream);
        }
        let entry = Arc::new(Entry { stream, waiting: AtomicBool::new(true) });
        self.lock().push(entry.clone());
        Ok(Connection { entry, all: self.clone() })
    }

    /// Accepts connections forever and serves each in its own thread. `refuse` answers a client for whom there is no
    /// place.
    pub fn serve(
        self: &Arc<Connections>,
        listener: &TcpListener,
        refuse: impl Fn(TcpStream),
        serve: impl Fn(Connection) + Send + Sync + 'static,
    ) -> ! {
        let serve = Arc::new(serve);
        let mut refused = false;
        loop {
            let started = listener.accept().and_then(|(stream, _)| match self.admit(stream) {
                Ok(connection) => {
                    let serve = serve.clone();
                    std::thread::Builder::new().spawn(move || serve(connection)).map(|_| ())
                }
                Err(stream) => {
                    refuse(stream);
                    Ok(())
                }
            });
            match started {
                Ok(()) => refused = false,
                Err(e) => {
                    // Once for each time that resources run out.
                    if !std::mem::replace(&mut refused, true) {
                        emit(format!("warning: a connection has failed: {e}"));
                    }
                    self.shrink();
                    std::thread::sleep(RETRY);
                }
            }
        }
    }
}

impl Connection {
    /// The stream, which is shared.
    pub fn stream(&self) -> &TcpStream {
        &self.entry.stream
    }

    /// Records whether the server waits for the client.
    pub fn set_waiting(&self, waiting: bool) {
        self.entry.waiting.store(waiting, Ordering::Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Other owners of the entry may outlive this one: the connection ends now.
        let _ = self.entry.stream.shutdown(Shutdown::Both);
        self.all.lock().retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// A connected pair: the client's end and the server's.
    fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn the_oldest_waiting_connection_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let all = Connections::new(2);
        let (mut busy, server) = pair(&listener);
        let first = all.admit(server).ok().unwrap();
        first.set_waiting(false);
        let (mut silent, server) = pair(&listener);
        let second = all.admit(server).ok().unwrap();
        let (_third, server) = pair(&listener);
        let third = all.admit(server).ok().unwrap();
        assert_eq!(silent.read(&mut [0]).unwrap(), 0, "it has been closed");
        busy.set_nonblocking(true).unwrap();
        assert!(busy.read(&mut [0]).is_err(), "it is still open");
        // Its thread notices later.
        drop(second);
        assert_eq!(all.lock().len(), 2);
        // All are at work.
        third.set_waiting(false);
        let (_fourth, server) = pair(&listener);
        assert!(all.admit(server).is_err());
        drop(first);
        let (_fifth, server) = pair(&listener);
        assert!(all.admit(server).is_ok());
    }
}
