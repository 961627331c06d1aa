// The tab "Step": steps forward and back, waves and lanes as a grid, registers, memory, and the effect of the current instruction.

import { button, h, select } from "./dom";
import { Stopped, type Engine } from "./engine";
import { Lanes } from "./lanes";
import { MemoryPane } from "./memory";
import type { Finding, Program, State, View } from "./protocol";
import { Registers } from "./registers";
import type { Format } from "./values";

/** The interface of the page that the stepper needs. */
export interface Host {
  /** The program; a source is compiled first. */
  program(): Promise<Program>;
  limit(): number;
  /** The time limit of a request, in milliseconds. */
  timeout(): number;
  /** The place of the cursor, as the debugger names it: `12` or `0x1640`. */
  cursor(): string;
  /** Likewise. */
  breakpoints(): string[];
  moved(state: State | null): void;
  say(text: string): void;
  /** Reports whether a command is running, which Stop can end. */
  busy(on: boolean): void;
}

const FORMATS: [string, string][] = [
  ["hex", "hex"],
  ["u32", "u32"],
  ["i32", "i32"],
  ["f32", "f32"],
  ["f16", "f16 × 2"],
];

/** Commands that can be repeated to continue after an interruption. */
const RESUMABLE = /^(?:c|continue|u|until|fin|finish)\b/;

/** Hover time on a register before its writer is requested, in milliseconds. */
const REST = 200;

export class Stepper {
  readonly element: HTMLElement;
  state: State | null = null;
  private before: State | null = null;
  private view: View = {};
  private format: Format = "hex";
  private working = 0;
  private resting = 0;
  private asking = false;
  private furthest = 0;
  private stopping = false;
  private queue: Promise<unknown> = Promise.resolve();

  private bar: HTMLElement;
  private slider: HTMLInputElement;
  private where = h("p", { class: "where", "data-test": "where", "aria-live": "polite" });
  private lanes: Lanes;
  private scalars: Registers;
  private vectors: Registers;
  private origin = h("p", { class: "dim origin", "data-test": "origin", "aria-live": "polite" });
  private explanation = h("pre", { class: "explain", "data-test": "explain", tabIndex: 0 });
  private panes: MemoryPane[];
  private notice = h("div", { class: "notice", role: "alert", "data-test": "paused" });
  private log = h("pre", { class: "console-log", "aria-live": "polite", tabIndex: 0 });
  private listing = h("pre", { class: "listing" });
  private body: HTMLElement;

  constructor(
    private engine: Engine,
    private host: Host,
  ) {
    const step = (text: string, title: string, line: string, test: string) =>
      button(text, title, () => void this.run(line), { "data-test": test });
    this.slider = h("input", {
      type: "range",
      min: "0",
      value: "0",
      "aria-label": "Step of the run",
      oninput: () => void this.run(`goto ${this.slider.value}`),
    });
    this.bar = h(
      "div",
      { class: "row toolbar", role: "toolbar", "aria-label": "Stepping" },
      button("Restart", "Restart with the current kernel", () => void this.start(), {
        "data-test": "restart",
      }),
      step("|◀", "To the start of the run", "goto 0", "first"),
      step("◀ Back", "Undo one instruction (Shift+F10)", "back", "back"),
      step("Step ▶", "One instruction of this wave (F10)", "step", "step"),
      step("All ▶", "One instruction of every wave", "stepall", "stepall"),
      step("Next", "To the following instruction: out of loops, over calls", "next", "next"),
      button("To line", "Run to the line of the cursor (F7)", () => void this.toLine(), { "data-test": "to-line" }),
      step("◀◀", "Back to a breakpoint, or the start (Shift+F8)", "reverse-continue", "reverse"),
      step("▶▶", "To a breakpoint, fault or the end (F8)", "continue", "continue"),
    );
    const prompt = h("input", {
      type: "text",
      placeholder: "Command of the debugger, e.g. print v3 as f32, watch v2, why v5 3 (help lists them)",
      "aria-label": "Command of the debugger",
      onkeydown: (e: KeyboardEvent) => {
        if (e.key !== "Enter") return;
        void this.run(prompt.value, true);
        prompt.value = "";
      },
    });
    const formats = select("Format of registers", FORMATS, this.format, (value) => {
      this.format = value as Format;
      this.draw();
    });
    const look = (view: View) => void this.look(view);
    const actions = {
      cause: (name: string) => void this.run(`last-write ${name}`),
      colour: (grid: number) => look({ grid }),
      rest: (row: HTMLElement, name: string) => this.rest(row, name),
    };
    this.lanes = new Lanes(look);
    this.scalars = new Registers("Scalar registers", actions);
    this.vectors = new Registers("Vector registers", actions);
    const read = (name: string, from: number, len: number) => this.engine.request({ op: "memory", name, from, len });
    this.panes = ["Argument", "LDS", "Scratch of the lane"].map((title) => new MemoryPane(title, read, host.say));
    this.body = h(
      "div",
      { class: "step-body" },
      h("div", { class: "row" }, this.slider, formats),
      this.where,
      this.notice,
      this.listing,
      h("section", {}, h("h3", {}, "Waves and lanes"), this.lanes.element),
      h("section", {}, h("h3", {}, "This instruction"), this.explanation),
      h("section", {}, h("h3", {}, "Vector registers"), this.vectors.element, this.origin),
      h("section", {}, h("h3", {}, "Scalar registers"), this.scalars.element),
      h("section", {}, h("h3", {}, "Memory"), ...this.panes.map((pane) => pane.element)),
      h("section", {}, h("h3", {}, "Console"), prompt, this.log),
    );
    this.element = h("div", { class: "step" }, this.bar, this.body);
    this.body.hidden = true;
    this.where.textContent = "";
  }

  /** Starts the debugger with the current kernel. */
  async start(): Promise<void> {
    const { host } = this;
    await this.after(async () => {
      this.state = this.before = null;
      this.panes.forEach((pane) => pane.forget());
      this.view.wave = this.view.lane = undefined;
      this.furthest = 0;
      this.log.textContent = "";
      const program = await host.program();
      const state = await this.engine.request({ op: "start", program, max_instructions: host.limit() }, host.timeout());
      this.show(state);
      for (const place of host.breakpoints()) await this.command(`break ${place}`, false);
      host.say("The debugger is at the start of the run.");
    });
  }

  /** Ends the session, because the kernel has changed or the engine was stopped. */
  end(): void {
    if (this.state) void this.after(async () => void (await this.engine.request({ op: "end" }).catch(() => null)));
    this.state = this.before = null;
    this.body.hidden = true;
    this.notice.replaceChildren();
    this.host.moved(null);
  }

  stop(): void {
    this.stopping = true;
  }

  /** Runs a command and shows the resulting state. Starts the debugger if necessary. */
  async run(line: string, echo = false): Promise<void> {
    if (!this.state) await this.start();
    if (this.state) await this.after(() => this.command(line, echo));
  }

  async toLine(): Promise<void> {
    await this.run(`until ${this.host.cursor()}`);
  }

  /** Restarts and goes to the position of a finding. */
  async stepTo(finding: Finding): Promise<void> {
    await this.start();
    if (!this.state) return;
    if (finding.workgroup.some((n) => n !== 0)) await this.run(`group ${finding.workgroup.join(",")}`);
    // An address is exact, also where a line has several instructions.
    await this.run(`tbreak 0x${finding.pc.toString(16)} wave ${finding.wave}`);
    await this.run("continue");
    await this.look({ wave: finding.wave, lane: finding.lane ?? undefined });
  }

  /** Sets or deletes a breakpoint of a running session. */
  async toggleBreakpoint(place: string, on: boolean): Promise<void> {
    if (!this.state) return;
    await this.after(async () => {
      if (on) return this.command(`break ${place}`, false);
      await this.command("delete", false);
      for (const other of this.host.breakpoints()) await this.command(`break ${other}`, false);
    });
  }

  /** Serialises commands: a key that is held down repeats faster than steps complete. */
  private after(task: () => Promise<void>): Promise<void> {
    const guarded = async () => {
      // Most commands take a few milliseconds, for which no progress is shown, to avoid flicker.
      const timer = window.setTimeout(() => this.host.busy(true), 150);
      this.working++;
      try {
        await task();
      } catch (e) {
        if (e instanceof Stopped) this.end();
        this.host.say(e instanceof Error ? e.message : String(e));
      }
      this.working--;
      clearTimeout(timer);
      this.host.busy(false);
    };
    const next = this.queue.then(guarded);
    this.queue = next;
    return next;
  }

  private async command(line: string, echo: boolean): Promise<void> {
    this.stopping = false;
    this.notice.replaceChildren();
    const end = performance.now() + this.host.timeout();
    for (;;) {
      const state = await this.engine.request({ op: "command", line, view: this.view }, this.host.timeout());
      this.view.wave = this.view.lane = undefined;
      if (echo || state.failed) this.write(`> ${line}\n${state.failed ?? state.text ?? ""}`);
      if (state.failed && !echo) this.host.say(state.failed);
      this.show(state);
      // A long command returns periodically, so that it can be stopped.
      if (!state.paused || !RESUMABLE.test(line)) break;
      if (this.stopping) return this.pause(line, `Paused at step ${state.time.toLocaleString("en")}.`);
      if (performance.now() > end)
        return this.pause(
          line,
          `Paused after ${this.host.timeout() / 1000} s at step ${state.time.toLocaleString("en")}.`,
        );
      this.host.say(`Running: step ${state.time.toLocaleString("en")} …`);
    }
  }

  /** Says why a command has paused, and offers to go on with it. */
  private pause(line: string, text: string): void {
    const go = button("Go on ▶▶", `Continue: ${line}`, () => void this.run(line), { "data-test": "go-on" });
    this.notice.replaceChildren(text, " ", go);
    this.host.say(text);
  }

  private write(text: string): void {
    this.log.textContent = `${this.log.textContent}${text}\n`.slice(-20000);
    this.log.scrollTop = this.log.scrollHeight;
  }

  private async look(view: View): Promise<void> {
    this.view = { ...this.view, ...view };
    if (!this.state) return;
    await this.after(async () => {
      const state = await this.engine.request({ op: "command", view: this.view });
      this.view.wave = this.view.lane = undefined;
      this.show(state, true);
    });
  }

  private show(state: State, still = false): void {
    if (!still) this.before = this.state;
    this.state = state;
    this.furthest = Math.max(this.furthest, state.time);
    this.body.hidden = false;
    this.draw();
    this.host.moved(state);
  }

  private draw(): void {
    const { state } = this;
    if (!state) return;
    this.slider.max = String(this.furthest);
    this.slider.value = String(state.time);
    const wave = state.waves[state.wave];
    const place = state.fault
      ? `${state.fault.kind}: ${state.fault.message}`
      : state.finished
        ? "The run has ended."
        : wave.ended
          ? "This wave has ended."
          : `${wave.line ? `line ${wave.line}` : `pc 0x${wave.pc.toString(16)}`}: ${wave.text ?? ""}`;
    this.where.replaceChildren(
      h("b", {}, `Step ${state.time}`),
      ` workgroup (${state.workgroup.join(",")}) ${state.index + 1} of ${state.total}, wave ${state.wave}, lane ${state.lane}. `,
      h("span", { class: state.fault ? "fault-text" : "" }, place),
    );
    this.listing.hidden = state.listing === null;
    this.listing.textContent = state.listing ?? "";
    this.explanation.textContent = state.explain;
    this.lanes.draw(state, this.format);
    // Registers are marked as changed only after a step in the shown wave.
    const { before } = this;
    const same = before && before.wave === state.wave && before.workgroup.join() === state.workgroup.join();
    this.vectors.drawVectors(state, same ? before : null, this.format);
    this.scalars.drawScalars(state, same ? before : null, this.format);
    if (this.originTime !== state.time) {
      this.originTime = state.time;
      this.origin.textContent = "";
    }
    const [argument, lds, scratch] = this.panes;
    argument.draw(state, state.buffers);
    lds.draw(state, state.launch.lds ? ["lds"] : []);
    scratch.draw(state, state.scratch ? ["scratch"] : []);
  }

  private originTime = -1;

  /** Requests the writer of a register that is hovered or focused; one request at a time. */
  private rest(row: HTMLElement, name: string): void {
    clearTimeout(this.resting);
    const { state } = this;
    if (!state || row.dataset.asked === String(state.time)) return;
    this.resting = window.setTimeout(() => {
      if (this.asking || this.working) return this.rest(row, name);
      if (this.state === state) void this.lastWrite(row, name, state);
    }, REST);
  }

  private async lastWrite(row: HTMLElement, name: string, state: State): Promise<void> {
    this.asking = true;
    try {
      const { wave, lane } = state;
      const found = await this.engine.request({ op: "last-write", wave, lane, register: name });
      if (this.state?.time !== state.time) return;
      const text = !found
        ? "not written since the wave's start"
        : "unknown" in found
          ? "last written long ago: ↶ searches for it without a limit"
          : `last written at step ${found.time}${found.line ? `, line ${found.line}` : ""}: ${found.text}`;
      row.dataset.asked = String(state.time);
      row.dataset.origin = row.title = text;
      this.origin.textContent = `${name}: ${text}`;
    } catch (e) {
      this.origin.textContent = `${name}: ${e instanceof Error ? e.message : String(e)}`;
    } finally {
      this.asking = false;
    }
  }
}
