//! The messages of the protocol that this adapter uses, by the names of its specification
//! (<https://microsoft.github.io/debug-adapter-protocol/specification>, version 1.68).
//!
//! The corresponding crates on crates.io are not used: `dap` is an alpha that reads the stream itself and
//! rejects unknown requests before the adapter can answer them; `dap-types`, `debug_types` and
//! `debug-adapter-protocol` describe versions without instruction breakpoints and `writeMemory`, and are
//! unmaintained.

#![expect(missing_docs, reason = "the names are those of the specification")]

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Deserialize)]
pub struct Request {
    pub seq: i64,
    pub command: String,
    #[serde(default)]
    pub arguments: Value,
}

/// The attributes of `launch`. All but the last three are options of the command line.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LaunchArguments {
    pub program: String,
    pub data: Option<String>,
    pub arch: Option<String>,
    pub mcpu: Option<String>,
    pub target: Option<String>,
    pub wave: Option<u32>,
    pub define: BTreeMap<String, Value>,
    pub kernel: Option<String>,
    pub grid: Option<Vec<u32>>,
    pub block: Option<Vec<u32>>,
    pub args: Vec<String>,
    pub include: Vec<String>,
    pub schedule: Option<String>,
    pub order: Vec<String>,
    pub semantics: Option<String>,
    pub seed: Option<u64>,
    pub global_memsize: Option<u64>,
    pub max_instructions: Option<u64>,
    pub files_below: Option<String>,
    pub no_debug: bool,
    pub stop_on_entry: bool,
    /// Whether the session continues after the last instruction, so that the user can go back; the default is
    /// true.
    pub stop_at_end: Option<bool>,
    /// What a server that listens for connections has printed, for its own users.
    pub token: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializeArguments {
    #[serde(rename = "linesStartAt1")]
    pub lines_start_at_1: Option<bool>,
    #[serde(rename = "columnsStartAt1")]
    pub columns_start_at_1: Option<bool>,
    pub supports_invalidated_event: bool,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Source {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_reference: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetBreakpointsArguments {
    pub source: Source,
    pub breakpoints: Vec<SourceBreakpoint>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceBreakpoint {
    pub line: i64,
    #[serde(flatten)]
    pub when: StopConditions,
}

/// Attributes that all kinds of breakpoints share.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StopConditions {
    pub condition: Option<String>,
    pub hit_condition: Option<String>,
    pub log_message: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FunctionBreakpoint {
    pub name: String,
    #[serde(flatten)]
    pub when: StopConditions,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstructionBreakpoint {
    pub instruction_reference: String,
    pub offset: i64,
    #[serde(flatten)]
    pub when: StopConditions,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataBreakpoint {
    pub data_id: String,
    pub access_type: Option<String>,
    #[serde(flatten)]
    pub when: StopConditions,
}

/// The argument of `setFunctionBreakpoints` and similar requests.
#[derive(Debug, Clone, Deserialize)]
pub struct Breakpoints<B> {
    #[serde(default = "Vec::new")]
    pub breakpoints: Vec<B>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetExceptionBreakpointsArguments {
    pub filters: Vec<String>,
    pub filter_options: Vec<ExceptionFilterOptions>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExceptionFilterOptions {
    pub filter_id: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataBreakpointInfoArguments {
    pub variables_reference: Option<i64>,
    pub name: String,
    pub frame_id: Option<i64>,
    pub bytes: Option<u64>,
    pub as_address: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepArguments {
    pub thread_id: i64,
    pub granularity: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StackTraceArguments {
    pub thread_id: i64,
    pub start_frame: usize,
    /// Maximum number of frames; 0 for all.
    pub levels: usize,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FrameArguments {
    pub frame_id: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VariablesArguments {
    pub variables_reference: i64,
    pub filter: Option<String>,
    pub start: Option<usize>,
    pub count: Option<usize>,
    pub format: ValueFormat,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValueFormat {
    pub hex: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetVariableArguments {
    pub variables_reference: i64,
    pub name: String,
    pub value: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvaluateArguments {
    pub expression: String,
    /// For `setExpression`.
    pub value: String,
    pub frame_id: Option<i64>,
    pub context: Option<String>,
    pub format: ValueFormat,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceArguments {
    pub source: Option<Source>,
    pub source_reference: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LineArguments {
    pub source: Source,
    pub line: i64,
    pub end_line: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GotoArguments {
    pub thread_id: i64,
    pub target_id: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryArguments {
    pub memory_reference: String,
    pub offset: i64,
    /// For `readMemory`.
    pub count: u64,
    /// For `writeMemory`, in base64.
    pub data: String,
    pub allow_partial: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DisassembleArguments {
    pub memory_reference: String,
    pub offset: i64,
    pub instruction_offset: i64,
    pub instruction_count: usize,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompletionsArguments {
    pub text: String,
    pub column: usize,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Breakpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    pub verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_reference: Option<String>,
}

impl Breakpoint {
    /// Creates a breakpoint that could not be set.
    pub fn unverified(message: String) -> Breakpoint {
        Breakpoint { message: Some(message), ..Breakpoint::default() }
    }
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    pub name: String,
    pub value: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluate_name: Option<String>,
    pub variables_reference: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed_variables: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presentation_hint: Option<Value>,
}
