// Tests of `wavesim dap` sessions, with the test client of Visual Studio Code's own debug adapters.
// cargo xtask test-dap runs them. WAVESIM is the binary, and ROOT the repository.

const { DebugClient } = require("@vscode/debugadapter-testsupport");
const assert = require("node:assert/strict");
const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");
const { spawn, spawnSync } = require("node:child_process");
const { test } = require("node:test");

const wavesim = process.env.WAVESIM;
const root = process.env.ROOT;
const file = (name) => path.resolve(root, name);

/** Runs a session that is closed when the test ends, even if it fails. */
async function session(t, port) {
  const client = new DebugClient(wavesim, "dap", "wavesim", { env: process.env }, false);
  client.defaultTimeout = 60000;
  await client.start(port);
  // A server outlives its clients, each of which may be stopped only once.
  if (port === undefined) t.after(() => client.stop());
  return client;
}

/** Launches a kernel and waits for the stop at its first instruction. */
async function entry(t, program, more = {}, configure = async () => {}) {
  const client = await session(t);
  const stopped = client.waitForEvent("stopped");
  await Promise.all([
    client.waitForEvent("initialized").then(() => configure(client)).then(() => client.configurationDoneRequest()),
    client.launch({ program: file(program), stopOnEntry: true, ...more }),
  ]);
  const event = await stopped;
  return { client, thread: event.body.threadId };
}

/** Sends a request that resumes the kernel, and returns the next stop. */
async function stop(client, request, argument) {
  const stopped = client.waitForEvent("stopped");
  await client.send(request, argument);
  return (await stopped).body;
}

async function top(client, threadId) {
  return (await client.stackTraceRequest({ threadId })).body.stackFrames[0];
}

async function scope(client, frameId, name) {
  const { scopes } = (await client.scopesRequest({ frameId })).body;
  return scopes.find((s) => s.name === name).variablesReference;
}

async function variables(client, variablesReference, more = {}) {
  return (await client.variablesRequest({ variablesReference, ...more })).body.variables;
}

async function value(client, expression, frameId) {
  return (await client.evaluateRequest({ expression, frameId })).body.result;
}

test("a breakpoint in a text kernel is hit", async (t) => {
  const client = await session(t);
  const program = file("examples/broken/wrong_result.rdna");
  await client.hitBreakpoint({ program }, { path: program, line: 17 });
});

test("stepping, registers and lanes", async (t) => {
  const { client, thread } = await entry(t, "examples/vector_add.rdna", { define: { N: 31 } });
  const frame = await top(client, thread);
  assert.equal(frame.line, 13);
  assert.equal(path.basename(frame.source.path), "vector_add.rdna");
  const threads = (await client.threadsRequest()).body.threads;
  assert.deepEqual(threads.map((x) => x.name), ["workgroup (0,0,0) wave 0", "workgroup (0,0,0) wave 1"]);

  assert.equal((await stop(client, "next", { threadId: thread })).reason, "step");
  assert.equal((await top(client, thread)).line, 14);
  await client.setBreakpointsRequest({ source: { path: file("examples/vector_add.rdna") }, breakpoints: [{ line: 26 }] });
  const hit = await stop(client, "continue", { threadId: thread });
  assert.equal(hit.reason, "breakpoint");
  assert.equal(hit.hitBreakpointIds.length, 1);

  // VGPRs are arrays indexed by lane, with inactive lanes marked.
  const id = (await top(client, thread)).id;
  const registers = await variables(client, await scope(client, id, "VGPRs"));
  const v2 = registers.find((v) => v.name === "v2");
  assert.equal(v2.indexedVariables, 32);
  const lanes = await variables(client, v2.variablesReference, { filter: "indexed", start: 29, count: 3 });
  assert.deepEqual(lanes.map((l) => l.name), ["[29]", "[30]", "[31] (inactive)"]);
  assert.match(lanes[0].value, /29\.0f\)$/);
  const wave = await variables(client, await scope(client, id, "Wave"));
  assert.equal(wave.find((v) => v.name === "exec").value, "0x7fffffff");

  // Expressions, and setting a lane.
  assert.equal(await value(client, "v2[29].f32 + 0.5", id), "29.5");
  const set = await client.setVariableRequest({ variablesReference: v2.variablesReference, name: "[3]", value: "2.5" });
  assert.match(set.body.value, /2\.5f\)$/);
  await stop(client, "next", { threadId: thread });
  assert.equal(await value(client, "v2[3].f32", id), "3.0");

  // Stepping back over the instruction keeps the value that was set.
  assert.equal((await stop(client, "stepBack", { threadId: thread })).reason, "step");
  assert.equal((await top(client, thread)).line, 26);
  assert.equal(await value(client, "v2[3].f32", id), "2.5");
  const start = await stop(client, "reverseContinue", { threadId: thread });
  assert.equal(start.reason, "entry");
});

test("conditions, hit counts and messages", async (t) => {
  const program = file("examples/matmul.rdna");
  const { client, thread } = await entry(t, "examples/matmul.rdna");
  const source = { path: program };
  const set = async (breakpoint) =>
    (await client.setBreakpointsRequest({ source, breakpoints: [breakpoint] })).body.breakpoints[0];
  await set({ line: 27, condition: "s12 == 14" });
  assert.equal((await stop(client, "continue", { threadId: thread })).reason, "breakpoint");
  const id = (await top(client, thread)).id;
  assert.match(await value(client, "s12", id), /^14 /);
  await set({ line: 27, hitCondition: "== 3" });
  await stop(client, "continue", { threadId: thread });
  assert.match(await value(client, "s12", id), /^11 /);
  const wrong = await set({ line: 27, condition: "s12 ==" });
  assert.equal(wrong.verified, false);
  assert.match(wrong.message, /expected a value/);
  const other = await client.setBreakpointsRequest({ source: { path: file("README.md") }, breakpoints: [{ line: 3 }] });
  assert.equal(other.body.breakpoints[0].verified, false);

  // Logpoints do not stop.
  const logged = client.waitForEvent("output");
  await set({ line: 36, logMessage: "s12 is {s12}" });
  const end = stop(client, "continue", { threadId: thread });
  assert.equal((await logged).body.output, "s12 is 0\n");
  assert.match((await end).text, /^the run has ended after/);
});

test("functions, instructions and disassembly", async (t) => {
  const { client, thread } = await entry(t, "examples/matmul.rdna");
  const functions = await client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "loop" }, { name: "lop" }] });
  assert.deepEqual(functions.body.breakpoints.map((b) => b.verified), [true, false]);
  assert.match(functions.body.breakpoints[1].message, /did you mean `loop`/);
  assert.equal((await stop(client, "continue", { threadId: thread })).reason, "function breakpoint");
  const frame = await top(client, thread);
  assert.equal(frame.name, "loop");
  const listed = await client.disassembleRequest({
    memoryReference: frame.instructionPointerReference, instructionOffset: -2, instructionCount: 6,
  });
  const list = listed.body.instructions;
  assert.equal(list.length, 6);
  assert.equal(list[2].symbol, "loop");
  assert.match(list[2].instruction, /^global_load_b32/);
  assert.equal(list[2].line, 27);
  await client.setFunctionBreakpointsRequest({ breakpoints: [] });
  const set = await client.send("setInstructionBreakpoints", { breakpoints: [{ instructionReference: list[4].address }] });
  assert.equal(set.body.breakpoints[0].verified, true);
  assert.equal((await stop(client, "continue", { threadId: thread })).reason, "instruction breakpoint");
  assert.equal((await top(client, thread)).instructionPointerReference, list[4].address);
});

test("data breakpoints, memory, and the end", async (t) => {
  const { client, thread } = await entry(t, "examples/broken/wrong_result.rdna");
  const id = (await top(client, thread)).id;
  const args = await scope(client, id, "Arguments");
  const out = (await variables(client, args)).find((v) => v.name === "out_y");
  assert.equal(out.indexedVariables, 32);
  const info = await client.dataBreakpointInfoRequest({ variablesReference: out.variablesReference, name: "[3]" });
  assert.deepEqual(info.body.accessTypes, ["read", "write", "readWrite"]);
  const dataId = info.body.dataId;
  const set = await client.setDataBreakpointsRequest({ breakpoints: [{ dataId, accessType: "write" }] });
  assert.equal(set.body.breakpoints[0].verified, true);
  const hit = await stop(client, "continue", { threadId: thread });
  assert.equal(hit.reason, "data breakpoint");
  assert.match(hit.text, /out_y\[3\] changed/);
  assert.equal(await value(client, "out_y[3]", id), "-7");

  // Reading and writing memory.
  const memoryReference = out.memoryReference;
  const read = await client.send("readMemory", { memoryReference, offset: 12, count: 4 });
  assert.deepEqual([...Buffer.from(read.body.data, "base64")], [0xf9, 0xff, 0xff, 0xff]);
  const data = Buffer.from([7, 0, 0, 0]).toString("base64");
  await client.send("writeMemory", { memoryReference, offset: 12, data });
  assert.equal(await value(client, "out_y[3]", id), "7");

  // At the end of the run the session stays open: the user can step back before ending it.
  const end = await stop(client, "continue", { threadId: thread });
  assert.match(end.text, /has ended/);
  const back = await stop(client, "reverseContinue", { threadId: thread });
  assert.equal(back.reason, "data breakpoint");
  await client.setDataBreakpointsRequest({ breakpoints: [] });
  await stop(client, "continue", { threadId: thread });
  const terminated = client.waitForEvent("terminated");
  await client.continueRequest({ threadId: thread });
  await terminated;
});

test("checks are exception breakpoints", async (t) => {
  const { client, thread } = await entry(t, "examples/broken/out_of_bounds.rdna", {}, (c) =>
    c.setExceptionBreakpointsRequest({ filters: ["mem"] }));
  const hit = await stop(client, "continue", { threadId: thread });
  assert.equal(hit.reason, "exception");
  assert.match(hit.text, /^mem at line 18: load of 4 bytes/);
  const { body } = await client.exceptionInfoRequest({ threadId: hit.threadId });
  assert.equal(body.exceptionId, "mem");
  assert.match(body.details.stackTrace, /line 18: global_load_b32/);
  // Go to the access of the register in the report, and back to the report.
  await stop(client, "continue", { threadId: hit.threadId });
  const back = await stop(client, "reverseContinue", { threadId: hit.threadId });
  assert.match(back.text, /^mem at line 18: load of 4 bytes/);
  assert.equal((await top(client, back.threadId)).line, 18);
});

test("a kernel that runs is paused, and requests are answered meanwhile", async (t) => {
  const { client, thread } = await entry(t, "tests/dap/endless.rdna");
  await client.continueRequest({ threadId: thread });
  const threads = await client.threadsRequest();
  assert.equal(threads.body.threads.length, 1);
  await assert.rejects(client.nextRequest({ threadId: thread }), /the kernel runs/);
  const stopped = await stop(client, "pause", { threadId: thread });
  assert.equal(stopped.reason, "pause");
  const id = (await top(client, thread)).id;
  assert.equal(await value(client, "s5 > 0", id), "1");
});

test("commands of the debugger in the console", async (t) => {
  const { client, thread } = await entry(t, "examples/broken/wrong_result.rdna");
  const frameId = (await top(client, thread)).id;
  const repl = async (expression) =>
    (await client.evaluateRequest({ expression, frameId, context: "repl" })).body.result;
  const moved = client.waitForEvent("stopped");
  await repl("until 18");
  await moved;
  assert.equal((await top(client, thread)).line, 18);
  await repl("lane 3");
  assert.match(await repl("why v2 2"), /line 17: v_min_i32_e32 v2, v2, v3\n  v2 \(lane 3\): step 6/);
  const { targets } = (await client.completionsRequest({ text: "p out", column: 6, frameId })).body;
  assert.deepEqual(targets.map((x) => x.label), ["out_y"]);
});

test("assembly files and launch descriptions", async (t) => {
  const program = "examples/scale.s";
  const more = { grid: [2], block: [32], args: ["x: f32[50]=arange(50)", "out_y: f32[50]", "2.5", "i32=50"] };
  const { client, thread } = await entry(t, program, { ...more, stopAtEnd: false });
  const frame = await top(client, thread);
  assert.equal(path.basename(frame.source.path), "scale.s");
  assert.ok(frame.line > 1);
  const output = client.assertOutput("stdout", "out_y: f32[50] =");
  await Promise.all([client.waitForEvent("terminated"), client.continueRequest({ threadId: thread })]);
  await output;
});

test("recorded schedules are replayed", async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "wavesim-dap-"));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const kernel = path.join(folder, "last_store.rdna");
  fs.copyFileSync(file("examples/explore/last_store.rdna"), kernel);
  // Exit code 1: a schedule with another result.
  assert.equal(spawnSync(wavesim, ["explore", "last_store.rdna", "--random", "50"], { cwd: folder }).status, 1);
  for (const [schedule, expected] of [[undefined, "32"], [path.join(folder, "last_store.sched"), "0"]]) {
    const { client, thread } = await entry(t, kernel, schedule ? { schedule } : {});
    await stop(client, "continue", { threadId: thread });
    assert.equal((await value(client, "out_y[0]")).split(" ")[0], expected);
  }
  const client = await session(t);
  await client.initializeRequest();
  const other = { program: file("examples/vector_add.rdna"), schedule: path.join(folder, "last_store.sched") };
  await assert.rejects(client.launchRequest(other), /last_store/);
});

test("errors are responses", async (t) => {
  const client = await session(t);
  await client.initializeRequest();
  await assert.rejects(client.launchRequest({ program: "nowhere.rdna" }), /nowhere\.rdna/);
  await assert.rejects(client.launchRequest({}), /`program` is missing/);
  await assert.rejects(client.launchRequest({ program: file("examples/c/kernels.c") }), /source code/);
  await assert.rejects(client.launchRequest({ program: file("examples/matmul.rdna"), arch: "rdna9" }), /rdna9/);
  await assert.rejects(client.threadsRequest(), /`launch` comes first/);
  await assert.rejects(client.attachRequest({}), /launch/);
  const initialized = client.waitForEvent("initialized");
  await client.launchRequest({ program: file("examples/matmul.rdna") });
  await initialized;
  await assert.rejects(client.variablesRequest({ variablesReference: 99 }), /from before/);
  await assert.rejects(client.stackTraceRequest({ threadId: 99 }), /does not run now/);
  await assert.rejects(client.send("nonsense", {}), /not supported/);
  await assert.rejects(client.send("readMemory", { memoryReference: "nonsense", count: 1 }), /not a reference/);
  await assert.rejects(client.setExceptionBreakpointsRequest({ filters: ["nonsense"] }), /checks are mem/);
});

test("clients connect to a port", async (t) => {
  const server = spawn(wavesim, ["dap", "--listen", "0"], { stdio: ["ignore", "ignore", "pipe"] });
  t.after(() => server.kill());
  const line = await new Promise((resolve) => server.stderr.once("data", (d) => resolve(d.toString())));
  const [, port, token] = /listening on 127\.0\.0\.1:(\d+)\/([0-9a-f]{32})/.exec(line);
  const program = file("examples/broken/wrong_result.rdna");
  for (let turn = 0; turn < 2; turn += 1) {
    const client = await session(t, port);
    await client.hitBreakpoint({ program, token }, { path: program, line: 17 });
    await client.stop();
  }
  // An invalid stream closes only its own connection.
  await new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1", () => socket.end("nonsense\r\n\r\n"));
    socket.on("close", resolve).resume();
  });
  // A launch without the token is refused, and ends its connection.
  const answer = await new Promise((resolve) => {
    let text = "";
    const socket = net.connect(port, "127.0.0.1", () => {
      const request = JSON.stringify({ seq: 1, type: "request", command: "launch", arguments: { program } });
      socket.write(`Content-Length: ${request.length}\r\n\r\n${request}`);
    });
    socket.on("data", (data) => (text += data)).on("close", () => resolve(text));
  });
  assert.match(answer, /"success":false.*`token`/s);
  const client = await session(t, port);
  await client.hitBreakpoint({ program, token }, { path: program, line: 9 });
  await client.stop();
});

test("steps into and out of calls of a text kernel", async (t) => {
  const { client, thread } = await entry(t, "tests/filetests/debug/calls.rdna");
  await client.setBreakpointsRequest({ source: { path: file("tests/filetests/debug/calls.rdna") }, breakpoints: [{ line: 16 }] });
  await stop(client, "continue", { threadId: thread });
  await stop(client, "stepIn", { threadId: thread });
  const { stackFrames } = (await client.stackTraceRequest({ threadId: thread })).body;
  assert.deepEqual(stackFrames.map((f) => [f.name, f.line]), [["count", 33], ["base+0xc", 16]]);
  await stop(client, "stepOut", { threadId: thread });
  assert.equal((await top(client, thread)).line, 17);
  await stop(client, "next", { threadId: thread });
  assert.equal((await top(client, thread)).line, 20);
});

const smooth = {
  grid: [1], block: [64],
  args: ["x: f32[64]=arange(64)", "out_y: f32[64]", "out_pair: f16[128]", "1"],
};

test("frames and variables of the source", async (t) => {
  const { client, thread } = await entry(t, "examples/debugger/smooth.co", smooth);
  const breakpoint = { name: "smooth", condition: "any(i == 63)" };
  const set = await client.setFunctionBreakpointsRequest({ breakpoints: [breakpoint] });
  assert.equal(set.body.breakpoints[0].verified, true);
  const hit = await stop(client, "continue", { threadId: thread });
  const { stackFrames, totalFrames } = (await client.stackTraceRequest({ threadId: hit.threadId })).body;
  assert.deepEqual(stackFrames.map((f) => [f.name, f.line]), [["smooth", 20], ["blur", 39]]);
  assert.equal(totalFrames, 2);
  assert.equal(path.basename(stackFrames[1].source.path), "smooth.cl");
  const second = (await client.stackTraceRequest({ threadId: hit.threadId, startFrame: 1, levels: 1 })).body;
  assert.deepEqual(second.stackFrames.map((f) => f.id), [stackFrames[1].id]);

  const locals = await variables(client, await scope(client, stackFrames[0].id, "Locals"));
  const named = (name) => locals.find((v) => v.name === name);
  assert.deepEqual([named("i").value, named("i").type], ["32", "int"]);
  assert.match(named("mean").value, /optimised out/);
  assert.equal(await value(client, "i + radius", stackFrames[0].id), "33 (0x21, 4.6e-44f)");
  assert.equal(await value(client, "lane", stackFrames[0].id), "0");

  // The outer frame has its own variables.
  const tile = (await variables(client, await scope(client, stackFrames[1].id, "Locals"))).find((v) => v.name === "tile");
  assert.equal(tile.type, "float[64]");
  const elements = await variables(client, tile.variablesReference);
  assert.deepEqual([elements[63].name, elements[63].value], ["[63]", "63.0"]);
  await client.setVariableRequest({ variablesReference: tile.variablesReference, name: "[63]", value: "5" });
  assert.equal(await value(client, "tile[63]", stackFrames[1].id), "5.0");
  const watched = await client.send("dataBreakpointInfo", { variablesReference: tile.variablesReference, name: "[62]" });
  assert.match(watched.body.dataId, /tile\[62\]/);

  // A step over a line, and out of the function.
  assert.equal((await stop(client, "next", { threadId: hit.threadId })).reason, "step");
  assert.equal((await top(client, hit.threadId)).line, 22);
  await stop(client, "stepOut", { threadId: hit.threadId });
  const outer = await top(client, hit.threadId);
  assert.deepEqual([outer.name, outer.line], ["blur", 40]);
});

test("inlined functions and names of instructions", async (t) => {
  const nested = "tests/filetests/debug/objects/nested.gfx1100-O0.co";
  const { client, thread } = await entry(t, nested, { grid: [2], block: [32], args: ["out: f32[32]", "2"] });
  const set = async (names) =>
    (await client.setFunctionBreakpointsRequest({ breakpoints: names.map((name) => ({ name })) })).body.breakpoints;
  // A breakpoint in a function that is inlined twice stops in both places.
  assert.deepEqual((await set(["square"])).map((b) => b.verified), [true]);
  for (const line of [12, 14]) {
    await stop(client, "continue", { threadId: thread });
    const { stackFrames } = (await client.stackTraceRequest({ threadId: thread })).body;
    assert.deepEqual(stackFrames.slice(0, 2).map((f) => [f.name, f.line]), [["square (inlined)", 7], ["mix", line]]);
  }
  // Several variables in LDS.
  const { stackFrames } = (await client.stackTraceRequest({ threadId: thread })).body;
  const locals = await variables(client, await scope(client, stackFrames[2].id, "Locals"));
  assert.equal(locals.find((v) => v.name === "small").value, "{1, 2, 6, 24}");
  // All instructions of a name.
  assert.deepEqual((await set(["s_barrier", "v_nothing"])).map((b) => b.verified), [true, false]);
  const hit = await stop(client, "continue", { threadId: thread });
  assert.equal((await top(client, hit.threadId)).line, 28);
});

// The tasks of docs/debugger.md, *A session of twelve tasks*.
test("the twelve tasks", async (t) => {
  const { client, thread } = await entry(t, "examples/debugger/smooth.co", smooth);
  const command = async (text) => (await client.evaluateRequest({ expression: text, context: "repl" })).body.result;
  const move = async (text) => {
    const stopped = client.waitForEvent("stopped");
    const output = await command(text);
    const { threadId } = (await stopped).body;
    return { output, threadId, line: (await top(client, threadId)).line };
  };
  // 1. Who wrote the wrong value?
  await stop(client, "continue", { threadId: thread });
  assert.match(await value(client, "out_y[0]"), /^0\.33333/);
  assert.equal((await move("last-write out_y[0]")).line, 41);
  assert.match(await command("why out_y[0] 3"), /smooth\.cl:15: v_ldexp_f32/);
  await move("restart");
  // 2. A breakpoint on a condition in any lane.
  await client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "smooth", condition: "any(i == 63)" }] });
  const hit = await stop(client, "continue", { threadId: thread });
  // 3. The calls, 4. and variables by name.
  const { stackFrames } = (await client.stackTraceRequest({ threadId: hit.threadId })).body;
  assert.deepEqual(stackFrames.map((f) => [f.name, f.line]), [["smooth", 20], ["blur", 39]]);
  assert.match(await value(client, "i", stackFrames[0].id), /^32/);
  const locals = await variables(client, await scope(client, stackFrames[0].id, "Locals"));
  assert.deepEqual(locals.map((v) => v.name).sort(), ["i", "k", "mean", "radius", "tile"]);
  // 5. Over a line, and out of the call.
  await stop(client, "next", { threadId: hit.threadId });
  assert.equal((await top(client, hit.threadId)).line, 22);
  await stop(client, "stepOut", { threadId: hit.threadId });
  assert.equal((await top(client, hit.threadId)).line, 40);
  // 6. Until a barrier.
  await client.setFunctionBreakpointsRequest({ breakpoints: [] });
  await move("restart");
  assert.equal((await move("until barrier")).line, 37);
  // 7. LDS: the store of the other wave.
  const frame = await top(client, thread);
  const info = await client.send("dataBreakpointInfo", { name: "tile[63]", frameId: frame.id });
  await client.send("setDataBreakpoints", { breakpoints: [{ dataId: info.body.dataId }] });
  const stored = await stop(client, "continue", { threadId: thread });
  assert.equal(stored.reason, "data breakpoint");
  await client.send("setDataBreakpoints", { breakpoints: [] });
  // 8. The waves are threads.
  const { threads } = (await client.threadsRequest()).body;
  assert.equal(threads.length, 2);
  assert.notEqual(stored.threadId, threads[0].id);
  assert.equal((await top(client, threads[0].id)).line, 38);
  await command("wave 0");
  // 9. Lanes as f16.
  const there = await move("until 41");
  assert.equal(there.line, 41);
  assert.match(await command("p v1 as f16x2 lanes 0..3"), /\(1\.0, 1\.0\)/);
  // 10. Another value, and on.
  await command("lane 0");
  await command("set mean = 0.5");
  await stop(client, "continue", { threadId: there.threadId });
  assert.match(await value(client, "out_y[0]"), /^0\.5/);
  // 11. Back to the last write.
  assert.equal((await move("last-write out_y[63]")).line, 41);
  await command("lane 31");
  assert.match(await command("p mean"), /41\.66/);
  // 12. Saved, and resumed.
  const saved = path.join(require("node:os").tmpdir(), `twelve-${process.pid}.session`);
  t.after(() => require("node:fs").rmSync(saved, { force: true }));
  assert.match(await command(`save ${saved}`), /saved/);
  await move("restart");
  assert.equal((await move(`resume ${saved}`)).line, 41);
  assert.match(await command("p mean"), /41\.66/);
});
