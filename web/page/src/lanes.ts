// Waves and lanes as a grid, coloured by EXEC or by a VGPR. Cells are created once, and updated only where they change: this
// makes steps faster and keeps the focus.

import { h, options, select } from "./dom";
import type { State, View } from "./protocol";
import { colour, format, numeric, range, register, type Format } from "./values";

export class Lanes {
  readonly element: HTMLElement;
  private pick: HTMLSelectElement;
  private legend = h("span", { class: "dim" });
  private grid: HTMLElement;
  private rows: { name: HTMLElement; cells: HTMLButtonElement[]; at: HTMLElement }[] = [];
  private size = "";
  private register: number | undefined;
  private state: State | null = null;

  constructor(private look: (view: View) => void) {
    this.pick = select("Colour lanes by", [["", "EXEC"]], "", (value) => {
      this.register = value === "" ? undefined : Number(value);
      look({ grid: this.register });
    });
    this.grid = h("div", {
      class: "grid-lanes",
      role: "group",
      onclick: (e: Event) => {
        const cell = (e.target as HTMLElement).closest<HTMLElement>(".lane");
        if (cell) look({ wave: Number(cell.dataset.wave), lane: Number(cell.dataset.lane) });
      },
      onkeydown: (e: KeyboardEvent) => this.key(e),
    });
    this.element = h("div", { class: "lanes" }, h("div", { class: "row" }, this.pick, this.legend), this.grid);
  }

  private key(e: KeyboardEvent): void {
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
    };
    const [dw, dl] = moves[e.key] ?? [0, 0];
    const { state } = this;
    if (!state || (!dw && !dl)) return;
    e.preventDefault();
    const wave = Math.min(Math.max(state.wave + dw, 0), state.waves.length - 1);
    const lane = Math.min(Math.max(state.lane + dl, 0), state.launch.wave - 1);
    this.rows[wave].cells[lane].focus();
    this.look({ wave, lane });
  }

  private build(state: State): void {
    const size = `${state.waves.length} ${state.launch.wave}`;
    if (size === this.size) return;
    this.size = size;
    this.rows = state.waves.map((_, wave) => ({
      name: h("span", { class: "wave-name" }, `wave ${wave}`),
      cells: Array.from({ length: state.launch.wave }, (_, lane) =>
        h("button", { type: "button", class: "lane", "data-wave": wave, "data-lane": lane }),
      ),
      at: h("span", { class: "dim" }),
    }));
    this.grid.replaceChildren(
      ...this.rows.map((row) =>
        h("div", { class: "wave-row" }, row.name, h("div", { class: "cells" }, ...row.cells), row.at),
      ),
    );
  }

  draw(state: State, as: Format): void {
    this.state = state;
    this.build(state);
    options(this.pick, [["", "EXEC"], ...state.vgprs.map((v): [string, string] => [String(v.number), v.name])]);
    this.pick.value = this.register === undefined ? "" : String(this.register);
    const coloured = this.register !== undefined && this.pick.value !== "";
    const name = coloured ? `v${this.register}` : "EXEC";
    const [low, high] = range(coloured ? state.waves.flatMap((w) => (w.grid ?? []).map((v) => numeric(v, as))) : []);
    this.rows.forEach((row, wave) => {
      const w = state.waves[wave];
      const exec = BigInt(`0x${w.exec}`);
      set(row.name, "class", `wave-name ${wave === state.wave ? "here" : ""}`);
      set(row.name, "title", `${w.status}${w.line ? `, line ${w.line}` : ""}`);
      const at = w.ended ? "ended" : w.line ? `line ${w.line}` : w.status;
      if (row.at.textContent !== at) row.at.textContent = at;
      row.cells.forEach((cell, lane) => {
        const active = !w.ended && ((exec >> BigInt(lane)) & 1n) === 1n;
        const here = wave === state.wave && lane === state.lane;
        const bits = coloured ? w.grid?.[lane] : undefined;
        const label = `wave ${wave} lane ${lane}: ${active ? "active" : "inactive"}${bits === undefined ? "" : `, ${name} = ${register(bits, as)}`}`;
        set(cell, "class", `lane ${active ? "on" : "off"} ${here ? "here" : ""}`);
        const t = bits === undefined ? 0 : high > low ? (numeric(bits, as) - low) / (high - low) : 0.5;
        set(cell, "style", bits === undefined ? "" : `--c: rgb(${colour(t).join(",")})`);
        set(cell, "title", label);
        set(cell, "aria-label", label);
        set(cell, "aria-pressed", String(here));
        set(cell, "tabindex", here ? "0" : "-1");
      });
    });
    set(this.grid, "aria-label", `Lanes by ${name}`);
    const plain = (value: number) => (as === "hex" ? `0x${value.toString(16)}` : format("f32", value));
    this.legend.textContent = coloured
      ? `${name} from ${plain(low)} to ${plain(high)}; crossed: inactive`
      : "filled: active";
  }
}

function set(element: HTMLElement, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
