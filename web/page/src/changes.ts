// The tab "ISA": displays and edits the pseudocode of the instruction under the cursor.

import type { Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { lintGutter } from "@codemirror/lint";
import type { Isa } from "./assist";
import { button, debounce, h } from "./dom";
import { basics, createEditor, freshState, setText, showMessages } from "./editor";
import type { Engine } from "./engine";
import { pcodeLanguage } from "./language";
import type { Description } from "./protocol";

/** A line of a diff of two texts: unchanged, removed or added. */
export function difference(a: string[], b: string[], most = 1000): [kind: " " | "-" | "+", line: string][] {
  // Longest common subsequence of the first lines.
  const n = Math.min(a.length, most);
  const m = Math.min(b.length, most);
  const best = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--)
      best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  const out: [" " | "-" | "+", string][] = [];
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    if (i < n && j < m && a[i] === b[j]) {
      out.push([" ", a[i]]);
      i++;
      j++;
    } else if (i < n && (j >= m || best[i + 1][j] >= best[i][j + 1])) out.push(["-", a[i++]]);
    else out.push(["+", b[j++]]);
  }
  return out;
}

/** Wraps a body as a block of a pseudocode file; it may apply to one architecture only. */
export function block(name: string, body: string, arch?: string): string {
  const lines = body.split("\n").map((line) => (line ? `  ${line}` : line));
  return `instruction ${name.toUpperCase()}${arch ? ` for ${arch}` : ""} {\n${lines.join("\n")}\n}\n`;
}

export class Changes {
  readonly element: HTMLElement;
  /** Changed blocks, by lower-case instruction name and architecture (`v_add_f32@rdna3`); without an architecture: for all. */
  readonly changed = new Map<string, string>();
  private heading = h("div", { class: "isa-heading" });
  private list = h("div", { class: "chips", "aria-label": "Changed instructions" });
  private holder = h("div", { class: "isa-editor" });
  private differences = h("pre", { class: "diff", "aria-label": "Differences from the built-in semantics" });
  private facts = h("div", {});
  private editor: EditorView;
  private extensions: Extension[];
  private shown: Description | null = null;
  private wanted = "";

  constructor(
    private engine: Engine,
    private isa: Isa,
    private onchange: () => void,
  ) {
    const search = h("input", {
      type: "search",
      placeholder: "Instruction, e.g. v_add_f32",
      "aria-label": "Instruction",
      list: "instruction-names",
      onchange: () => void this.show(search.value.trim(), true),
    });
    this.element = h(
      "div",
      { class: "isa" },
      h("div", { class: "row" }, search, this.list),
      this.heading,
      this.holder,
      this.differences,
      this.facts,
    );
    const check = debounce(200, () => void this.check());
    this.extensions = [
      ...basics("Pseudocode"),
      lineNumbers(),
      lintGutter(),
      pcodeLanguage(),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged || !this.shown) return;
        const text = this.editor.state.doc.toString();
        const { name, pseudocode } = this.shown;
        const same = [undefined, this.isa.arch].map((arch) => block(name, pseudocode ?? "", arch).trim());
        if (same.includes(text.trim())) this.changed.delete(this.key());
        else this.changed.set(this.key(), text);
        this.update();
        this.onchange();
        check();
      }),
    ];
    this.editor = createEditor(this.holder, "", [...basics("Pseudocode"), EditorView.editable.of(false)]);
    this.heading.append(
      h(
        "p",
        { class: "dim" },
        "Put the cursor on an instruction, or search for one. Change its pseudocode: the next run uses it.",
      ),
    );
  }

  /** All changes as a pseudocode file. */
  text(): string {
    return [...this.changed.values()].join("\n");
  }

  private builtIn(): string {
    if (!this.shown) return "";
    const { name, pseudocode } = this.shown;
    // A change for all architectures is compared with a block for all.
    return block(name, pseudocode ?? "", this.changed.has(name) ? undefined : this.isa.arch);
  }

  /** The key of the change of the shown instruction. */
  private key(): string {
    const name = this.shown?.name ?? "";
    return this.changed.has(name) ? name : `${name}@${this.isa.arch}`;
  }

  /** Updates the tab for another architecture, whose bodies may differ. */
  archChanged(): void {
    const name = this.shown?.name ?? "";
    this.wanted = "";
    this.shown = null;
    if (name) void this.show(name, true);
  }

  /** Shows an instruction. An unknown name is ignored unless the user requested it. */
  async show(name: string, asked = false): Promise<void> {
    if (!name || (name === this.wanted && this.shown && !asked)) return;
    this.wanted = name;
    const description = await this.isa.describe(name);
    if (this.wanted !== name) return;
    if (!description) {
      if (asked) this.heading.replaceChildren(h("p", { role: "alert" }, await this.isa.missing(name)));
      return;
    }
    this.shown = description;
    // A separate history: undo never restores the text of another instruction.
    this.editor.setState(freshState(this.changed.get(this.key()) ?? this.builtIn(), this.extensions));
    this.update();
    if (this.changed.has(this.key())) void this.check();
  }

  /** Replaces the changes by those of a link or an example. */
  set(changes: Record<string, string>): void {
    this.changed.clear();
    for (const [name, body] of Object.entries(changes)) this.changed.set(name.toLowerCase(), body);
    const name = Object.keys(changes)[0]?.split("@")[0] ?? this.shown?.name ?? "";
    this.wanted = "";
    this.shown = null;
    this.update();
    void this.show(name);
  }

  private async check(): Promise<void> {
    const text = this.editor.state.doc.toString();
    try {
      const { diagnostics } = await this.engine.request({ op: "diagnose-semantics", text }, 20000);
      if (this.editor.state.doc.toString() === text) showMessages(this.editor, diagnostics);
    } catch (e) {
      this.heading.append(h("p", { role: "alert" }, String(e)));
    }
  }

  private update(): void {
    this.list.replaceChildren(
      ...[...this.changed.keys()].map((key) => {
        const [name, arch] = key.split("@");
        const other = arch && arch !== this.isa.arch ? ` (${arch})` : "";
        return h(
          "button",
          {
            type: "button",
            class: "chip changed",
            title: `${name} is changed${arch ? ` for ${arch}` : ""}: show it`,
            onclick: () => void this.show(name, true),
          },
          `${name}${other} ✎`,
        );
      }),
    );
    const d = this.shown;
    if (!d) return;
    const changed = this.changed.has(this.key());
    const reset = button("Reset", "Back to the built-in semantics", () => setText(this.editor, this.builtIn()), {
      disabled: !changed,
    });
    this.heading.replaceChildren(
      h(
        "h3",
        {},
        d.name,
        h("span", { class: "chip" }, d.group),
        changed ? h("span", { class: "chip changed" }, "changed") : null,
        reset,
      ),
      h(
        "p",
        { class: "dim" },
        d.place ? `Built in: ${d.place}` : `No built-in semantics: ${d.unsupported ?? "no reason is recorded"}`,
      ),
    );
    const rows = difference(this.builtIn().split("\n"), this.editor.state.doc.toString().split("\n"));
    this.differences.hidden = !changed;
    this.differences.replaceChildren(
      ...rows.map(([kind, line]) =>
        h("div", { class: kind === "+" ? "added" : kind === "-" ? "removed" : "" }, `${kind} ${line}`),
      ),
    );
    this.facts.replaceChildren(
      ...d.forms.map((form) =>
        h(
          "details",
          {},
          h("summary", {}, form.encodings.join(" · ")),
          h("ul", {}, ...form.operands.map((o) => h("li", {}, o))),
          h("p", { class: "dim" }, `fields: ${form.fields}`),
        ),
      ),
    );
  }
}
