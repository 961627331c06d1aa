// The tab "Check": findings, with both accesses of a race.

import { button, fill, h } from "./dom";
import type { CheckResult, Finding, Place } from "./protocol";

export type OnPlace = (place: { line: number; pc: number }) => void;

/** `line 12`, or the address of code without lines. */
export const placeName = (p: { line: number; pc: number }): string =>
  p.line ? `line ${p.line}` : `0x${p.pc.toString(16)}`;

/** Shows the findings. `onPlace` goes to a place of the kernel, `onStep` to a step in the debugger. */
export function showFindings(
  panel: HTMLElement,
  result: CheckResult,
  onPlace: OnPlace,
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
    h("ol", { class: "findings" }, ...findings.map((f) => finding(f, onPlace, onStep))),
  );
}

function place(p: Place, what: string, onPlace: OnPlace): HTMLElement {
  const lane = p.lane === null ? "" : `, lane ${p.lane}`;
  return h(
    "div",
    { class: "side" },
    h("span", { class: "side-name" }, what),
    h("button", { type: "button", class: "link", onclick: () => onPlace(p) }, placeName(p)),
    h("code", {}, p.text),
    h("span", { class: "dim" }, `workgroup (${p.workgroup.join(",")}), wave ${p.wave}${lane}`),
  );
}

function finding(f: Finding, onPlace: OnPlace, onStep: (finding: Finding) => void): HTMLElement {
  return h(
    "li",
    { "data-check": f.check },
    h(
      "p",
      {},
      h("span", { class: "chip warn" }, f.check),
      ` ${f.message} `,
      button("Step there", "Start the debugger, and go to this position", () => onStep(f), { class: "link" }),
    ),
    place(f, f.other ? "▲ one side" : "▲ at", onPlace),
    f.other && place(f.other, `◆ ${f.other.role}`, onPlace),
    f.hint && h("p", { class: "hint" }, f.hint),
    f.count > 1 && h("p", { class: "dim" }, `Seen ${f.count} times; the first is shown.`),
  );
}
