// The tab "Check": findings, with both accesses of a race.

import { button, fill, h } from "./dom";
import type { CheckResult, Finding, Place } from "./protocol";

/** Shows the findings. `onLine` goes to a line of the kernel, `onStep` to a step in the debugger. */
export function showFindings(
  panel: HTMLElement,
  result: CheckResult,
  onLine: (line: number) => void,
  onStep: (finding: Finding) => void,
): void {
  const { findings, fault, instructions, waves } = result;
  const counts = `${instructions.toLocaleString("en")} wave-instructions of ${waves} waves`;
  const heading = findings.length
    ? `${findings.length} ${findings.length === 1 ? "finding" : "findings"} in ${counts}.`
    : fault
      ? `Nothing found before the run ended early, in ${counts}.`
      : `Nothing found in ${counts}: bounds, uninitialised values, races, waits, barriers, hazards.`;
  fill(
    panel,
    h("p", { class: "summary", "data-test": "check-summary" }, heading),
    fault && h("div", { class: "fault", role: "alert" }, h("pre", {}, fault.rendered)),
    h("ol", { class: "findings" }, ...findings.map((f) => finding(f, onLine, onStep))),
  );
}

function place(p: Place, what: string, onLine: (line: number) => void): HTMLElement {
  const lane = p.lane === null ? "" : `, lane ${p.lane}`;
  return h(
    "div",
    { class: "side" },
    h("span", { class: "side-name" }, what),
    p.line ? h("button", { type: "button", class: "link", onclick: () => onLine(p.line) }, `line ${p.line}`) : null,
    h("code", {}, p.text),
    h("span", { class: "dim" }, `workgroup (${p.workgroup.join(",")}), wave ${p.wave}${lane}`),
  );
}

function finding(f: Finding, onLine: (line: number) => void, onStep: (finding: Finding) => void): HTMLElement {
  return h(
    "li",
    { "data-check": f.check },
    h(
      "p",
      {},
      h("span", { class: "chip warn" }, f.check),
      ` ${f.message} `,
      f.line
        ? button("Step there", "Start the debugger, and go to this position", () => onStep(f), { class: "link" })
        : null,
    ),
    place(f, f.other ? "▲ one side" : "▲ at", onLine),
    f.other && place(f.other, `◆ ${f.other.role}`, onLine),
    f.hint && h("p", { class: "hint" }, f.hint),
    f.count > 1 && h("p", { class: "dim" }, `Seen ${f.count} times; the first is shown.`),
  );
}
