// The tab "Step": forward and back, waves and lanes as a grid, registers, memory, and what the current instruction does.

import { button, h, select } from "./dom";
import { Stopped, type Engine } from "./engine";
import { showOutput } from "./output";
import type { Output, Program, State, View } from "./protocol";
import { bytes, colour, format, numbers, numeric, range, register, type Format } from "./values";

/** What the stepper needs of the page. */
export interface Host {
  program(): Program;
  limit(): number;
  /** Milliseconds after which a request is stopped. */
  timeout(): number;
  cursorLine(): number;
  breakpoints(): number[];
  moved(state: State | null): void;
  say(text: string): void;
  /** Whether a command runs, which Stop can end. */
  busy(on: boolean): void;
}

const FORMATS: [string, string][] = [
  ["hex", "hex"],
  ["u32", "u32"],
  ["i32", "i32"],
  ["f32", "f32"],
  ["f16", "f16 × 2"],
];

/** Commands that a long run does not change: sent again, they go on. */
const RESUMABLE = /^(?:c|continue|u|until|fin|finish)\b/;

export class Stepper {
  readonly element: HTMLElement;
  state: State | null = null;
  private before: State | null = null;
  private view: View = {};
  private format: Format = "hex";
  private memory: { name: string; shown: Output; before: Output | null } | null = null;
  private furthest = 0;
  private stopping = false;
  private queue: Promise<unknown> = Promise.resolve();

  private bar: HTMLElement;
  private slider: HTMLInputElement;
  private where = h("p", { class: "where", "data-test": "where", "aria-live": "polite" });
  private lanes = h("div", { class: "lanes" });
  private scalars = h("div", { class: "registers" });
  private vectors = h("div", { class: "registers" });
  private explanation = h("pre", { class: "explain", "data-test": "explain", tabIndex: 0 });
  private panes = h("div", {});
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
      button("Restart", "Start again with the kernel as it is now", () => void this.start(), {
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
      placeholder: "Command of the debugger, as: print v3 as f32, watch v2, why v5 3 (help lists them)",
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
    this.body = h(
      "div",
      { class: "step-body" },
      h("div", { class: "row" }, this.slider, formats),
      this.where,
      this.listing,
      h("section", {}, h("h3", {}, "Waves and lanes"), this.lanes),
      h("section", {}, h("h3", {}, "This instruction"), this.explanation),
      h("section", {}, h("h3", {}, "Vector registers"), this.vectors),
      h("section", {}, h("h3", {}, "Scalar registers"), this.scalars),
      h("section", {}, h("h3", {}, "Memory"), this.panes),
      h("section", {}, h("h3", {}, "Console"), prompt, this.log),
    );
    this.element = h("div", { class: "step" }, this.bar, this.body);
    this.body.hidden = true;
    this.where.textContent = "";
  }

  /** Starts the debugger with the kernel as it is now. */
  async start(): Promise<void> {
    const { host } = this;
    await this.after(async () => {
      this.state = this.before = null;
      this.memory = null;
      this.furthest = 0;
      this.log.textContent = "";
      const state = await this.engine.request(
        { op: "start", program: host.program(), max_instructions: host.limit() },
        host.timeout(),
      );
      this.show(state);
      for (const line of host.breakpoints()) await this.command(`break ${line}`, false);
      host.say("The debugger is at the start of the run.");
    });
  }

  /** Ends it: the kernel has changed, or the engine was stopped. */
  end(): void {
    this.state = this.before = null;
    this.body.hidden = true;
    this.host.moved(null);
  }

  stop(): void {
    this.stopping = true;
  }

  /** Runs a command, and shows where it led. The debugger is started if need be. */
  async run(line: string, echo = false): Promise<void> {
    if (!this.state) await this.start();
    if (this.state) await this.after(() => this.command(line, echo));
  }

  async toLine(): Promise<void> {
    await this.run(`until ${this.host.cursorLine()}`);
  }

  /** Sets or deletes a breakpoint of a run that has begun. */
  async toggleBreakpoint(line: number, on: boolean): Promise<void> {
    if (!this.state) return;
    await this.after(async () => {
      if (on) return this.command(`break ${line}`, false);
      await this.command("delete", false);
      for (const other of this.host.breakpoints()) await this.command(`break ${other}`, false);
    });
  }

  /** One after the other: a key that is held down asks faster than a step takes. */
  private after(task: () => Promise<void>): Promise<void> {
    const guarded = async () => {
      // Most commands take a few milliseconds: no flicker for those.
      const timer = window.setTimeout(() => this.host.busy(true), 150);
      try {
        await task();
      } catch (e) {
        if (e instanceof Stopped) this.end();
        this.host.say(e instanceof Error ? e.message : String(e));
      }
      clearTimeout(timer);
      this.host.busy(false);
    };
    const next = this.queue.then(guarded);
    this.queue = next;
    return next;
  }

  private async command(line: string, echo: boolean): Promise<void> {
    this.stopping = false;
    for (;;) {
      const state = await this.engine.request({ op: "command", line, view: this.view }, this.host.timeout());
      this.view.wave = this.view.lane = undefined;
      if (echo || state.failed) this.write(`> ${line}\n${state.failed ?? state.text ?? ""}`);
      if (state.failed && !echo) this.host.say(state.failed);
      this.show(state);
      // A long command comes back now and then, to be stopped between.
      if (!state.paused || this.stopping || !RESUMABLE.test(line)) break;
      this.host.say(`Running: step ${state.time.toLocaleString("en")} …`);
    }
  }

  private write(text: string): void {
    this.log.textContent = `${this.log.textContent}${text}\n`.slice(-20000);
    this.log.scrollTop = this.log.scrollHeight;
  }

  private async look(view: View): Promise<void> {
    this.view = { ...this.view, ...view };
    if (this.state)
      await this.after(async () => this.show(await this.engine.request({ op: "command", view: this.view }), true));
  }

  private show(state: State, still = false): void {
    if (!still) this.before = this.state;
    this.state = state;
    this.furthest = Math.max(this.furthest, state.time);
    this.body.hidden = false;
    this.draw();
    this.host.moved(state);
    if (this.memory) void this.readMemory(this.memory.name);
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
    this.drawLanes(state);
    this.drawVectors(state);
    this.drawScalars(state);
    this.drawMemory(state);
  }

  private drawLanes(state: State): void {
    const register = this.view.grid;
    const choices: [string, string][] = [
      ["", "EXEC"],
      ...state.vgprs.map((v): [string, string] => [String(v.number), v.name]),
    ];
    const pick = select("Colour lanes by", choices, register === undefined ? "" : String(register), (value) => {
      void this.look({ grid: value === "" ? undefined : Number(value) });
    });
    const all = state.waves.flatMap((w) => (w.grid ?? []).map((v) => numeric(v, this.format)));
    const [low, high] = range(all);
    const name = register === undefined ? "EXEC" : `v${register}`;
    const rows = state.waves.map((w, at) => {
      const exec = BigInt(`0x${w.exec}`);
      const cells = Array.from({ length: state.launch.wave }, (_, lane) => {
        const active = !w.ended && ((exec >> BigInt(lane)) & 1n) === 1n;
        const bits = w.grid?.[lane];
        const value = bits === undefined ? 0 : numeric(bits, this.format);
        const t = high > low ? (value - low) / (high - low) : 0.5;
        const label = `wave ${at} lane ${lane}: ${active ? "active" : "inactive"}${bits === undefined ? "" : `, ${name} = ${this.text(bits)}`}`;
        const here = at === state.wave && lane === state.lane;
        return h("button", {
          type: "button",
          class: `lane ${active ? "on" : "off"} ${here ? "here" : ""}`,
          style: bits === undefined ? "" : `--c: rgb(${colour(t).join(",")})`,
          title: label,
          "aria-label": label,
          "aria-pressed": String(here),
          tabIndex: here ? 0 : -1,
          onclick: () => void this.look({ wave: at, lane }),
        });
      });
      return h(
        "div",
        { class: "wave-row" },
        h(
          "span",
          {
            class: `wave-name ${at === state.wave ? "here" : ""}`,
            title: `${w.status}${w.line ? `, line ${w.line}` : ""}`,
          },
          `wave ${at}`,
        ),
        h("div", { class: "cells" }, ...cells),
        h("span", { class: "dim" }, w.ended ? "ended" : w.line ? `line ${w.line}` : w.status),
      );
    });
    const legend =
      register === undefined
        ? "filled: active"
        : `${name} from ${this.plain(low)} to ${this.plain(high)}; crossed: inactive`;
    const grid = h(
      "div",
      {
        class: "grid-lanes",
        role: "group",
        "aria-label": `Lanes by ${name}`,
        onkeydown: (e: KeyboardEvent) => {
          const [dw, dl] = (
            { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] } as Record<string, number[]>
          )[e.key] ?? [0, 0];
          if (!dw && !dl) return;
          e.preventDefault();
          const wave = Math.min(Math.max(state.wave + dw, 0), state.waves.length - 1);
          const lane = Math.min(Math.max(state.lane + dl, 0), state.launch.wave - 1);
          void this.look({ wave, lane }).then(() => this.lanes.querySelector<HTMLElement>(".lane.here")?.focus());
        },
      },
      ...rows,
    );
    this.lanes.replaceChildren(h("div", { class: "row" }, pick, h("span", { class: "dim" }, legend)), grid);
  }

  private plain(value: number): string {
    return this.format === "hex" ? `0x${value.toString(16)}` : format("f32", value);
  }

  private text(bits: number): string {
    return register(bits, this.format);
  }

  /** Whether the last move changed a register, in the wave that is shown. */
  private was(state: State): State | null {
    const { before } = this;
    return before && before.wave === state.wave && before.workgroup.join() === state.workgroup.join() ? before : null;
  }

  private origin(name: string): (e: Event) => void {
    return (e) => {
      const { state } = this;
      const target = e.currentTarget as HTMLElement;
      if (!state || target.dataset.asked === String(state.time)) return;
      target.dataset.asked = String(state.time);
      void this.engine
        .request({ op: "last-write", wave: state.wave, lane: state.lane, register: name })
        .then((found) => {
          target.title = found
            ? `last written at step ${found.time}${found.line ? `, line ${found.line}` : ""}: ${found.text}`
            : "not written since the wave's start";
          target.dataset.origin = target.title;
        });
    };
  }

  private cause(name: string): HTMLButtonElement {
    return button(
      "↶",
      `Go to the cause: just before ${name} was written last`,
      () => void this.run(`last-write ${name}`),
      { class: "cause", "data-cause": name },
    );
  }

  private drawVectors(state: State): void {
    const was = this.was(state);
    const rows = state.vgprs.map((v, at) => {
      const old = was?.vgprs[at]?.values;
      const changed = old !== undefined && v.values.some((x, lane) => x !== old[lane]);
      const mine = v.values[state.lane];
      const [low, high] = range(v.values.map((x) => numeric(x, this.format)));
      const strip = h("canvas", {
        class: "strip",
        width: state.launch.wave,
        height: 1,
        role: "img",
        "aria-label": `${v.name} in all lanes`,
        title: `${v.name} in all lanes: click to colour the lanes by it`,
        onclick: () => void this.look({ grid: v.number }),
      });
      const context = strip.getContext("2d");
      v.values.forEach((x, lane) => {
        if (!context) return;
        const y = numeric(x, this.format);
        context.fillStyle = `rgb(${colour(high > low ? (y - low) / (high - low) : 0.5).join(",")})`;
        context.fillRect(lane, 0, 1, 1);
      });
      return h(
        "tr",
        {
          class: changed ? "changed" : "",
          "data-register": v.name,
          onmouseenter: this.origin(v.name),
          onfocusin: this.origin(v.name),
        },
        h("th", { scope: "row" }, v.name),
        h("td", { class: old !== undefined && old[state.lane] !== mine ? "changed" : "" }, this.text(mine)),
        h("td", {}, strip),
        h("td", {}, this.cause(v.name)),
      );
    });
    this.vectors.replaceChildren(
      h("table", { "aria-label": `Vector registers in lane ${state.lane}` }, h("tbody", {}, ...rows)),
    );
  }

  private drawScalars(state: State): void {
    const was = this.was(state);
    const special: [string, string, string | undefined][] = [
      ["exec", state.scalars.exec, was?.scalars.exec],
      ["vcc", state.scalars.vcc, was?.scalars.vcc],
      ["scc", String(state.scalars.scc), (was && String(was.scalars.scc)) || undefined],
      ["m0", state.scalars.m0.toString(16), was?.scalars.m0.toString(16)],
    ];
    const rows = special.map(([name, value, old]) =>
      h(
        "tr",
        {
          class: old !== undefined && old !== value ? "changed" : "",
          "data-register": name,
          onmouseenter: this.origin(name),
          onfocusin: this.origin(name),
        },
        h("th", { scope: "row" }, name),
        h("td", {}, value),
        h("td", {}),
        h("td", {}, this.cause(name)),
      ),
    );
    state.sgprs.forEach((s, at) => {
      const old = was?.sgprs[at]?.value;
      rows.push(
        h(
          "tr",
          {
            class: old !== undefined && old !== s.value ? "changed" : "",
            "data-register": s.name,
            onmouseenter: this.origin(s.name),
            onfocusin: this.origin(s.name),
          },
          h("th", { scope: "row" }, s.name),
          h("td", {}, this.text(s.value)),
          h("td", { class: "points" }, s.points ? `→ ${s.points}` : ""),
          h("td", {}, this.cause(s.name)),
        ),
      );
    });
    this.scalars.replaceChildren(h("table", { "aria-label": "Scalar registers" }, h("tbody", {}, ...rows)));
  }

  private drawMemory(state: State): void {
    const names: [string, string][] = [["", "none"], ...state.buffers.map((b): [string, string] => [b, b])];
    if (state.launch.lds) names.push(["lds", "LDS"]);
    const pick = select("Memory to show", names, this.memory?.name ?? "", (name) => {
      this.memory = null;
      if (name) void this.readMemory(name);
      else this.draw();
    });
    if (!this.memory) {
      this.panes.replaceChildren(pick);
      return;
    }
    const { shown, before } = this.memory;
    const data = bytes(shown.data).subarray(0, 4096);
    const values = numbers(shown.dtype, data);
    const old = before && numbers(before.dtype, bytes(before.data).subarray(0, 4096));
    const body = h("tbody");
    const size = data.length / Math.max(1, values.length);
    for (let at = 0; at < values.length; at += 8) {
      const row = h("tr", {}, h("th", { scope: "row" }, `+${(at * size).toString(16)}`));
      for (let k = at; k < Math.min(at + 8, values.length); k++) {
        const changed = old && !Object.is(old[k], values[k]);
        row.append(
          h(
            "td",
            { class: changed ? "changed" : "", title: changed ? `was ${format(shown.dtype, old[k])}` : "" },
            format(shown.dtype, values[k]),
          ),
        );
      }
      body.append(row);
    }
    const whole =
      shown.name === "lds" ? null : h("details", {}, h("summary", {}, "As table, picture or plot"), showOutput(shown));
    this.panes.replaceChildren(
      pick,
      h(
        "div",
        { class: "scroll" },
        h("table", { class: "values", "aria-label": shown.name, "data-test": "memory" }, body),
      ),
      whole ?? "",
    );
  }

  private async readMemory(name: string): Promise<void> {
    try {
      const shown = await this.engine.request({ op: "memory", name });
      const before = this.memory?.name === name ? this.memory.shown : null;
      this.memory = { name, shown, before };
      if (this.state) this.drawMemory(this.state);
    } catch (e) {
      this.host.say(String(e));
    }
  }
}
