// Lines of the source and the instructions that belong to them: the same colour in both, and the line's number beside
// instructions.

import { RangeSet, StateEffect, StateField, type EditorState, type Extension } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, gutter, type DecorationSet } from "@codemirror/view";
import { h } from "./dom";

/** The colours, which repeat. */
const BANDS = 6;

interface Links {
  /** The line of the source, by line of this text (from 0). */
  lines: (number | null)[];
  /** The selected line of the source. */
  selected: number | null;
}

const setLinks = StateEffect.define<Links>();

const field = StateField.define<Links>({
  create: () => ({ lines: [], selected: null }),
  update(links, tr) {
    for (const effect of tr.effects) if (effect.is(setLinks)) return effect.value;
    // Changed text has other lines.
    return tr.docChanged ? { lines: [], selected: null } : links;
  },
});

const decorations = EditorView.decorations.compute([field], (state): DecorationSet => {
  const { lines, selected } = state.field(field);
  const found = [];
  for (let at = 0; at < Math.min(lines.length, state.doc.lines); at++) {
    const line = lines[at];
    if (line === null || line === undefined) continue;
    const linked = line === selected ? " linked" : "";
    found.push(Decoration.line({ class: `band band${line % BANDS}${linked}` }).range(state.doc.line(at + 1).from));
  }
  return Decoration.set(found);
});

class LineNumber extends GutterMarker {
  constructor(private line: number) {
    super();
  }
  override eq(other: LineNumber): boolean {
    return other.line === this.line;
  }
  override toDOM(): HTMLElement {
    return h("span", { class: "source-line", title: `line ${this.line} of the source` }, `${this.line}`);
  }
}

function numbers(state: EditorState): RangeSet<GutterMarker> {
  const { lines } = state.field(field);
  const found = [];
  for (let at = 0; at < Math.min(lines.length, state.doc.lines); at++) {
    const line = lines[at];
    // Only the first of several instructions of a line, to be quiet.
    if (typeof line === "number" && lines[at - 1] !== line)
      found.push(new LineNumber(line).range(state.doc.line(at + 1).from));
  }
  return RangeSet.of(found);
}

/** Shows links in an editor; with the numbers of lines in its margin. */
export function links(margin: boolean): Extension[] {
  const gutters = margin ? [gutter({ class: "gutter-source", markers: (view) => numbers(view.state) })] : [];
  return [field, decorations, ...gutters];
}

/** Sets the line of the source of each line of an editor's text. */
export function showLinks(view: EditorView, lines: (number | null)[]): void {
  view.dispatch({ effects: setLinks.of({ lines, selected: view.state.field(field).selected }) });
}

/** Marks everything that belongs to a line of the source. Returns the first line of the text that does, from 1. */
export function selectLink(view: EditorView, selected: number | null): number | null {
  const links = view.state.field(field);
  if (links.selected !== selected) view.dispatch({ effects: setLinks.of({ ...links, selected }) });
  const at = selected === null ? -1 : links.lines.indexOf(selected);
  return at < 0 ? null : at + 1;
}
