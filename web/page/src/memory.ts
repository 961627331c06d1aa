// The memory pane of the debugger: a range of an argument, of LDS, or of a lane's scratch. It is read only while it is open.

import { button, h, options, select } from "./dom";
import { showOutput } from "./output";
import type { Memory, State } from "./protocol";
import { bytes, element, format, numbers } from "./values";

/** The number of bytes that are shown. */
const PART = 4096;
const COLUMNS = 8;

export class MemoryPane {
  readonly element: HTMLDetailsElement;
  private pick: HTMLSelectElement;
  private offset: HTMLInputElement;
  private extent = h("span", { class: "dim" });
  private table = h("table", { class: "values" });
  private whole: HTMLDetailsElement;
  private wholeBody = h("div");
  private from = 0;
  private state: State | null = null;
  private shown: Memory | null = null;
  /** The previously shown contents, and the time of the shown contents. */
  private before: Memory | null = null;
  private time = -1;

  constructor(
    title: string,
    private read: (name: string, from: number, len: number) => Promise<Memory>,
    private say: (text: string) => void,
  ) {
    this.pick = select(`${title} to show`, [], "", () => {
      this.from = 0;
      this.forget();
      void this.refresh();
    });
    this.offset = h("input", {
      type: "text",
      value: "0",
      size: 8,
      "aria-label": `${title}: offset in bytes`,
      title: "Offset in bytes, e.g. 64 or 0x40",
      onchange: () => this.go(Number(this.offset.value)),
    });
    this.whole = h(
      "details",
      { ontoggle: () => void this.refresh() },
      h("summary", {}, "As table, picture or plot"),
      this.wholeBody,
    );
    this.element = h(
      "details",
      { class: "memory", "data-memory": title.split(" ")[0].toLowerCase(), ontoggle: () => void this.refresh() },
      h("summary", {}, title),
      h(
        "div",
        { class: "row" },
        this.pick,
        h("label", {}, "offset ", this.offset),
        button("▲", `${title}: the part before`, () => this.go(this.from - PART)),
        button("▼", `${title}: the part behind`, () => this.go(this.from + PART)),
        this.extent,
      ),
      h("div", { class: "scroll" }, this.table),
      this.whole,
    );
  }

  private go(from: number): void {
    const last = Math.max(0, (this.shown?.total ?? 0) - 1);
    // Rows are aligned as without an offset.
    this.from = Number.isFinite(from) ? Math.floor(Math.min(Math.max(from, 0), last) / 64) * 64 : this.from;
    this.offset.value = `0x${this.from.toString(16)}`;
    void this.refresh();
  }

  /** Called when the run restarts. */
  forget(): void {
    this.shown = this.before = null;
    this.time = -1;
  }

  /** Called after a step. `names`: the available ranges; without any, the pane is hidden. */
  draw(state: State, names: string[]): void {
    this.state = state;
    this.element.hidden = names.length === 0;
    if (!names.length) return;
    const texts: Record<string, string> = { lds: "LDS", scratch: "scratch" };
    options(
      this.pick,
      names.map((name): [string, string] => [name, texts[name] ?? name]),
    );
    this.pick.hidden = texts[names[0]] !== undefined;
    // Arrays can be shown as a picture; LDS has no shape.
    this.whole.hidden = this.pick.hidden;
    void this.refresh();
  }

  private async refresh(): Promise<void> {
    const { state } = this;
    const name = this.pick.value;
    if (!state || !name || !this.element.open || this.element.hidden) return;
    try {
      const shown = await this.read(name, this.from, PART);
      if (this.state !== state || this.pick.value !== name) return;
      // A different lane or offset at the same time is not a change.
      if (this.time !== state.time) this.before = this.shown;
      this.time = state.time;
      this.shown = shown;
      this.fill(shown);
      if (this.whole.open && !this.whole.hidden) {
        const all = await this.read(name, 0, 0);
        if (this.state === state) this.wholeBody.replaceChildren(showOutput({ ...all, bytes: all.total }));
      } else this.wholeBody.replaceChildren();
    } catch (e) {
      this.say(e instanceof Error ? e.message : String(e));
    }
  }

  private fill(shown: Memory): void {
    const data = bytes(shown.data);
    const values = numbers(shown.dtype, data);
    const size = data.length / Math.max(1, values.length);
    const { before } = this;
    const same = before && before.name === shown.name && before.from === shown.from && before.dtype === shown.dtype;
    const oldData = same ? bytes(before.data) : null;
    const old = oldData && numbers(shown.dtype, oldData);
    this.extent.textContent = `${shown.from.toLocaleString("en")} to ${(shown.from + data.length).toLocaleString("en")} of ${shown.total.toLocaleString("en")} bytes`;
    this.table.setAttribute("aria-label", shown.name);
    this.table.dataset.test = `memory-${this.element.dataset.memory}`;
    const body = h("tbody");
    for (let at = 0; at < values.length; at += COLUMNS) {
      const row = h("tr", {}, h("th", { scope: "row" }, `+${(shown.from + at * size).toString(16)}`));
      for (let k = at; k < Math.min(at + COLUMNS, values.length); k++) {
        const changed = old !== null && k < old.length && !Object.is(old[k], values[k]);
        const title = changed ? `was ${format(shown.dtype, old[k])}` : "";
        const text = element(shown.dtype, data, values, k);
        row.append(h("td", changed ? { class: "changed", title } : {}, text));
      }
      body.append(row);
    }
    this.table.replaceChildren(body);
  }
}
