// The page: one program, its editor, and tabs for the operations on it.

import { Compartment, Transaction } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { Isa, assist, mnemonic } from "./assist";
import { Changes } from "./changes";
import { showStatistics } from "./charts";
import { showCost } from "./cost";
import { Objects } from "./disassemble";
import { Tabs, button, debounce, h, options, select } from "./dom";
import { basics, createEditor, goToLine, margin, noMarks, setText, showMarks, showMessages } from "./editor";
import { HttpEngine, Stopped, WasmEngine, type Engine } from "./engine";
import { EXAMPLES, type Example } from "./examples";
import { showFindings } from "./findings";
import { galleryDialog } from "./gallery";
import { helpDialog } from "./help";
import { kernelLanguage, sourceLanguage } from "./language";
import { links, selectLink, showLinks } from "./links";
import { Launch } from "./launch";
import { Listing } from "./listing";
import { keep } from "./offline";
import { showRun } from "./output";
import type { Architecture, Program, State } from "./protocol";
import { BadLink, decode, encode, shorten, type Shared } from "./share";
import { LANGUAGES, Sources, type Language } from "./source";
import { Stepper } from "./stepper";

/** The instruction limit of a run; in practice the time limit ends a run first. */
const MAX_INSTRUCTIONS = 1e11;

const engineMark = document.querySelector<HTMLMetaElement>('meta[name="wavesim-engine"]');
const native = engineMark?.content === "native";
/** Whether the page is in a frame of another page: it then has fewer parts, and stores nothing. */
const embedded = new URLSearchParams(location.search).has("embed");
document.body.classList.toggle("embed", embedded);
const newEngine = (): Engine => (native ? new HttpEngine() : new WasmEngine());

// Two engines, so that the editor is served while a kernel runs.
const language = newEngine();
const engine = newEngine();
const isa = new Isa(language, "rdna3");

const status = document.getElementById("status") as HTMLElement;
const main = document.getElementById("main") as HTMLElement;
const bar = document.getElementById("bar") as HTMLElement;

const say = (text: string): void => {
  status.textContent = text;
};

// The state of the program in addition to its text.
let architectures: Architecture[] = [];
let arch = "";
let wave = "";
let seconds = 20;
let running = false;
let assembly = false;
const breakpoints = new Set<number>();
/** Breakpoints in the disassembly, by address. */
const addresses = new Set<number>();
const marks = noMarks();

const launch = new Launch(() => markEdited());

const holder = h("div", { class: "editor" });
const objectView = h("div", { class: "object-view", hidden: true });
const panels = {
  output: h("div", { class: "panel" }, h("p", { class: "dim" }, "Run the kernel to see its outputs (Ctrl+Enter).")),
  check: h(
    "div",
    { class: "panel" },
    h(
      "p",
      { class: "dim" },
      "Check runs the kernel and reports races, missing waits, uninitialised values and accesses out of bounds (Ctrl+Shift+Enter).",
    ),
  ),
  statistics: h(
    "div",
    { class: "panel" },
    h(
      "p",
      { class: "dim" },
      "Counts of instructions, lane utilisation, coalescing, bank conflicts: run the kernel while this tab is shown.",
    ),
  ),
  cost: h(
    "div",
    { class: "panel" },
    h(
      "p",
      { class: "dim" },
      "How long a GPU would take, and where the time goes, as a model predicts it: run the kernel while this tab is shown.",
    ),
  ),
};

/** Whether the user has edited the program. Only edited programs are stored, not those of links and examples. */
let edited = false;
/** Whether the source may be compiled without a request: another person's source can include files of this machine. */
let trusted = false;
const markEdited = (): void => {
  edited = trusted = true;
  stepper.end();
  save();
};

/** Whether the disassembly of a dropped object is shown instead of the text. */
const dropped = (): boolean => objects.loaded !== null && !objects.loaded.compiled;

/** The program in the form that the engine accepts. A source is compiled first, by the engine that will run it. */
async function program(): Promise<Program> {
  if (sources.language && !dropped()) {
    const { object, log } = await sources.compile(engine);
    if (!object) throw new Error(log || "the source was not compiled");
  }
  const base: Program = {
    name: assembly ? "kernel.s" : "kernel.rdna",
    text: editor.state.doc.toString(),
    semantics: changes.text(),
    args: [],
  };
  if (arch) base.arch = arch;
  if (wave) base.wave = Number(wave);
  if (objects.loaded) {
    const { name, base64, compiled } = objects.loaded;
    Object.assign(base, { name, object: base64, text: "", ...(compiled ? { source: name } : {}) });
  }
  if (assembly || objects.loaded) {
    Object.assign(base, launch.request());
  }
  return base;
}

/** Shows all marks in the text and in the disassembly. */
function refresh(): void {
  const sites = [...breakpoints].map((line) => ({ line, address: null }));
  const own = [...addresses].map((address) => ({ line: null, address }));
  const all = { ...marks, breakpoints: [...sites, ...own] };
  showMarks(editor, all);
  listing.mark(all);
}

const setBreakpoint = (place: string, on: boolean): void =>
  void stepper
    .toggleBreakpoint(place, on)
    .then(() => say(`Breakpoint on ${place.startsWith("0x") ? "" : "line "}${place} ${on ? "set" : "deleted"}.`));

/** Sets or deletes a member of a set. Returns whether it is set. */
function toggle<T>(set: Set<T>, member: T): boolean {
  const on = !set.delete(member);
  if (on) set.add(member);
  refresh();
  return on;
}

const toggleBreakpoint = (line: number): void => setBreakpoint(String(line), toggle(breakpoints, line));
const hex = (address: number): string => `0x${address.toString(16)}`;
const toggleAddress = (address: number): void => setBreakpoint(hex(address), toggle(addresses, address));

const cursorLine = (): number => editor.state.doc.lineAt(editor.state.selection.main.head).number;

/** Goes to a place in the text, or in the disassembly. */
function onPlace({ line, pc }: { line: number; pc: number }): void {
  if (line && !dropped()) return goToLine(editor, line);
  if (!dropped()) tabs.show("object");
  listing.goTo(pc, true);
}

/** Runs a task of the engine; only one runs at a time. */
async function task(what: string, body: () => Promise<void>): Promise<void> {
  if (running) return say("A run is in progress: stop it first.");
  running = true;
  document.body.classList.add("busy");
  stopButton.disabled = false;
  say(`${what} …`);
  try {
    await body();
  } catch (e) {
    const text = e instanceof Error ? e.message : String(e);
    if (e instanceof Stopped) stepper.end();
    say(text.split("\n")[0]);
    panels.output.replaceChildren(
      h("div", { class: "fault", role: "alert" }, h("pre", { "data-test": "error" }, text)),
    );
    tabs.show("output");
  } finally {
    running = false;
    document.body.classList.remove("busy");
    stopButton.disabled = true;
  }
}

/** Predicts the time on a device; without a name, on the first one of the architecture. */
const predict = (device?: string): Promise<void> =>
  task("Predicting", async () => {
    const result = await engine.request(
      { op: "profile", program: await program(), max_instructions: MAX_INSTRUCTIONS, ...(device && { device }) },
      seconds * 1000,
    );
    const { profile, fault } = result;
    showCost(panels.cost, result, onPlace, (name) => void predict(name));
    marks.findings = fault ? [{ line: fault.line || null, address: fault.pc, title: fault.message, other: false }] : [];
    refresh();
    say(profile ? `Predicted: ${profile.microseconds.predicted.toFixed(2)} µs.` : `${fault?.kind}: ${fault?.message}`);
  });

const run = (): Promise<void> => (tabs.current === "cost" ? predict() : runNow());

const runNow = (): Promise<void> =>
  task("Running", async () => {
    const statistics = tabs.current === "statistics";
    const result = await engine.request(
      { op: "run", program: await program(), max_instructions: MAX_INSTRUCTIONS, statistics },
      seconds * 1000,
    );
    const time = engine.lastMs / 1000;
    showRun(panels.output, result, time, onPlace);
    const { fault } = result;
    marks.findings = fault ? [{ line: fault.line || null, address: fault.pc, title: fault.message, other: false }] : [];
    const counts = (result.statistics?.lines ?? []).map(([line, count]) => ({ line, address: null, count }));
    const own = (result.statistics?.instructions ?? []).map(([address, count]) => ({ line: null, address, count }));
    marks.counts = [...counts, ...own];
    refresh();
    if (result.statistics) showStatistics(panels.statistics, result, result.statistics, onPlace);
    else if (tabs.current !== "output") tabs.show("output");
    const changed = changes.changed.size
      ? ` with ${changes.changed.size} changed instruction${changes.changed.size > 1 ? "s" : ""}`
      : "";
    say(
      result.fault
        ? `${result.fault.kind}: ${result.fault.message}`
        : `Ran${changed} in ${(1000 * time).toPrecision(3)} ms.`,
    );
  });

const check = (): Promise<void> =>
  task("Checking", async () => {
    const result = await engine.request(
      { op: "check", program: await program(), max_instructions: MAX_INSTRUCTIONS },
      seconds * 1000,
    );
    showFindings(panels.check, result, onPlace, (finding) => {
      tabs.show("step");
      void stepper.stepTo(finding);
    });
    marks.findings = result.findings.flatMap((f) => [
      { line: f.line || null, address: f.pc, title: `${f.check}: ${f.message}`, other: false },
      ...(f.other
        ? [{ line: f.other.line || null, address: f.other.pc, title: `${f.other.role}: ${f.check}`, other: true }]
        : []),
    ]);
    refresh();
    tabs.badge("check", result.findings.length ? String(result.findings.length) : "");
    tabs.show("check");
    const n = result.findings.length;
    const found = n ? `${n} ${n === 1 ? "finding" : "findings"}` : "Nothing found";
    say(result.fault ? `${found}, then ${result.fault.kind}: ${result.fault.message}` : `${found}.`);
  });

const step = (): void => {
  tabs.show("step");
  void stepper.start();
};

let stepping = false;
let stopTimer = 0;

function stop(): void {
  if (running) return engine.stop("stopped");
  if (!stepping) return;
  // Commands of the debugger return periodically, so the session survives a stop; other requests are cancelled.
  stepper.stop();
  clearTimeout(stopTimer);
  stopTimer = window.setTimeout(() => stepping && engine.stop("stopped, with the debugging session"), 1500);
}

const stepper = new Stepper(engine, {
  program,
  limit: () => MAX_INSTRUCTIONS,
  timeout: () => seconds * 1000,
  cursor: () => (dropped() ? hex(listing.cursor() ?? 0) : String(cursorLine())),
  breakpoints: () => [...(dropped() ? [] : [...breakpoints].map(String)), ...[...addresses].map(hex)],
  moved(state: State | null) {
    const sites = (state?.waves ?? []).map((w) => ({ line: w.line, address: w.ended ? null : w.address }));
    marks.here = (state && sites[state.wave]) ?? null;
    marks.waves = sites.filter((_, at) => at !== state?.wave);
    refresh();
    if (marks.here?.line && !dropped()) goToLine(editor, marks.here.line, false);
    if (marks.here?.address && objects.loaded) listing.goTo(marks.here.address, false);
    if (state)
      say(
        state.fault
          ? state.fault.message
          : state.finished
            ? `The run has ended after ${state.time} steps.`
            : state.stuck
              ? "Deadlock: no wave can run."
              : `Step ${state.time}.`,
      );
    // The tab ISA follows the cursor, if there is a text.
    if (objects.loaded && state?.instruction) void changes.show(state.instruction);
  },
  say,
  busy(on: boolean) {
    stepping = on;
    if (!on) clearTimeout(stopTimer);
    document.body.classList.toggle("busy", on || running);
    stopButton.disabled = !on && !running;
  },
});

const changes = new Changes(language, isa, () => {
  tabs.badge("isa", changes.changed.size ? String(changes.changed.size) : "");
  markEdited();
});

const listing = new Listing(toggleAddress, (line) => {
  if (dropped()) return;
  goToLine(editor, line, false);
  link(line);
});

/** Marks a line of the source and its instructions. */
function link(line: number): void {
  selectLink(editor, line);
  listing.select(line);
}

const sources = new Sources(language, {
  text: () => editor.state.doc.toString(),
  arch: () => arch,
  wave: () => wave,
  changed() {
    markEdited();
    diagnose();
  },
  compiled({ object, name, disassembly, diagnostics }) {
    showMessages(editor, diagnostics);
    problems.textContent = object ? `compiled for ${disassembly?.arch}` : "errors";
    problems.classList.toggle("bad", !object);
    if (dropped()) return;
    stepper.end();
    if (!object || !disassembly) return objects.close();
    objects.present({ name, base64: object, compiled: true }, disassembly);
    const lines = new Set(disassembly.rows.map((row) => row[1]));
    const all = Array.from({ length: editor.state.doc.lines }, (_, at) => (lines.has(at + 1) ? at + 1 : null));
    showLinks(editor, all);
    refresh();
    tabs.badge("object", "");
  },
});

const objects = new Objects(
  language,
  () => arch,
  listing,
  sources.comparison,
  (loaded, chosen) => {
    launch.suggest(loaded, chosen);
    stepper.end();
    if (loaded.compiled) return;
    // The disassembly is shown instead of the text, which has nothing to do with it.
    sources.forget();
    objectView.replaceChildren(listing.element);
    front();
    say(`${loaded.name} is loaded: Run, Check and Step use it. Close it to go back to the text.`);
  },
  () => tabs.show("object"),
);
objects.onclose = () => {
  closeObject();
  stepper.end();
  say("Back to the text.");
  diagnose();
};

/** Forgets the object. */
function closeObject(): void {
  objects.close();
  launch.forget();
  addresses.clear();
  front();
}

/** Shows the text, or the disassembly of a dropped object. */
function front(): void {
  const object = dropped();
  holder.hidden = sources.bar.hidden = object;
  sources.bar.hidden ||= !sources.language;
  objectView.hidden = !object;
  heading.textContent = object ? `Disassembly of ${objects.loaded?.name}` : "Program";
  launch.element.hidden = !object && !assembly && !sources.language;
}

const tabs = new Tabs("Results and tools");
tabs.add("output", "Output", panels.output);
tabs.add("step", "Step", stepper.element);
tabs.add("check", "Check", panels.check);
tabs.add("isa", "ISA", changes.element);
tabs.add("object", "Object", objects.element);
tabs.add("statistics", "Statistics", panels.statistics);
tabs.add("cost", "Cost", panels.cost);

const diagnose = debounce(200, () => void diagnoseNow());
// A compilation takes longer than a look at assembly.
const diagnoseSource = debounce(700, () => void diagnoseNow());

async function diagnoseNow(): Promise<void> {
  const text = editor.state.doc.toString();
  try {
    if (sources.language) return await compileNow();
    const base: Program = { name: "kernel.rdna", text, semantics: "", args: [] };
    if (arch) base.arch = arch;
    if (wave) base.wave = Number(wave);
    const found = await language.request({ op: "diagnose", program: base }, 10000);
    if (editor.state.doc.toString() !== text || sources.language) return;
    assembly = found.kind === "assembly";
    front();
    showMessages(editor, found.diagnostics);
    const errors = found.diagnostics.length;
    problems.textContent = errors
      ? `${errors} ${errors === 1 ? "error" : "errors"}`
      : found.arch
        ? `${found.arch}, wave${found.wave}`
        : "";
    problems.classList.toggle("bad", errors > 0);
    const wanted = arch || found.arch;
    if (wanted && wanted !== isa.arch) await loadIsa(wanted);
  } catch (e) {
    say(e instanceof Error ? e.message : String(e));
  }
}

/** Compiles the source, unless it is another person's, which needs a key or a button. */
async function compileNow(): Promise<void> {
  front();
  await sources.list();
  const wanted = arch || architectures[0]?.name;
  if (wanted && wanted !== isa.arch) await loadIsa(wanted);
  if (!sources.usable || !trusted) {
    problems.textContent = sources.usable ? "not compiled yet" : "no compiler";
    return;
  }
  await sources.compile(language);
}

async function loadIsa(name: string): Promise<void> {
  await isa.load(name);
  changes.archChanged();
  names.replaceChildren(...isa.names().map((i) => h("option", { value: i.name })));
  const here = mnemonic(editor.state.doc.lineAt(editor.state.selection.main.head).text);
  if (!changes.changed.size) void changes.show(here ?? "v_add_f32");
}

const names = h("datalist", { id: "instruction-names" });
const heading = h("h2", {}, "Program");
const problems = h("span", { class: "problems", "data-test": "problems" });

const underCursor = debounce(150, () => {
  if (sources.language) return link(cursorLine());
  const name = mnemonic(editor.state.doc.lineAt(editor.state.selection.main.head).text);
  if (name) void changes.show(name);
});

const save = debounce(500, () => {
  if (!edited || embedded) return;
  try {
    localStorage.setItem("program", JSON.stringify(shared()));
  } catch {
    // Private windows have no storage.
  }
});

const languagePart = new Compartment();
const languageExtensions = () =>
  sources.language ? [sourceLanguage()] : [kernelLanguage((word) => isa.isInstruction(word)), assist(isa)];
const editor: EditorView = createEditor(holder, "", [
  margin(toggleBreakpoint),
  ...basics("Program"),
  languagePart.of(languageExtensions()),
  links(false),
  EditorView.updateListener.of((update) => {
    if (update.selectionSet || update.docChanged) underCursor();
    if (!update.docChanged) return;
    if (stepper.state) stepper.end();
    marks.findings = [];
    marks.counts = [];
    tabs.badge("check", "");
    queueMicrotask(refresh);
    (sources.language ? diagnoseSource : diagnose)();
    if (update.transactions.some((tr) => tr.annotation(Transaction.userEvent) !== undefined)) markEdited();
  }),
]);

function shared(): Shared {
  return {
    text: editor.state.doc.toString(),
    ...sources.settings,
    arch,
    wave,
    changes: Object.fromEntries(changes.changed),
    ...launch.values,
  };
}

/** Opens a program. `saved`: the program is the user's own. `known`: it is one of the page's examples. */
async function load(s: Partial<Shared>, saved = false, known = false): Promise<void> {
  edited = saved;
  trusted = saved || known;
  closeObject();
  stepper.end();
  breakpoints.clear();
  arch = archPick.value = architectures.some(({ name }) => name === s.arch) ? (s.arch as string) : "";
  wave = wavePick.value = ["32", "64"].includes(s.wave ?? "") ? (s.wave as string) : "";
  launch.values = s;
  changes.set(s.changes ?? {});
  const settings = sources.set(s.language ?? "", s.compiler ?? "", s.options ?? "");
  languagePick.value = sources.language;
  editor.dispatch({ effects: languagePart.reconfigure(languageExtensions()) });
  assembly = false;
  front();
  tabs.badge("isa", changes.changed.size ? String(changes.changed.size) : "");
  setText(editor, s.text ?? "");
  editor.dispatch({ selection: { anchor: 0 }, scrollIntoView: true });
  await settings;
}

const example = (e: Example): void => {
  void load(e, false, true);
  gallery.close();
  history.replaceState(null, "", `${location.pathname}${location.search}#e=${e.id}`);
  say(`${e.title}: ${e.about}`);
  tabs.show(e.changes ? "isa" : e.language ? "object" : "output");
};

const gallery = galleryDialog(example);
const help = helpDialog();

async function share(): Promise<void> {
  let fragment = await encode(shared());
  let what = "It holds the whole program";
  try {
    const short = engineMark && "links" in engineMark.dataset ? await shorten(fragment) : null;
    if (short) [fragment, what] = [short, "This server keeps the program"];
  } catch {
    // The long link needs no server.
  }
  history.replaceState(null, "", fragment);
  try {
    await navigator.clipboard.writeText(location.href);
    say(`The link is copied: ${location.href.length} characters. ${what}.`);
  } catch {
    say(`The address of this page is the link now. ${what}.`);
  }
  if (dropped()) say("The address holds the text of the editor, not the code object.");
}

/** Opens the program of a frame in a page of its own. */
async function whole(): Promise<void> {
  window.open(location.pathname + (await encode(shared())), "_blank", "noopener");
}

const themes: [string, string][] = [
  ["", "Theme: auto"],
  ["light", "Light"],
  ["dark", "Dark"],
];
const languagePick = select("Language", LANGUAGES, "", (value) => {
  // The sample of a language replaces a program that the user has not touched.
  const sample = EXAMPLES.find((e) => e.language === value);
  if (!edited && sample) return example(sample);
  const { compiler, options: flags } = sources.settings;
  void sources.set(value as Language, compiler, flags).then(() => diagnose());
  closeObject();
  showMessages(editor, []);
  editor.dispatch({ effects: languagePart.reconfigure(languageExtensions()) });
  markEdited();
});
const archPick = select("Architecture", [["", "Set by the kernel"]], "", (value) => {
  arch = value;
  stepper.end();
  void objects.archChanged();
  diagnose();
  save();
});
const wavePick = select(
  "Wave size",
  [
    ["", "wave: auto"],
    ["32", "wave32"],
    ["64", "wave64"],
  ],
  "",
  (value) => {
    wave = value;
    stepper.end();
    diagnose();
    save();
  },
);
const limitPick = select(
  "Time limit",
  [
    ["5", "5 s at most"],
    ["20", "20 s at most"],
    ["120", "2 min at most"],
  ],
  String(seconds),
  (value) => {
    seconds = Number(value);
  },
);
const stopButton = button("Stop", "Stop the run (Esc)", stop, { disabled: true, class: "stop", "data-test": "stop" });
let theme = "";
try {
  theme = localStorage.getItem("theme") ?? "";
} catch {
  // Private windows have no storage.
}
const themePick = select("Theme", themes, theme, (value) => {
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  try {
    localStorage.setItem("theme", value);
  } catch {
    // As above.
  }
});

bar.append(
  button("Examples", "Open the gallery", () => gallery.showModal(), { "data-test": "examples", class: "whole" }),
  button("▶ Run", "Run the kernel (Ctrl+Enter)", () => void run(), { class: "primary", "data-test": "run" }),
  button("Check", "Find races, missing waits and other errors (Ctrl+Shift+Enter)", () => void check(), {
    "data-test": "check",
  }),
  button("Step", "Start the debugger (F6)", step, { "data-test": "start" }),
  stopButton,
  button("Share", "Copy a link to this program", () => void share(), { "data-test": "share", class: "whole" }),
  button("Help", "Keys, and the parts of this page (F1)", () => help.showModal(), {
    "data-test": "help",
    class: "whole",
  }),
  button("Open in the playground ↗", "Open this program in a page of its own", () => void whole(), {
    class: "frame",
    "data-test": "whole",
  }),
  h("span", { class: "spring" }),
  ...[archPick, wavePick, limitPick, themePick].map((pick) => (pick.classList.add("whole"), pick)),
);
main.replaceChildren(
  h(
    "section",
    { class: "left", "aria-label": "Kernel" },
    h("div", { class: "editor-bar" }, heading, languagePick, h("span", { class: "spring" }), problems),
    sources.bar,
    holder,
    objectView,
    launch.element,
  ),
  h("section", { class: "right", "aria-label": "Results and tools" }, tabs.bar, tabs.body),
  gallery,
  help,
  names,
);
launch.element.hidden = true;

// Before the editors, which bind some of these keys themselves.
const onKey = (e: KeyboardEvent): void => {
  const keys: Record<string, () => unknown> = {
    F1: () => help.showModal(),
    F6: step,
    F7: () => stepper.toLine(),
    F8: () => stepper.run("continue"),
    "Shift+F8": () => stepper.run("reverse-continue"),
    F9: () => {
      const address = dropped() ? listing.cursor() : null;
      if (address !== null) toggleAddress(address);
      else if (!dropped()) toggleBreakpoint(cursorLine());
    },
    F10: () => stepper.run("step"),
    "Shift+F10": () => stepper.run("back"),
    "Ctrl+Enter": run,
    "Ctrl+Shift+Enter": check,
  };
  const name = `${e.ctrlKey || e.metaKey ? "Ctrl+" : ""}${e.shiftKey ? "Shift+" : ""}${e.key}`;
  if (e.key === "Escape" && (running || stepping)) stop();
  const action = keys[name];
  if (!action || gallery.open || help.open) return;
  e.preventDefault();
  e.stopPropagation();
  if (/F(7|8|10)$/.test(name)) tabs.show("step");
  void action();
};
document.addEventListener("keydown", onKey, { capture: true });

const FROM_LINK = "This program came with the link. It has not been run.";

/** The example that a short link names: `#e=first`. */
const exampleOf = (hash: string): Example | undefined => EXAMPLES.find((e) => hash === `#e=${e.id}`);

async function begin(): Promise<void> {
  let first: Partial<Shared> | null = null;
  let message = "";
  let saved = false;
  let named: Example | undefined;
  try {
    named = exampleOf(location.hash);
    first = named ?? (await decode(location.hash));
    if (first) message = named ? `${named.title}: ${named.about}` : FROM_LINK;
    if (!first && native) {
      const local = await fetch("program").then((r) => (r.ok ? r.json() : null));
      if (local) {
        const language = /\.(cl|hip)$/.exec(local.name)?.[1];
        first = { text: local.text, language: language === "cl" ? "opencl" : (language ?? "") };
        saved = true;
      }
    }
    if (!first && !embedded) {
      first = JSON.parse(localStorage.getItem("program") ?? "null");
      saved = first?.text !== undefined;
    }
  } catch (e) {
    message = e instanceof BadLink ? `The link cannot be opened: ${e.message}.` : "";
  }
  // Before the program, which may name one.
  architectures = await language.request({ op: "architectures" });
  options(archPick, [["", "Set by the kernel"], ...architectures.map((a): [string, string] => [a.name, a.title])]);
  named ??= first?.text === undefined ? EXAMPLES[0] : undefined;
  await load(named ?? first ?? {}, saved && !named, named !== undefined);
  if (location.hash === "#help") help.showModal();
  document.body.classList.add("editable");
  await loadIsa(isa.arch);
  await diagnoseNow();
  document.body.classList.add("ready");
  // After the first run, not to delay it; private windows have no storage for it.
  if (!native && "serviceWorker" in navigator && import.meta.env.PROD)
    window.setTimeout(() => void keep().catch(() => {}), 2000);
  say(message || `Ready${native ? ": the engine is native" : ""}. Ctrl+Enter runs, F6 starts the debugger, F10 steps.`);
}

window.addEventListener("hashchange", () => {
  const named = exampleOf(location.hash);
  if (named) return example(named);
  decode(location.hash)
    .then((s) => {
      if (!s) return;
      void load(s);
      tabs.show("output");
      say(FROM_LINK);
    })
    .catch((e: Error) => say(`The link cannot be opened: ${e.message}.`));
});

begin().catch((e: unknown) => say(`The engine cannot be started: ${e instanceof Error ? e.message : String(e)}`));
