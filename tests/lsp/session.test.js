// Tests of `wavesim lsp` with the client library of Visual Studio Code, and of the packed extension. scripts/test-editors.sh
// runs them. WAVESIM is the binary, ROOT the repository, and VSIX the folder of the unpacked extension, if there is one.

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const Module = require("node:module");
const { spawn } = require("node:child_process");
const { pathToFileURL } = require("node:url");
const { test } = require("node:test");
const protocol = require("vscode-languageserver-protocol/node");
const { INITIAL, Registry, parseRawGrammar } = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

const wavesim = process.env.WAVESIM;
const root = process.env.ROOT;
const vsix = process.env.VSIX;
const file = (name) => path.join(root, name);

/** Starts a language server and initializes a session that is closed when the test ends. */
async function session(t, { command, args } = { command: wavesim, args: ["lsp"] }) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const connection = protocol.createProtocolConnection(
    new protocol.StreamMessageReader(child.stdout),
    new protocol.StreamMessageWriter(child.stdin),
  );
  const waiting = new Map();
  connection.onNotification(protocol.PublishDiagnosticsNotification.type, ({ uri, diagnostics }) => {
    waiting.get(uri)?.(diagnostics);
  });
  connection.onNotification(protocol.ShowMessageNotification.type, () => {});
  connection.onRequest(protocol.InlayHintRefreshRequest.type, () => null);
  connection.listen();
  const initialized = await connection.sendRequest(protocol.InitializeRequest.type, {
    processId: process.pid,
    rootUri: null,
    capabilities: { workspace: { inlayHint: { refreshSupport: true } } },
  });
  await connection.sendNotification(protocol.InitializedNotification.type, {});
  t.after(async () => {
    await connection.sendRequest(protocol.ShutdownRequest.type);
    await connection.sendNotification(protocol.ExitNotification.type);
    assert.equal(await ended, 0);
    connection.dispose();
  });
  /** The next diagnostics of a document. */
  const diagnosed = (uri) => new Promise((resolve) => waiting.set(uri, resolve));
  return { connection, initialized, diagnosed };
}

/** Opens a file and returns its address, its text and its diagnostics. */
async function open({ connection, diagnosed }, name, languageId, text = fs.readFileSync(file(name), "utf8")) {
  const uri = pathToFileURL(file(name)).href;
  const diagnostics = diagnosed(uri);
  const textDocument = { uri, languageId, version: 1, text };
  await connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, { textDocument });
  return { uri, text, diagnostics: await diagnostics };
}

/** The position of a text in a document. */
function position(text, wanted, skip = 0) {
  const before = text.slice(0, text.indexOf(wanted) + skip);
  const line = before.split("\n").length - 1;
  return { line, character: before.length - (before.lastIndexOf("\n") + 1) };
}

test("a session with the client library", async (t) => {
  const client = await session(t);
  assert.equal(client.initialized.serverInfo.name, "wavesim");
  const { uri, text, diagnostics } = await open(client, "examples/vector_add.rdna", "rdna");
  assert.deepEqual(diagnostics, []);
  const textDocument = { uri };
  const ask = (type, more) => client.connection.sendRequest(type, { textDocument, ...more });

  const at = position(text, "v_add_f32");
  const hover = await ask(protocol.HoverRequest.type, { position: at });
  assert.match(hover.contents.value, /D0\.f32 = S0\.f32 \+ S1\.f32/);
  const items = await ask(protocol.CompletionRequest.type, { position: { ...at, character: at.character + 4 } });
  assert.ok(items.some((item) => item.label === "v_fma_f32"));
  const definition = await ask(protocol.DefinitionRequest.type, { position: position(text, "execz done", 6) });
  assert.deepEqual(definition.map((d) => d.range.start), [position(text, "done:")]);

  const s5 = position(text, "s5, s0");
  const range = await ask(protocol.PrepareRenameRequest.type, { position: s5 });
  assert.deepEqual(range.start, s5);
  const edit = await ask(protocol.RenameRequest.type, { position: s5, newName: "s20" });
  assert.deepEqual(edit.changes[uri].map((e) => [e.range.start.line, e.newText]), [[s5.line, "s20"], [s5.line + 1, "s20"]]);
  await assert.rejects(ask(protocol.RenameRequest.type, { position: s5, newName: "v1" }), /SGPRs/);

  const lenses = await ask(protocol.CodeLensRequest.type, {});
  const [run, check] = lenses.map((lens) => lens.command);
  const answer = await client.connection.sendRequest(protocol.ExecuteCommandRequest.type, run);
  assert.equal(answer.outputs[0].name, "out_c");
  const whole = { start: { line: 0, character: 0 }, end: { line: 99, character: 0 } };
  const hints = await ask(protocol.InlayHintRequest.type, { range: whole });
  assert.ok(hints.some((hint) => hint.label.startsWith("v2 = [0.5, 1.5,")));
  const checked = await client.connection.sendRequest(protocol.ExecuteCommandRequest.type, check);
  assert.match(checked.summary, /^clean/);
  const tokens = await ask(protocol.SemanticTokensRequest.type, {});
  assert.equal(tokens.data.length % 5, 0);

  const changed = client.diagnosed(uri);
  await client.connection.sendNotification(protocol.DidChangeTextDocumentNotification.type, {
    textDocument: { uri, version: 2 },
    contentChanges: [{ range: { start: at, end: { ...at, character: at.character + 9 } }, text: "v_ad_f32" }],
  });
  const [error] = await changed;
  assert.deepEqual(error.range.start, at);
});

test("every example is free of errors", async (t) => {
  const client = await session(t);
  for (const name of fs.readdirSync(file("examples")).filter((name) => /\.(rdna|s)$/.test(name))) {
    const { diagnostics } = await open(client, `examples/${name}`, "rdna");
    // header.rdna is a part of other files.
    if (name !== "header.rdna") assert.deepEqual(diagnostics, [], name);
  }
});

test("grammars find comments, instructions, registers and labels", async () => {
  const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const folder = file("editors/vscode");
  const { grammars } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"))).contributes;
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async (scope) => {
      const grammar = grammars.find((g) => g.scopeName === scope);
      return grammar && parseRawGrammar(fs.readFileSync(path.join(folder, grammar.path), "utf8"), grammar.path);
    },
  });
  /** Returns the scope of each word of a text. */
  const scopes = async (scope, text) => {
    const grammar = await registry.loadGrammar(scope);
    const found = new Map();
    let stack = INITIAL;
    for (const line of text.split("\n")) {
      const { tokens, ruleStack } = grammar.tokenizeLine(line, stack);
      for (const token of tokens) found.set(line.slice(token.startIndex, token.endIndex), token.scopes.at(-1));
      stack = ruleStack;
    }
    return found;
  };
  const amdgpu = await scopes("source.amdgpu", "  .text // code\nloop:\n  v_add_f32 v1, s[2:3], 0x10\n.macro m x\n  s_nop \\x\n");
  assert.equal(amdgpu.get(".text"), "keyword.other.directive.amdgpu");
  assert.equal(amdgpu.get("// code"), "comment.line.amdgpu");
  assert.equal(amdgpu.get("loop"), "entity.name.label.amdgpu");
  assert.equal(amdgpu.get("v_add_f32"), "support.function.instruction.rdna");
  assert.equal(amdgpu.get("v1"), "variable.language.register.rdna");
  assert.equal(amdgpu.get("0x10"), "constant.numeric.rdna");
  assert.equal(amdgpu.get("m"), "entity.name.function.amdgpu");
  const pcode = await scopes("source.pcode", "instruction V_ADD_F32 { // sum\n  D0.f32 = fma(S0.f32, 1.0, 2U);\n}\n");
  assert.equal(pcode.get("V_ADD_F32"), "entity.name.function.pcode");
  assert.equal(pcode.get("// sum"), "comment.line.double-slash.pcode");
  assert.equal(pcode.get("D0"), "variable.language.pcode");
  assert.equal(pcode.get("f32"), "storage.type.pcode");
  assert.equal(pcode.get("fma"), "support.function.pcode");
  assert.equal(pcode.get("2U"), "constant.numeric.pcode");
  const rdna = await scopes("source.rdna", "---\narg_x: f32[4] = arange(4)\n---\n  v_mov_b32 v0, 1 ; x\n");
  assert.equal(rdna.get("arg_x"), "variable.parameter.rdna");
  assert.equal(rdna.get("; x"), "comment.line.rdna");
});

const packed = { skip: vsix ? false : "the extension was not packed" };

/** Starts a program with the binary's folder in PATH, and returns the first message that it sends after `message`. */
async function exchange(command, args, message) {
  const env = { ...process.env, PATH: `${path.dirname(wavesim)}${path.delimiter}${process.env.PATH}` };
  const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"] });
  const body = JSON.stringify(message);
  child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  let text = "";
  for await (const bytes of child.stdout) {
    text += bytes;
    if (/\r\n\r\n\{.*\}/s.test(text)) break;
  }
  child.kill();
  return JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4).split(/Content-Length/)[0]);
}

test("the manifest of the package names files that are in it", packed, async () => {
  const manifest = JSON.parse(fs.readFileSync(path.join(vsix, "package.json")));
  const { languages, grammars, debuggers } = manifest.contributes;
  const named = [manifest.main, ...languages.map((l) => l.configuration), ...grammars.map((g) => g.path)];
  for (const name of named) assert.ok(fs.existsSync(path.join(vsix, name)), name);
  for (const name of Object.keys(manifest.dependencies)) {
    assert.ok(fs.existsSync(path.join(vsix, "node_modules", name, "package.json")), name);
  }
  // The editor's rule for an adapter with a runtime that is not a relative path: it is started as it is.
  const [{ runtime, runtimeArgs }] = debuggers;
  const request = { seq: 1, type: "request", command: "initialize", arguments: { adapterID: "wavesim" } };
  const answer = await exchange(runtime, runtimeArgs, request);
  assert.equal(answer.command, "initialize");
  assert.equal(answer.success, true);
});

test("the extension starts the language server and the adapter", packed, async (t) => {
  // The editor's interface, as far as the extension uses it; the client library is replaced, too, as it needs all of it.
  const made = {};
  const vscode = {
    workspace: { getConfiguration: () => ({ get: (_, otherwise) => otherwise, arch: null }), getWorkspaceFolder: () => undefined },
    window: { createOutputChannel: () => ({ appendLine() {}, dispose() {} }) },
    commands: { registerCommand: (name, run) => ((made[name] = run), { dispose() {} }) },
    debug: {
      registerDebugAdapterDescriptorFactory: (type, factory) => ((made[type] = factory), { dispose() {} }),
      startDebugging: async (_, launch) => (made.launch = launch),
    },
    DebugAdapterExecutable: class {
      constructor(command, args) {
        Object.assign(this, { command, args });
      }
    },
    Uri: { parse: (text) => ({ fsPath: new URL(text).pathname }) },
  };
  class LanguageClient {
    constructor(id, name, server, options) {
      Object.assign(made, { server, options });
    }
    async start() {
      made.started = true;
    }
    async stop() {}
    dispose() {}
  }
  const load = Module._load;
  t.after(() => (Module._load = load));
  Module._load = (name, ...rest) =>
    name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);
  const extension = require(path.join(vsix, "extension.js"));
  const context = { subscriptions: [] };
  await extension.activate(context);
  assert.ok(made.started);
  const languages = made.options.documentSelector.map((d) => d.language).filter(Boolean);
  assert.deepEqual(languages, ["rdna", "amdgpu", "pcode"]);
  const { command, args } = made.wavesim.createDebugAdapterDescriptor();
  assert.deepEqual([command, args], ["wavesim", ["dap"]]);
  const initialize = { jsonrpc: "2.0", id: 1, method: "initialize", params: { capabilities: {}, initializationOptions: made.options.initializationOptions } };
  const answer = await exchange(made.server.command, made.server.args, initialize);
  assert.equal(answer.result.serverInfo.name, "wavesim");
  await made["wavesim.debug"]({ uri: pathToFileURL(file("examples/matmul.rdna")).href });
  assert.equal(made.launch.program, file("examples/matmul.rdna"));
  // Text kernels have their launch; the command goes on with it.
  const sent = await made.options.middleware.executeCommand("wavesim.run", [{ uri: "file:///x" }], async (_, [target]) => ({ target, outputs: [] }));
  assert.deepEqual(sent.target, { uri: "file:///x" });
});
