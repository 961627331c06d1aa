// A disassembly in an editor that cannot be edited, linked with the lines of its source.

import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { h } from "./dom";
import { basics, createEditor, goToLine, margin, setText, showMarks, type Marks, type Site } from "./editor";
import { kernelLanguage } from "./language";
import { links, selectLink, showLinks } from "./links";
import type { Disassembly } from "./protocol";

export class Listing {
  readonly element = h("div", { class: "listing-view", "data-test": "listing" });
  private view: EditorView;
  private rows: Disassembly["rows"] = [];
  /** Lines of the listing by address. */
  private lines = new Map<number, number>();

  constructor(toggle: (address: number) => void, onsource: (line: number) => void) {
    this.view = createEditor(this.element, "", [
      margin((line) => {
        const address = this.address(line);
        if (address !== null) toggle(address);
      }),
      ...basics("Disassembly"),
      kernelLanguage(() => true),
      links(true),
      EditorState.readOnly.of(true),
      EditorView.updateListener.of((update) => {
        if (!update.selectionSet || !update.transactions.some((tr) => tr.isUserEvent("select"))) return;
        const line = this.rows[update.state.doc.lineAt(update.state.selection.main.head).number - 1]?.[1];
        if (line) onsource(line);
      }),
    ]);
  }

  show(disassembly: Disassembly): void {
    this.rows = disassembly.rows;
    this.lines = new Map(this.rows.flatMap(([address], at) => (address === null ? [] : [[address, at + 1]])));
    setText(this.view, disassembly.listing.trimEnd());
    showLinks(
      this.view,
      this.rows.map((row) => row[1]),
    );
  }

  /** Marks the instructions of a line of the source, and scrolls to the first of them. */
  select(line: number | null): void {
    const first = selectLink(this.view, line);
    if (first !== null)
      this.view.dispatch({ effects: EditorView.scrollIntoView(this.view.state.doc.line(first).from, { y: "center" }) });
  }

  private address(line: number): number | null {
    return this.rows[line - 1]?.[0] ?? null;
  }

  /** The address of the line of the cursor. */
  cursor(): number | null {
    return this.address(this.view.state.doc.lineAt(this.view.state.selection.main.head).number);
  }

  /** The instruction at an address, or at the cursor. */
  text(address?: number): string {
    const line = address === undefined ? undefined : this.lines.get(address);
    const { doc, selection } = this.view.state;
    return line === undefined ? doc.lineAt(selection.main.head).text : doc.line(line).text;
  }

  goTo(address: number, focus: boolean): void {
    const line = this.lines.get(address);
    if (line !== undefined) goToLine(this.view, line, focus);
  }

  /** Shows marks at addresses. */
  mark(marks: Marks): void {
    const at = (site: Site): number | null => (site.address === null ? null : (this.lines.get(site.address) ?? null));
    showMarks(this.view, marks, at);
  }
}
