//! A client for tests.

use lsp_server::{Connection, Message, Notification, Request, Response};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::thread::JoinHandle;
use std::time::Duration;

/// A client whose server runs on a thread.
pub struct Client {
    connection: Connection,
    server: Option<JoinHandle<()>>,
    requests: i32,
    /// The last diagnostics of each document.
    pub diagnostics: HashMap<String, Value>,
    /// Other messages of the server.
    pub others: Vec<Message>,
    versions: HashMap<String, i32>,
}

/// The address of a file in a folder that does not exist.
pub fn uri(name: &str) -> String {
    format!("file:///nowhere/{name}")
}

impl Client {
    /// Starts a server with these settings.
    pub fn with_settings(settings: Value) -> Client {
        let (server, connection) = Connection::memory();
        let server =
            std::thread::spawn(move || wavesim_lsp::serve(&server).expect("a session without errors"));
        let (server, requests) = (Some(server), 0);
        let (diagnostics, others, versions) = (HashMap::new(), Vec::new(), HashMap::new());
        let mut client = Client { connection, server, requests, diagnostics, others, versions };
        let capabilities = json!({"workspace": {"inlayHint": {"refreshSupport": true}}});
        client
            .request("initialize", json!({"capabilities": capabilities, "initializationOptions": settings}))
            .expect("initialize");
        client.notify("initialized", json!({}));
        client
    }

    /// Starts a server.
    pub fn new() -> Client {
        Client::with_settings(json!({}))
    }

    fn receive(&mut self) -> Option<Response> {
        match self.connection.receiver.recv_timeout(Duration::from_secs(60)).expect("a message of the server")
        {
            Message::Response(response) => return Some(response),
            Message::Notification(n) if n.method == "textDocument/publishDiagnostics" => {
                let uri = n.params["uri"].as_str().expect("a uri").to_string();
                self.diagnostics.insert(uri, n.params["diagnostics"].clone());
            }
            other => self.others.push(other),
        }
        None
    }

    pub fn notify(&self, method: &str, params: Value) {
        let message = Message::Notification(Notification::new(method.to_string(), params));
        self.connection.sender.send(message).expect("a running server");
    }

    /// Sends a request and waits for its result, or the message of its error.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.requests += 1;
        let request = Request::new(self.requests.into(), method.to_string(), params);
        self.connection.sender.send(Message::Request(request)).expect("a running server");
        loop {
            if let Some(response) = self.receive() {
                assert_eq!(response.id, self.requests.into());
                return response.response_result.map_err(|error| error.message);
            }
        }
    }

    pub fn open(&mut self, name: &str, language: &str, text: &str) {
        self.versions.insert(name.to_string(), 1);
        let document = json!({"uri": uri(name), "languageId": language, "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Replaces a range: line and column of its ends, from 0.
    pub fn edit(&mut self, name: &str, [l0, c0, l1, c1]: [u32; 4], text: &str) {
        let version = self.versions.get_mut(name).expect("an open document");
        *version += 1;
        let range = json!({"start": {"line": l0, "character": c0}, "end": {"line": l1, "character": c1}});
        let params = json!({
            "textDocument": {"uri": uri(name), "version": *version},
            "contentChanges": [{"range": range, "text": text}],
        });
        self.notify("textDocument/didChange", params);
    }

    /// Waits for the diagnostics of a document; returns line, column and message of each.
    pub fn diagnosed(&mut self, name: &str) -> Vec<(u64, u64, String)> {
        self.diagnostics.remove(&uri(name));
        // The answer to a request follows the diagnostics of the text.
        let _ = self.request("textDocument/codeLens", json!({"textDocument": {"uri": uri(name)}}));
        while !self.diagnostics.contains_key(&uri(name)) {
            assert!(self.receive().is_none());
        }
        let list = self.diagnostics[&uri(name)].as_array().cloned().unwrap_or_default();
        let one = |d: Value| {
            let start = &d["range"]["start"];
            let number = |key: &str| start[key].as_u64().unwrap_or(u64::MAX);
            (number("line"), number("character"), d["message"].as_str().unwrap_or_default().to_string())
        };
        list.into_iter().map(one).collect()
    }

    /// Sends a request about a position of a document: line and column, from 0.
    pub fn at(
        &mut self,
        method: &str,
        name: &str,
        line: u32,
        column: u32,
        more: Value,
    ) -> Result<Value, String> {
        let mut params = json!({
            "textDocument": {"uri": uri(name)},
            "position": {"line": line, "character": column},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        self.request(method, params)
    }

    /// Sends a request about a whole document.
    pub fn of(&mut self, method: &str, name: &str) -> Value {
        let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}});
        self.request(method, json!({"textDocument": {"uri": uri(name)}, "range": range})).expect("a result")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.request("shutdown", Value::Null).expect("shutdown");
        self.notify("exit", Value::Null);
        if let Some(server) = self.server.take() {
            server.join().expect("the server");
        }
    }
}

/// Applies the edits of a renaming to a text.
pub fn renamed(text: &str, name: &str, edit: &Value) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_string).collect();
    let mut edits = edit["changes"][uri(name)].as_array().cloned().unwrap_or_default();
    edits.reverse();
    for edit in edits {
        let at = |end: &str, key: &str| edit["range"][end][key].as_u64().expect("a number") as usize;
        let line = &mut lines[at("start", "line")];
        let new = edit["newText"].as_str().expect("a text");
        line.replace_range(at("start", "character")..at("end", "character"), new);
    }
    lines.join("\n")
}

/// Lines of the ranges in a list, from 0.
pub fn lines(list: &Value) -> Vec<u64> {
    let line = |v: &Value| v["range"]["start"]["line"].as_u64();
    list.as_array().into_iter().flatten().filter_map(line).collect()
}
