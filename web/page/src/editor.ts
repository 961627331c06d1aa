// The editors: CodeMirror with common extensions, and the margin of the kernel's editor.

import { closeBrackets } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab, toggleLineComment } from "@codemirror/commands";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, RangeSet, StateEffect, StateField, type Extension } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  GutterMarker,
  drawSelection,
  gutter,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  type DecorationSet,
} from "@codemirror/view";
import { tags as t } from "@lezer/highlight";
import { h } from "./dom";
import type { Message } from "./protocol";

// The style sheet defines the colours of both themes.
const highlight = HighlightStyle.define([
  { tag: t.keyword, class: "tok-keyword" },
  { tag: t.comment, class: "tok-comment" },
  { tag: t.number, class: "tok-number" },
  { tag: t.string, class: "tok-string" },
  { tag: t.labelName, class: "tok-label" },
  { tag: t.meta, class: "tok-meta" },
  { tag: t.typeName, class: "tok-type" },
  { tag: t.variableName, class: "tok-register" },
  { tag: t.propertyName, class: "tok-property" },
  { tag: t.operator, class: "tok-operator" },
]);

/** Extensions of all editors. */
export function basics(label: string): Extension[] {
  return [
    history(),
    drawSelection(),
    closeBrackets(),
    indentUnit.of("  "),
    highlightActiveLine(),
    highlightSelectionMatches(),
    syntaxHighlighting(highlight),
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocapitalize: "off", tabindex: "0" }),
    keymap.of([
      { key: "Mod-/", run: toggleLineComment },
      // Tab indents; after Escape it moves the focus, for keyboard navigation.
      indentWithTab,
      ...searchKeymap,
      ...lintKeymap,
      ...historyKeymap,
      ...defaultKeymap,
    ]),
  ];
}

/** A place: a line of the text, and an address of the code. */
export interface Site {
  line: number | null;
  address: number | null;
}

/** Marks in the margin. */
export interface Marks {
  /** The place of the selected wave. */
  here: Site | null;
  /** The places of other waves. */
  waves: Site[];
  breakpoints: Site[];
  findings: (Site & { title: string; other: boolean })[];
  /** Execution counts. */
  counts: (Site & { count: number })[];
}

export const noMarks = (): Marks => ({ here: null, waves: [], breakpoints: [], findings: [], counts: [] });

/** The same marks in lines of a text, counted from 1. */
interface Lines {
  here: number | null;
  waves: number[];
  breakpoints: number[];
  findings: { line: number; title: string; other: boolean }[];
  counts: Map<number, number>;
}

const setMarks = StateEffect.define<Lines>();

class Sign extends GutterMarker {
  constructor(
    readonly name: string,
    readonly text: string,
    readonly title: string,
  ) {
    super();
  }
  override eq(other: Sign): boolean {
    return other.name === this.name && other.text === this.text && other.title === this.title;
  }
  override toDOM(): HTMLElement {
    return h("span", { class: `sign ${this.name}`, title: this.title, "aria-label": this.title }, this.text);
  }
}

const marksField = StateField.define<Lines>({
  create: () => ({ here: null, waves: [], breakpoints: [], findings: [], counts: new Map() }),
  update(marks, tr) {
    for (const effect of tr.effects) if (effect.is(setMarks)) return effect.value;
    return marks;
  },
});

const lineDecorations = EditorView.decorations.compute([marksField, "doc"], (state): DecorationSet => {
  const marks = state.field(marksField);
  const classes = new Map<number, string>();
  const add = (line: number, name: string) => {
    if (line >= 1 && line <= state.doc.lines) classes.set(line, `${classes.get(line) ?? ""} ${name}`.trim());
  };
  marks.findings.forEach((f) => add(f.line, f.other ? "line-other" : "line-finding"));
  marks.waves.forEach((line) => add(line, "line-wave"));
  if (marks.here !== null) add(marks.here, "line-here");
  const lines = [...classes].sort((a, b) => a[0] - b[0]);
  return Decoration.set(lines.map(([line, name]) => Decoration.line({ class: name }).range(state.doc.line(line).from)));
});

function signs(view: EditorView): RangeSet<GutterMarker> {
  const marks = view.state.field(marksField);
  const list: [number, Sign][] = [];
  for (const line of marks.breakpoints) list.push([line, new Sign("break", "●", `breakpoint on line ${line}`)]);
  for (const f of marks.findings)
    list.push([f.line, new Sign(f.other ? "other" : "finding", f.other ? "◆" : "▲", f.title)]);
  if (marks.here !== null) list.push([marks.here, new Sign("here", "➤", "the selected wave is here")]);
  const inside = list.filter(([line]) => line >= 1 && line <= view.state.doc.lines);
  return RangeSet.of(
    inside.map(([line, sign]) => sign.range(view.state.doc.line(line).from)),
    true,
  );
}

function counts(view: EditorView): RangeSet<GutterMarker> {
  const marks = view.state.field(marksField);
  const most = Math.max(1, ...marks.counts.values());
  const list = [...marks.counts]
    .filter(([line]) => line >= 1 && line <= view.state.doc.lines)
    .sort((a, b) => a[0] - b[0]);
  return RangeSet.of(
    list.map(([line, n]) => {
      const heat = Math.ceil((4 * Math.log(n + 1)) / Math.log(most + 1));
      return new Sign(`count heat${heat}`, short(n), `executed ${n} times`).range(view.state.doc.line(line).from);
    }),
  );
}

/** Formats 1234567 as `1.2M`. */
export function short(n: number): string {
  for (const [unit, size] of [
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ] as const) {
    if (n >= size) return `${(n / size).toPrecision(2).replace(/\.0$/, "")}${unit}`;
  }
  return String(n);
}

/** The margin of the kernel: a click or F9 toggles a breakpoint. */
export function margin(toggle: (line: number) => void): Extension[] {
  return [
    marksField,
    lineDecorations,
    gutter({
      class: "gutter-signs",
      markers: signs,
      initialSpacer: () => new Sign("break", "●", ""),
      domEventHandlers: {
        mousedown(view, line) {
          toggle(view.state.doc.lineAt(line.from).number);
          return true;
        },
      },
    }),
    lineNumbers(),
    highlightActiveLineGutter(),
    gutter({ class: "gutter-counts", markers: counts }),
    lintGutter(),
  ];
}

/** Shows marks; `at` is the line of a place. */
export function showMarks(view: EditorView, marks: Marks, at = (site: Site): number | null => site.line): void {
  const lines = (sites: Site[]): number[] => sites.map(at).filter((line): line is number => line !== null);
  const here = marks.here && at(marks.here);
  const shown: Lines = {
    here,
    waves: lines(marks.waves).filter((line) => line !== here),
    breakpoints: lines(marks.breakpoints),
    findings: marks.findings.flatMap((f) => {
      const line = at(f);
      return line === null ? [] : [{ line, title: f.title, other: f.other }];
    }),
    counts: new Map(
      marks.counts.flatMap((c): [number, number][] => {
        const line = at(c);
        return line === null ? [] : [[line, c.count]];
      }),
    ),
  };
  view.dispatch({ effects: setMarks.of(shown) });
}

/** Underlines the ranges of messages. */
export function showMessages(view: EditorView, messages: Message[]): void {
  const length = view.state.doc.length;
  const list = messages.map((m): Diagnostic => {
    const from = Math.min(m.from, length);
    return {
      from,
      to: Math.max(from, Math.min(m.to, length)),
      severity: m.severity,
      message: m.help ? `${m.message}\n${m.help}` : m.message,
    };
  });
  view.dispatch(setDiagnostics(view.state, list));
}

/** Moves the cursor to a line and scrolls to it. */
export function goToLine(view: EditorView, line: number, focus = true): void {
  if (line < 1 || line > view.state.doc.lines) return;
  const at = view.state.doc.line(line).from;
  view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
  if (focus) view.focus();
}

/** Replaces the text of an editor and clears its history. */
export function freshState(text: string, extensions: Extension[]): EditorState {
  return EditorState.create({ doc: text, extensions });
}

export function createEditor(parent: HTMLElement, text: string, extensions: Extension[]): EditorView {
  return new EditorView({ parent, state: freshState(text, extensions) });
}

export function setText(view: EditorView, text: string): void {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}
