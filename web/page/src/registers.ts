// A table of registers. Rows are created once per program, and updated only where they change.

import { button, h } from "./dom";
import type { State } from "./protocol";
import { colour, numeric, range, register, type Format } from "./values";

export interface Actions {
  /** Goes to the last instruction that wrote a register. */
  cause(name: string): void;
  /** Colours the lanes by a VGPR. */
  colour(number: number): void;
  /** Called when a register is hovered or focused. */
  rest(row: HTMLElement, name: string): void;
}

interface Row {
  element: HTMLTableRowElement;
  value: HTMLTableCellElement;
  more: HTMLTableCellElement;
  strip?: HTMLCanvasElement;
  /** The contents of the strip. */
  drawn?: string;
}

export class Registers {
  readonly element = h("div", { class: "registers" });
  private table = h("table");
  private rows: Row[] = [];
  private names = "";

  constructor(
    private title: string,
    private actions: Actions,
  ) {
    this.element.append(this.table);
  }

  private build(names: string[], strips: number): void {
    const key = `${names.join()} ${strips}`;
    if (key === this.names) return;
    this.names = key;
    this.rows = names.map((name) => {
      const strip = strips ? h("canvas", { class: "strip", width: strips, height: 1, role: "img" }) : undefined;
      const value = h("td");
      const more = h("td", { class: strip ? "" : "points" }, strip);
      const element = h(
        "tr",
        { "data-register": name },
        h("th", { scope: "row" }, name),
        value,
        more,
        h(
          "td",
          {},
          button("↶", `Go to the cause: just before ${name} was written last`, () => this.actions.cause(name), {
            class: "cause",
            "data-cause": name,
            "aria-label": `Go to the last write of ${name}`,
          }),
        ),
      );
      element.addEventListener("mouseenter", () => this.actions.rest(element, name));
      element.addEventListener("focusin", () => this.actions.rest(element, name));
      return { element, value, more, strip };
    });
    this.table.replaceChildren(h("tbody", {}, ...this.rows.map((row) => row.element)));
  }

  private show(row: Row, text: string, changed: boolean, here: boolean, time: number): void {
    if (row.value.textContent !== text) row.value.textContent = text;
    row.element.classList.toggle("changed", changed);
    row.value.classList.toggle("changed", here);
    if (row.element.dataset.asked === String(time) || row.element.dataset.origin === undefined) return;
    // The cached writer is that of another time.
    delete row.element.dataset.asked;
    delete row.element.dataset.origin;
    row.element.title = "";
  }

  drawVectors(state: State, was: State | null, as: Format): void {
    this.build(
      state.vgprs.map((v) => v.name),
      state.launch.wave,
    );
    this.table.setAttribute("aria-label", `${this.title} in lane ${state.lane}`);
    state.vgprs.forEach((v, at) => {
      const row = this.rows[at];
      const old = was?.vgprs[at]?.values;
      const mine = v.values[state.lane];
      const changed = old !== undefined && v.values.some((x, lane) => x !== old[lane]);
      this.show(row, register(mine, as), changed, old !== undefined && old[state.lane] !== mine, state.time);
      const { strip } = row;
      const drawn = `${as} ${v.values.join()}`;
      if (!strip || row.drawn === drawn) return;
      row.drawn = drawn;
      strip.setAttribute("aria-label", `${v.name} in all lanes`);
      strip.title = `${v.name} in all lanes: click to colour the lanes by it`;
      strip.onclick = () => this.actions.colour(v.number);
      const context = strip.getContext("2d");
      if (!context) return;
      const numbers = v.values.map((x) => numeric(x, as));
      const [low, high] = range(numbers);
      const image = context.createImageData(numbers.length, 1);
      numbers.forEach((x, lane) =>
        image.data.set([...colour(high > low ? (x - low) / (high - low) : 0.5), 255], 4 * lane),
      );
      context.putImageData(image, 0, 0);
    });
  }

  drawScalars(state: State, was: State | null, as: Format): void {
    const { scalars, sgprs } = state;
    const special = (of: State["scalars"]): [string, string][] => [
      ["exec", of.exec],
      ["vcc", of.vcc],
      ["scc", String(of.scc)],
      ["m0", of.m0.toString(16)],
    ];
    const old = was && special(was.scalars);
    this.build([...special(scalars).map((s) => s[0]), ...sgprs.map((s) => s.name)], 0);
    this.table.setAttribute("aria-label", this.title);
    special(scalars).forEach(([, value], at) => {
      const changed = !!old && old[at][1] !== value;
      this.show(this.rows[at], value, changed, changed, state.time);
    });
    sgprs.forEach((s, at) => {
      const row = this.rows[at + 4];
      const before = was?.sgprs[at]?.value;
      const changed = before !== undefined && before !== s.value;
      this.show(row, register(s.value, as), changed, changed, state.time);
      const points = s.points ? `→ ${s.points}` : "";
      if (row.more.textContent !== points) row.more.textContent = points;
    });
  }
}
