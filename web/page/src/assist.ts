// Completion, hover and jumps, from the ISA description.

import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import type { EditorState, Extension, Text } from "@codemirror/state";
import { EditorView, hoverTooltip, keymap } from "@codemirror/view";
import { h } from "./dom";
import { goToLine } from "./editor";
import type { Engine } from "./engine";
import type { Description } from "./protocol";

const HEADER = ["const ", "arch = ", "wave = ", "local = ", "global = ", "lds = ", "scratch = ", "arg_", "out_"];

/** The ISA of the selected architecture, loaded on demand. */
export class Isa {
  /** Names of instructions. */
  private readonly known = new Set<string>();
  /** The modifiers' spellings; a modifier that takes a value ends with a colon. */
  modifiers: string[] = [];
  counters: string[] = [];
  /** Suffixes of names in assembly that select the encoding, longest first. */
  private suffixes: string[] = [];
  private list: { name: string; group: string; semantics: boolean }[] = [];
  private described = new Map<string, Promise<Description | null>>();

  constructor(
    private engine: Engine,
    public arch: string,
  ) {}

  async load(arch: string): Promise<void> {
    this.arch = arch;
    this.described.clear();
    const names = await this.engine.request({ op: "names", arch });
    this.list = names.instructions.map(([name, group, semantics]) => ({ name, group, semantics }));
    this.modifiers = names.modifiers;
    this.counters = names.counters;
    this.suffixes = names.suffixes;
    this.known.clear();
    for (const { name } of this.list) this.known.add(name);
  }

  /** Returns whether a word is an instruction name, with or without a suffix; true for all words until the ISA is loaded. */
  isInstruction(word: string): boolean {
    const name = word.toLowerCase();
    const suffix = this.suffixes.find((s) => name.endsWith(s)) ?? "";
    return this.known.size === 0 || this.known.has(name) || this.known.has(name.slice(0, name.length - suffix.length));
  }

  names(): { name: string; group: string; semantics: boolean }[] {
    return this.list;
  }

  /** The error for an unknown instruction name, and similar names. */
  async missing(name: string): Promise<string> {
    try {
      await this.engine.request({ op: "describe", arch: this.arch, name });
      return "";
    } catch (e) {
      return e instanceof Error ? e.message : String(e);
    }
  }

  /** Returns an instruction; null if the name is unknown. */
  describe(name: string): Promise<Description | null> {
    const key = name.toLowerCase();
    let found = this.described.get(key);
    if (!found) {
      found = this.engine.request({ op: "describe", arch: this.arch, name: key }).catch(() => null);
      this.described.set(key, found);
    }
    return found;
  }
}

/** The instruction of a line. */
export function mnemonic(line: string): string | null {
  const code = line.replace(/(?:;|\/\/).*/, "").replace(/^\s*[\w.$@]+:/, "");
  const word = /^\s*([a-z]\w*)/i.exec(code)?.[1];
  return word && /_/.test(word) ? word.toLowerCase() : null;
}

/** Labels of a text, with their lines. */
function labels(text: string): Map<string, number> {
  const found = new Map<string, number>();
  let header = false;
  text.split("\n").forEach((line, at) => {
    if (/^\s*---\s*$/.test(line)) header = !header;
    const name = /^\s*([\w.$@]+):/.exec(line)?.[1];
    if (name && !header) found.set(name, at + 1);
  });
  return found;
}

function complete(isa: Isa, context: CompletionContext): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  if (/[;]|\/\//.test(before)) return null;
  const word = /[\w.]*$/.exec(before)?.[0] ?? "";
  if (!word && !context.explicit) return null;
  const from = context.pos - word.length;
  const fences = context.state.doc.sliceString(0, line.from).match(/^---\s*$/gm)?.length ?? 0;
  const start = /^\s*(?:[\w.$@]+:\s*)?[\w.]*$/.test(before);
  if (fences === 1) {
    return start ? { from, options: HEADER.map((label) => ({ label, type: "property" })) } : null;
  }
  if (start) {
    const options = isa.names().map(({ name, group, semantics }) => ({
      label: name,
      detail: semantics ? group : `${group}, no semantics`,
      type: "keyword",
      boost: semantics ? 0 : -50,
      info: async () => {
        const description = await isa.describe(name);
        return description && card(description);
      },
    }));
    return { from, options, validFor: /^\w*$/ };
  }
  const text = context.state.doc.toString();
  const registers = [...new Set(text.match(/\b[vs]\d+\b|\b[vs]\[[^\]\s]+\]|\b(?:vcc|exec)(?:_lo|_hi)?\b/g) ?? [])];
  const constants = [...text.matchAll(/^const\s+(\w+)/gm)].map((m) => m[1]);
  const options = [
    ...(/branch|call|getpc/.test(before)
      ? [...labels(text).keys()].map((label) => ({ label, type: "namespace" }))
      : []),
    ...(/waitcnt/.test(before) ? isa.counters.map((name) => ({ label: `${name}(0)`, type: "enum" })) : []),
    ...constants.map((label) => ({ label, type: "constant" })),
    ...registers.map((label) => ({ label, type: "variable" })),
    ...isa.modifiers.map((label) => ({ label, type: "property", boost: -10 })),
  ];
  return { from, options, validFor: /^[\w.]*$/ };
}

/** The description of an instruction for hover and completion. */
export function card(d: Description): HTMLElement {
  const form = d.forms[0];
  return h(
    "div",
    { class: "card" },
    h(
      "div",
      { class: "card-title" },
      h("b", {}, d.name),
      " ",
      h("span", { class: "dim" }, d.syntax),
      h("span", { class: "chip" }, d.group),
    ),
    d.pseudocode !== null
      ? h("pre", { class: "pcode" }, d.pseudocode)
      : h("p", {}, `No semantics: ${d.unsupported ?? "no reason is recorded"}.`),
    form && h("ul", {}, ...form.operands.map((o) => h("li", {}, o))),
    form && h("p", { class: "dim" }, form.fields),
    h("p", { class: "dim" }, d.forms.flatMap((f) => f.encodings).join(" · ")),
    d.place && h("p", { class: "dim" }, d.place),
  );
}

/** The description of a label: its line, and the instruction at the label. */
function labelCard(name: string, doc: Text, line: number): HTMLElement {
  let next = line;
  const code = (n: number) =>
    doc
      .line(n)
      .text.replace(/^\s*[\w.$@]+:/, "")
      .trim();
  while (next < doc.lines && !code(next)) next++;
  return h("div", { class: "card" }, h("b", {}, name), `: line ${line} (F12)`, h("pre", {}, code(next)));
}

/** The name at a position; names of labels can contain dots and dollar signs. */
function wordAt(state: EditorState, at: number): { from: number; to: number; text: string } | null {
  const line = state.doc.lineAt(at);
  for (const match of line.text.matchAll(/[\w.$@]+/g)) {
    const from = line.from + match.index;
    if (from <= at && at <= from + match[0].length) return { from, to: from + match[0].length, text: match[0] };
  }
  return null;
}

/** Completion, hover on instructions and labels, and F12 (or Ctrl-click) to a label. */
export function assist(isa: Isa): Extension[] {
  const jump = (view: EditorView, at: number): boolean => {
    const word = wordAt(view.state, at);
    const line = word && labels(view.state.doc.toString()).get(word.text);
    if (!line) return false;
    goToLine(view, line);
    return true;
  };
  return [
    autocompletion({ override: [(context) => complete(isa, context)], icons: false, maxRenderedOptions: 60 }),
    hoverTooltip(async (view, pos) => {
      const word = wordAt(view.state, pos);
      if (!word) return null;
      const { doc } = view.state;
      const line = labels(doc.toString()).get(word.text);
      const description = !line && /^[a-z]+_\w+$/i.test(word.text) ? await isa.describe(word.text) : null;
      if (!line && !description) return null;
      const dom = description ? card(description) : labelCard(word.text, doc, line as number);
      return { pos: word.from, end: word.to, above: true, create: () => ({ dom }) };
    }),
    keymap.of([{ key: "F12", run: (view) => jump(view, view.state.selection.main.head) }]),
    EditorView.domEventHandlers({
      mousedown(event, view) {
        if (!event.ctrlKey && !event.metaKey) return false;
        const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
        return at !== null && jump(view, at);
      },
    }),
  ];
}
