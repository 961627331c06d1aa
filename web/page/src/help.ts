// The help page: a dialog with the keys and the parts of the page.

import { h } from "./dom";

const KEYS: [string, string][] = [
  ["Ctrl+Enter", "run"],
  ["Ctrl+Shift+Enter", "check"],
  ["F6", "start the debugger"],
  ["F10, Shift+F10", "step forward, back"],
  ["F8, Shift+F8", "continue to the next, previous breakpoint"],
  ["F7", "run to the line of the cursor"],
  ["F9", "set or delete a breakpoint"],
  ["F12", "go to the label under the cursor"],
  ["Ctrl+Space", "complete"],
  ["Escape", "stop the run; in the editor, Escape then Tab moves the focus"],
  ["F1", "this help"],
];

const PARTS: [string, string][] = [
  [
    "The program",
    "A text kernel with its arguments in the header, an LLVM assembly file, or source code in OpenCL C or HIP. Source code needs a page from “wavesim serve”, which compiles it with the clang of its machine. A code object that is dropped on the page is shown as its disassembly.",
  ],
  [
    "Run, Check, Step",
    "Run executes the program and shows its outputs. Check reports races, missing waits, uninitialised values and accesses out of bounds. Step opens the debugger, which goes forward and back.",
  ],
  [
    "Launch",
    "For assembly, source code and objects: the grid in workgroups, the workgroup in work-items, and the arguments, one per line. “x: f32[64]=arange(64)” is an array, “out_y: f32[64]” an output, “2.5” or “i32=50” a scalar.",
  ],
  [
    "Object",
    "The machine code. Lines of the source and their instructions have the same colour; the number beside an instruction is its line. Compare shows the differences to another compiler or other options.",
  ],
  ["ISA", "The pseudocode of the instruction under the cursor. It can be changed: the next run uses it."],
  ["Statistics", "Charts of the next run: instructions, divergence by line, coalescing."],
  [
    "Cost",
    "The time that a GPU would take for the next run, as a model predicts it, and where it goes. It is not a measurement.",
  ],
  [
    "Share",
    "Copies a link that holds the program, which is not sent to a server, unless the server of this page keeps short links. A link with “?embed” before the “#” is for a frame in another page.",
  ],
];

export function helpDialog(): HTMLDialogElement {
  return h(
    "dialog",
    { class: "gallery help", "aria-label": "Help" },
    h("h2", {}, "Help"),
    h("dl", {}, ...PARTS.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
    h("h2", {}, "Keys"),
    h(
      "table",
      {},
      ...KEYS.map(([key, does]) => h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, does))),
    ),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
}
