//! A session with a client.

use crate::document::{Document, DocumentKind};
use crate::run::{self, Launch};
use crate::settings::Settings;
use crate::{complete, highlight, hints, hover, lenses, pseudocode, rename, symbols};
use isa_spec::diag::Severity;
use lsp_server::{Connection, ErrorCode, Message, Notification, ProtocolError, Request, Response};
use lsp_types as lsp;
use lsp_types::notification::{self as told, Notification as _};
use lsp_types::request::{self as asked, Request as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The command that runs a kernel.
pub const RUN: &str = "wavesim.run";
/// The command that runs a kernel under all checks.
pub const CHECK: &str = "wavesim.check";
/// The command that debugs a kernel, which the client carries out with `wavesim dap`.
pub const DEBUG: &str = "wavesim.debug";

/// Why a session has failed.
#[derive(Debug)]
pub enum Error {
    /// The client does not follow the protocol, or has disconnected.
    Protocol(ProtocolError),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Error::Protocol(e) = self;
        write!(f, "the client: {e}")
    }
}

impl std::error::Error for Error {}

impl From<ProtocolError> for Error {
    fn from(e: ProtocolError) -> Error {
        Error::Protocol(e)
    }
}

/// Serves a client, from its `initialize` to its `exit`.
///
/// # Errors
/// The client does not follow the protocol.
pub fn serve(connection: &Connection) -> Result<(), Error> {
    let (id, params) = connection.initialize_start()?;
    let options = params.get("initializationOptions").cloned().unwrap_or_default();
    connection.initialize_finish(
        id,
        json!({
            "capabilities": capabilities(),
            "serverInfo": {"name": "wavesim", "version": env!("CARGO_PKG_VERSION")},
        }),
    )?;
    // Settings of a wrong type are those of an editor's other servers.
    let settings = serde_json::from_value(options).unwrap_or_default();
    let refreshes = |what: &str| {
        params.pointer(&format!("/capabilities/workspace/{what}/refreshSupport")) == Some(&json!(true))
    };
    let mut server = Server {
        connection,
        documents: BTreeMap::new(),
        settings,
        refreshes: refreshes("inlayHint"),
        requests: 0,
    };
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request)? {
                    return Ok(());
                }
                let response = server.answer(request);
                server.send(Message::Response(response));
            }
            Message::Notification(notification) => server.notified(notification),
            // Answers to refreshes.
            Message::Response(_) => {}
        }
        // While messages wait, texts may still change.
        if connection.receiver.is_empty() {
            server.publish();
        }
    }
    Ok(())
}

fn capabilities() -> Value {
    json!({
        "textDocumentSync": {"openClose": true, "change": 2, "save": false},
        "hoverProvider": true,
        "completionProvider": {"triggerCharacters": ["_", ".", "["], "resolveProvider": true},
        "definitionProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "documentSymbolProvider": true,
        "renameProvider": {"prepareProvider": true},
        "codeLensProvider": {"resolveProvider": false},
        "inlayHintProvider": true,
        "semanticTokensProvider": {"legend": highlight::legend(), "full": true},
        "executeCommandProvider": {"commands": [RUN, CHECK]},
    })
}

struct Server<'c> {
    connection: &'c Connection,
    documents: BTreeMap<String, Document>,
    settings: Settings,
    /// The client can be asked to request inlay hints again.
    refreshes: bool,
    /// The number of requests sent.
    requests: i32,
}

/// The result of a request: JSON, or a message.
type Answer = Result<Value, String>;

fn value(result: impl Serialize) -> Answer {
    serde_json::to_value(result).map_err(|e| e.to_string())
}

impl Server<'_> {
    fn send(&self, message: Message) {
        // A disconnected client reads nothing; the next message to receive is the last.
        let _ = self.connection.sender.send(message);
    }

    fn notify<N: told::Notification>(&self, params: N::Params)
    where
        N::Params: Serialize,
    {
        self.send(Message::Notification(Notification::new(N::METHOD.to_string(), params)));
    }

    fn notified(&mut self, notification: Notification) {
        fn params<T: DeserializeOwned>(notification: Notification) -> Option<T> {
            serde_json::from_value(notification.params).ok()
        }
        match notification.method.as_str() {
            told::DidOpenTextDocument::METHOD => {
                let Some(opened) = params::<lsp::DidOpenTextDocumentParams>(notification) else { return };
                let lsp::TextDocumentItem { uri, language_id, version, text } = opened.text_document;
                self.documents
                    .insert(uri.as_str().to_string(), Document::new(uri, &language_id, version, text));
            }
            told::DidChangeTextDocument::METHOD => {
                let Some(changed) = params::<lsp::DidChangeTextDocumentParams>(notification) else { return };
                if let Some(document) = self.documents.get_mut(changed.text_document.uri.as_str()) {
                    document.change(changed.text_document.version, changed.content_changes);
                }
            }
            told::DidCloseTextDocument::METHOD => {
                let Some(closed) = params::<lsp::DidCloseTextDocumentParams>(notification) else { return };
                let uri = closed.text_document.uri;
                self.documents.remove(uri.as_str());
                self.notify::<told::PublishDiagnostics>(lsp::PublishDiagnosticsParams::new(
                    uri,
                    Vec::new(),
                    None,
                ));
            }
            told::DidChangeConfiguration::METHOD => {
                let Some(changed) = params::<lsp::DidChangeConfigurationParams>(notification) else { return };
                let own = changed.settings.get("wavesim").cloned().unwrap_or(changed.settings);
                if let Ok(settings) = serde_json::from_value(own) {
                    self.settings = settings;
                    self.documents.values_mut().for_each(|document| document.stale = true);
                }
            }
            _ => {}
        }
    }

    /// Analyses the texts that have changed, and publishes their diagnostics.
    fn publish(&mut self) {
        let stale: Vec<String> =
            self.documents.iter().filter(|(_, d)| d.stale).map(|(uri, _)| uri.clone()).collect();
        for uri in stale {
            if let Some(document) = self.documents.get_mut(&uri) {
                document.update(&self.settings);
                let params = diagnostics(document);
                self.notify::<told::PublishDiagnostics>(params);
            }
        }
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        match self.result(&method, params) {
            Some(Ok(result)) => Response::new_ok(id, result),
            Some(Err(message)) => Response::new_err(id, ErrorCode::RequestFailed as i32, message),
            None => Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("no method `{method}`")),
        }
    }

    /// Answers a request; `None` if there is no such method.
    fn result(&mut self, method: &str, params: Value) -> Option<Answer> {
        fn read<T: DeserializeOwned>(params: Value) -> Result<T, String> {
            serde_json::from_value(params).map_err(|e| format!("wrong parameters: {e}"))
        }
        Some(match method {
            asked::HoverRequest::METHOD => read(params).and_then(|p| self.hover(&p)),
            asked::Completion::METHOD => read(params).and_then(|p| self.completion(&p)),
            asked::ResolveCompletionItem::METHOD => {
                read(params).and_then(|item| value(complete::resolve(item)))
            }
            asked::GotoDefinition::METHOD => read(params).and_then(|p| self.definition(&p)),
            asked::References::METHOD => read(params).and_then(|p| self.references(&p)),
            asked::DocumentHighlightRequest::METHOD => read(params).and_then(|p| self.highlights(&p)),
            asked::DocumentSymbolRequest::METHOD => read(params).and_then(|p| self.outline(&p)),
            asked::PrepareRenameRequest::METHOD => read(params).and_then(|p| self.prepare_rename(&p)),
            asked::Rename::METHOD => read(params).and_then(|p| self.rename(p)),
            asked::CodeLensRequest::METHOD => read(params).and_then(|p: lsp::CodeLensParams| {
                value(lenses::lenses(self.document(&p.text_document.uri)?))
            }),
            asked::InlayHintRequest::METHOD => read(params).and_then(|p: lsp::InlayHintParams| {
                let settings = self.settings.clone();
                value(hints::hints(self.document(&p.text_document.uri)?, p.range, &settings))
            }),
            asked::SemanticTokensFullRequest::METHOD => read(params).and_then(|p| self.semantic_tokens(&p)),
            asked::ExecuteCommand::METHOD => read(params).and_then(|p| self.command(p)),
            _ => return None,
        })
    }

    /// Returns a document with its analysis up to date.
    fn document(&mut self, uri: &lsp::Uri) -> Result<&Document, String> {
        let document = self.documents.get_mut(uri.as_str());
        let document = document.ok_or_else(|| format!("{} is not open", uri.as_str()))?;
        if document.stale {
            document.update(&self.settings);
            let params = diagnostics(document);
            self.notify::<told::PublishDiagnostics>(params);
        }
        self.documents.get(uri.as_str()).ok_or_else(|| "the document is closed".to_string())
    }

    /// Returns the document and the byte offset of a position.
    fn place(&mut self, params: &lsp::TextDocumentPositionParams) -> Result<(&Document, usize), String> {
        let document = self.document(&params.text_document.uri)?;
        let offset = document.offset(params.position);
        Ok((document, offset))
    }

    fn hover(&mut self, params: &lsp::HoverParams) -> Answer {
        let (document, offset) = self.place(&params.text_document_position_params)?;
        value(match document.kind {
            DocumentKind::Pseudocode => pseudocode::hover(document, offset),
            _ => hover::hover(document, offset),
        })
    }

    fn completion(&mut self, params: &lsp::CompletionParams) -> Answer {
        let (document, offset) = self.place(&params.text_document_position)?;
        value(match document.kind {
            DocumentKind::Pseudocode => pseudocode::complete(document),
            DocumentKind::Described(_) => Vec::new(),
            DocumentKind::Kernel(_) => complete::complete(document, offset),
        })
    }

    fn definition(&mut self, params: &lsp::GotoDefinitionParams) -> Answer {
        let (document, offset) = self.place(&params.text_document_position_params)?;
        let location = |bytes| lsp::Location::new(document.uri.clone(), document.range(bytes));
        value(match document.kind {
            DocumentKind::Pseudocode => {
                pseudocode::definition(document, offset).into_iter().map(location).collect()
            }
            _ => symbols::definition(document, offset),
        })
    }

    /// The ranges of what is at an offset, each with whether it is a definition.
    fn occurrences(document: &Document, offset: usize) -> Vec<(std::ops::Range<usize>, bool)> {
        match document.kind {
            DocumentKind::Pseudocode => pseudocode::references(document, offset),
            _ => {
                symbols::references(document, offset).into_iter().map(|(t, w)| (t.start..t.end, w)).collect()
            }
        }
    }

    fn references(&mut self, params: &lsp::ReferenceParams) -> Answer {
        let all = params.context.include_declaration;
        let (document, offset) = self.place(&params.text_document_position)?;
        let found = Self::occurrences(document, offset).into_iter().filter(|(_, defines)| all || !defines);
        let location = |(bytes, _)| lsp::Location::new(document.uri.clone(), document.range(bytes));
        value(found.map(location).collect::<Vec<lsp::Location>>())
    }

    fn highlights(&mut self, params: &lsp::DocumentHighlightParams) -> Answer {
        let (document, offset) = self.place(&params.text_document_position_params)?;
        let mark = |(bytes, writes)| lsp::DocumentHighlight {
            range: document.range(bytes),
            kind: Some(if writes {
                lsp::DocumentHighlightKind::WRITE
            } else {
                lsp::DocumentHighlightKind::READ
            }),
        };
        let marks = Self::occurrences(document, offset).into_iter().map(mark);
        value(marks.collect::<Vec<lsp::DocumentHighlight>>())
    }

    fn outline(&mut self, params: &lsp::DocumentSymbolParams) -> Answer {
        let document = self.document(&params.text_document.uri)?;
        value(match document.kind {
            DocumentKind::Pseudocode => pseudocode::outline(document),
            _ => symbols::outline(document),
        })
    }

    fn prepare_rename(&mut self, params: &lsp::TextDocumentPositionParams) -> Answer {
        let (document, offset) = self.place(params)?;
        value(match document.kind {
            DocumentKind::Pseudocode => {
                let found = pseudocode::references(document, offset).into_iter();
                let at = found
                    .map(|(bytes, _)| bytes)
                    .find(|bytes| bytes.contains(&offset) || bytes.end == offset);
                document.range(at.ok_or("this file does not define the name")?)
            }
            _ => {
                let token = rename::prepare(document, offset)?;
                document.range(token.start..token.end)
            }
        })
    }

    fn rename(&mut self, params: lsp::RenameParams) -> Answer {
        let settings = self.settings.clone();
        let (document, offset) = self.place(&params.text_document_position)?;
        let edits = match document.kind {
            DocumentKind::Pseudocode => pseudocode::rename(document, offset, &params.new_name)?,
            _ => rename::rename(document, offset, &params.new_name, &settings)?,
        };
        let edit = |(bytes, text)| lsp::TextEdit::new(document.range(bytes), text);
        let edits: Vec<lsp::TextEdit> = edits.into_iter().map(edit).collect();
        value(json!({"changes": {document.uri.as_str(): edits}}))
    }

    fn semantic_tokens(&mut self, params: &lsp::SemanticTokensParams) -> Answer {
        let document = self.document(&params.text_document.uri)?;
        value(match document.kind {
            DocumentKind::Pseudocode => pseudocode::highlight(document),
            _ => highlight::kernel(document),
        })
    }

    /// Runs or checks a kernel: its results appear as diagnostics and inlay hints, and in the answer.
    fn command(&mut self, params: lsp::ExecuteCommandParams) -> Answer {
        let job = match params.command.as_str() {
            RUN => run::run,
            CHECK => run::check,
            other => return Err(format!("there is no command `{other}`; there are {RUN} and {CHECK}")),
        };
        let launch =
            params.arguments.into_iter().next().ok_or("the command needs an argument: {\"uri\": …}")?;
        let launch: Launch = serde_json::from_value(launch).map_err(|e| format!("wrong argument: {e}"))?;
        let settings = self.settings.clone();
        let uri = launch.uri.parse().map_err(|_| format!("`{}` is not an address", launch.uri))?;
        let result = job(self.document(&uri)?, &launch, &settings)?;
        let kind = match result.findings.is_empty() && result.fault.is_none() {
            true => lsp::MessageType::INFO,
            false => lsp::MessageType::WARNING,
        };
        self.notify::<told::ShowMessage>(lsp::ShowMessageParams {
            typ: kind,
            message: result.summary.clone(),
        });
        let answer = run::answer(&result);
        if let Some(document) = self.documents.get_mut(&launch.uri) {
            // A check has no values; those of the last run are still true.
            let mut result = result;
            if params.command == CHECK
                && let Some(before) = document.results.take()
            {
                result.values = before.values;
            }
            document.results = Some(result);
            let params = diagnostics(document);
            self.notify::<told::PublishDiagnostics>(params);
        }
        if self.refreshes {
            self.requests += 1;
            let method = asked::InlayHintRefreshRequest::METHOD.to_string();
            self.send(Message::Request(Request::new(self.requests.into(), method, Value::Null)));
        }
        Ok(answer)
    }
}

/// Returns the diagnostics of a document: its errors, and the findings of the last check.
fn diagnostics(document: &Document) -> lsp::PublishDiagnosticsParams {
    let mut out = Vec::new();
    for message in &document.analysis.messages {
        let text = match &message.help {
            Some(help) => format!("{}\n{help}", message.text),
            None => message.text.clone(),
        };
        let severity = match message.severity {
            Severity::Error => lsp::DiagnosticSeverity::ERROR,
            _ => lsp::DiagnosticSeverity::WARNING,
        };
        out.push(lsp::Diagnostic {
            range: document.range(message.from..message.to),
            severity: Some(severity),
            source: Some("wavesim".to_string()),
            message: text,
            ..lsp::Diagnostic::default()
        });
    }
    let line = |line: u32| {
        let bytes = document.lines.bytes(&document.text, (line as usize).saturating_sub(1));
        let text = &document.text[bytes.clone()];
        document
            .range(bytes.start + text.len() - text.trim_start().len()..bytes.start + text.trim_end().len())
    };
    let results = document.results.as_ref();
    for finding in results.map(|r| r.findings.as_slice()).unwrap_or_default() {
        let others = finding.other.iter().filter(|other| other.site.file.is_none() && other.site.line != 0);
        let related = others.map(|other| lsp::DiagnosticRelatedInformation {
            location: lsp::Location::new(document.uri.clone(), line(other.site.line)),
            message: other.role.to_string(),
        });
        let related: Vec<lsp::DiagnosticRelatedInformation> = related.collect();
        let severity = match finding.severity {
            wavesim_inspect::check::Severity::Error => lsp::DiagnosticSeverity::ERROR,
            _ => lsp::DiagnosticSeverity::INFORMATION,
        };
        let hint = finding.hint.as_ref().map_or(String::new(), |hint| format!("\n{hint}"));
        out.push(lsp::Diagnostic {
            range: line(finding.site.line),
            severity: Some(severity),
            code: Some(lsp::NumberOrString::String(format!("{}: {}", finding.check.name(), finding.kind))),
            source: Some("wavesim check".to_string()),
            message: format!("{}{hint}", finding.message),
            related_information: (!related.is_empty()).then_some(related),
            ..lsp::Diagnostic::default()
        });
    }
    if let Some(fault) = results.and_then(|r| r.fault.as_deref()) {
        out.push(lsp::Diagnostic {
            range: line(fault.line),
            severity: Some(lsp::DiagnosticSeverity::ERROR),
            source: Some("wavesim".to_string()),
            message: format!("{}: {}", fault.kind.name(), fault.message),
            ..lsp::Diagnostic::default()
        });
    }
    lsp::PublishDiagnosticsParams::new(document.uri.clone(), out, Some(document.version))
}
