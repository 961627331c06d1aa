// The launch of assembly, source code and code objects: grid, workgroup, kernel and arguments.

import { h } from "./dom";
import type { Loaded } from "./disassemble";
import type { Disassembly, Program } from "./protocol";
import type { Shared } from "./share";

type Values = Pick<Shared, "grid" | "block" | "args" | "kernel">;

export class Launch {
  private grid = h("input", {
    type: "text",
    value: "1",
    size: 8,
    "aria-label": "Workgroups in the grid, e.g. 2 or 4,4,1",
  });
  private block = h("input", { type: "text", value: "32", size: 8, "aria-label": "Work-items in a workgroup" });
  private args = h("textarea", {
    rows: 4,
    placeholder: "One argument per line, e.g.\nx: f32[50]=arange(50)\nout_y: f32[50]\n2.5",
    "aria-label": "Arguments, one per line",
    spellcheck: false,
  });
  private kernel = h("input", {
    type: "text",
    size: 12,
    placeholder: "the first",
    "aria-label": "Name of the kernel",
  });
  readonly element = h(
    "details",
    { class: "launch", open: true },
    h("summary", {}, "Launch"),
    h(
      "div",
      { class: "row" },
      h("label", {}, "grid ", this.grid),
      h("label", {}, "workgroup ", this.block),
      h("label", {}, "kernel ", this.kernel),
    ),
    this.args,
  );
  /** The object name, the kernel and the suggested arguments that were last filled in. */
  private suggested = "";
  private suggestedArgs = "";

  constructor(onchange: () => void) {
    for (const field of [this.grid, this.block, this.args, this.kernel]) field.addEventListener("input", onchange);
  }

  get values(): Values {
    const { grid, block, args, kernel } = this;
    return { grid: grid.value, block: block.value, args: args.value, kernel: kernel.value };
  }

  set values(s: Partial<Values>) {
    this.grid.value = s.grid || "1";
    this.block.value = s.block || "32";
    this.args.value = s.args ?? "";
    this.kernel.value = s.kernel ?? "";
  }

  /** The launch in the form that the engine accepts. */
  request(): Pick<Program, "grid" | "block" | "args" | "kernel"> {
    const lines = this.args.value.split("\n").map((line) => line.trim());
    const kernel = this.kernel.value.trim();
    return {
      grid: dimensions(this.grid.value),
      block: dimensions(this.block.value),
      args: lines.filter(Boolean),
      ...(kernel ? { kernel } : {}),
    };
  }

  /** Fills in a kernel and arguments that it could have. */
  suggest(loaded: Loaded, kernel: Disassembly["kernels"][0] | undefined): void {
    this.element.hidden = false;
    this.kernel.value = kernel?.name ?? "";
    const text = (a: { suggestion: string; pointer: boolean }) => a.suggestion + (a.pointer ? "=arange(64)" : "");
    // Code for another architecture has the same arguments: those that the user has entered are kept. So are those of a
    // source, whose parameters change while it is written.
    const suggestion = (kernel?.args ?? []).map(text).join("\n");
    const signature = `${loaded.name}\n${this.kernel.value}\n${suggestion}`;
    const { args } = this;
    const own = loaded.compiled && args.value.trim() !== "" && args.value !== this.suggestedArgs;
    if (this.suggested !== signature && !own) args.value = this.suggestedArgs = suggestion;
    this.suggested = signature;
  }

  /** The next object is another one. */
  forget(): void {
    this.suggested = "";
  }
}

function dimensions(text: string): number[] {
  const list = text.split(",").map((s) => Number(s.trim()));
  while (list.length < 3) list.push(1);
  if (list.length > 3 || list.some((n) => !Number.isInteger(n) || n < 1 || n > 0xffffffff))
    throw new Error(`“${text}” is not a size: write one to three positive numbers, as 4 or 4,2,1`);
  return list;
}
