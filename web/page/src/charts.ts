// The tab "Statistics": charts of a run. Each bar is a row of a table, so that its number is text, too.

import { fill, h } from "./dom";
import type { RunResult, Statistics } from "./protocol";

export interface Bar {
  label: string | HTMLElement;
  value: number;
  /** The number as text. */
  text: string;
}

/** The most bars of a chart. */
const MOST = 16;
/** The most lines in a chart. */
export const MOST_LINES = 60;

export const percent = (ratio: number): string => `${(100 * ratio).toFixed(1)} %`;

/** A chart of bars with its title and an explanation; `most` is the value of the longest possible bar. */
export function bars(title: string, about: string, head: [string, string], list: Bar[], most?: number): HTMLElement {
  const longest = most ?? Math.max(1e-9, ...list.map((b) => b.value));
  const row = (b: Bar) => {
    const bar = h("div", { class: "bar" });
    bar.style.width = `${Math.max(0.4, (100 * b.value) / longest)}%`;
    return h("tr", {}, h("th", { scope: "row" }, b.label), h("td", { class: "bars" }, bar), h("td", {}, b.text));
  };
  return h(
    "section",
    { class: "chart", "data-chart": title },
    h("h3", {}, title),
    h("p", { class: "dim" }, about),
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, head[0]),
          h("th", { scope: "col", class: "bars" }, h("span", { class: "hidden-text" }, "bar")),
          h("th", { scope: "col" }, head[1]),
        ),
      ),
      h("tbody", {}, ...list.map(row)),
    ),
  );
}

const sorted = (counts: Record<string, number>): [string, number][] =>
  Object.entries(counts).sort((a, b) => b[1] - a[1]);

/** Shows the statistics of a run. `onPlace` goes to a line, or to an address of code without lines. */
export function showStatistics(
  panel: HTMLElement,
  result: RunResult,
  statistics: Statistics,
  onPlace: (place: { line: number; pc: number }) => void,
): void {
  const { json } = statistics;
  const { wave } = result.launch;
  const ratios: Bar[] = [];
  const ratio = (label: string, value: number | null, note: string) =>
    value !== null && Number.isFinite(value) && ratios.push({ label, value, text: `${percent(value)} ${note}` });
  ratio("lane utilisation", json.lane_utilisation, "of the lanes of vector instructions are active");
  ratio("coalescing", json.memory.coalescing, "of the bytes of touched 128-byte lines are requested");
  if (json.exec.writes)
    ratio(
      "divergence",
      json.exec.divergent / json.exec.writes,
      `of ${json.exec.writes.toLocaleString("en")} writes of EXEC`,
    );
  if (json.branches.conditional)
    ratio(
      "branches taken",
      json.branches.taken / json.branches.conditional,
      `of ${json.branches.conditional.toLocaleString("en")} conditional branches`,
    );
  const opcodes = sorted(json.opcodes);
  const number = (list: [string, number][]): Bar[] =>
    list.map(([label, value]) => ({ label, value, text: value.toLocaleString("en") }));
  // Lines where lanes are missing; of very long kernels, those that are executed most often.
  const byLine = statistics.lines.length > 0;
  const places = byLine ? statistics.lines : statistics.instructions;
  const all = places.filter(([, count]) => count > 0);
  const kept = new Set(
    [...all]
      .sort((a, b) => b[1] - a[1])
      .slice(0, MOST_LINES)
      .map(([place]) => place),
  );
  const lanes = all
    .filter(([place]) => kept.has(place))
    .map(([place, count, active]): Bar => {
      const name = byLine ? `line ${place}` : `0x${place.toString(16)}`;
      const target = byLine ? { line: place, pc: 0 } : { line: 0, pc: place };
      const average = active / count;
      return {
        label: h("button", { type: "button", class: "link", onclick: () => onPlace(target) }, name),
        value: average,
        text: `${average.toFixed(1)} of ${wave}, ${count.toLocaleString("en")} ×`,
      };
    });
  const shown = kept.size < all.length ? ` The ${kept.size} most executed of ${all.length} are shown.` : "";
  fill(
    panel,
    h(
      "p",
      { class: "summary" },
      `${json.instructions.toLocaleString("en")} wave-instructions of ${json.waves} waves, ${json.barriers.toLocaleString("en")} barriers, ` +
        `${json.lds.bank_conflict_cycles.toLocaleString("en")} cycles of LDS bank conflicts.`,
    ),
    bars("Efficiency", "Longer is better, except for divergence.", ["measure", "share"], ratios, 1),
    bars(
      "Divergence",
      `The average number of active lanes of a wave.${shown}`,
      [byLine ? "line" : "address", "lanes, executions"],
      lanes,
      wave,
    ),
    bars("Classes", "Executed wave-instructions by class.", ["class", "executions"], number(sorted(json.classes))),
    bars(
      "Instructions",
      opcodes.length > MOST ? `The ${MOST} most executed of ${opcodes.length}.` : "Executed wave-instructions.",
      ["instruction", "executions"],
      number(opcodes.slice(0, MOST)),
    ),
    h(
      "details",
      {},
      h("summary", {}, "As text"),
      h("pre", { "data-test": "statistics", tabIndex: 0 }, statistics.table),
    ),
  );
}
