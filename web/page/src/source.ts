// Source code: its language, the compiler and its options, the result, and the comparison with another compiler.

import { difference } from "./changes";
import { button, h, options, select } from "./dom";
import type { Engine } from "./engine";
import type { Compilation, Disassembly, SourceCode } from "./protocol";

/** The language of the text: kernels as text and assembly, OpenCL C, or HIP. */
export type Language = "" | "opencl" | "hip";

export const LANGUAGES: [Language, string][] = [
  ["", "Kernel or assembly"],
  ["opencl", "OpenCL C"],
  ["hip", "HIP"],
];

/** Time limit of a compilation in milliseconds. */
const LIMIT = 60_000;
/** Maximum number of lines of a listing that is compared. */
const COMPARED = 4000;

const NO_SERVER =
  "This page has no compiler: compiling needs a server. Run “wavesim serve” on a machine with clang, and open the " +
  "program there.";

/** What the page provides. */
interface Host {
  text(): string;
  arch(): string;
  wave(): string;
  /** Called when the compiler or its options change. */
  changed(): void;
  /** Called with every new result. */
  compiled(result: Compilation): void;
}

export class Sources {
  language: Language = "";
  /** The result for the current text and options, unless they have changed. */
  private result: Compilation | null = null;
  private key = "";
  private available = true;
  private listed: string | null = null;
  private compiler = select("Compiler", [["", "default compiler"]], "", () => this.host.changed());
  private flags = h("input", {
    type: "text",
    size: 14,
    placeholder: "-O2 -ffast-math",
    "aria-label": "Options of the compiler",
    spellcheck: false,
    oninput: () => this.host.changed(),
  });
  private otherCompiler = select("Compiler to compare with", [["", "same compiler"]], "", () => {});
  private otherFlags = h("input", {
    type: "text",
    size: 14,
    value: "-O0",
    "aria-label": "Options to compare with",
    spellcheck: false,
  });
  private differences = h("div", { class: "comparison", "data-test": "comparison" });
  private note = h("p", { class: "dim" });
  /** Above the editor. */
  readonly bar = h(
    "div",
    { class: "row source-bar" },
    h("label", {}, "compiler ", this.compiler),
    h("label", {}, "options ", this.flags),
    this.note,
  );
  /** Below the listing. */
  readonly comparison: HTMLElement;
  /** The compiler's messages. */
  private log = h("pre", { class: "compiler-log", "aria-label": "Messages of the compiler", tabIndex: 0 });

  constructor(
    private engine: Engine,
    private host: Host,
  ) {
    const compare = button(
      "Compare",
      "Compile with the other options, and show the differences",
      () => void this.compare(),
      {
        "data-test": "compare",
      },
    );
    this.comparison = h(
      "div",
      {},
      this.log,
      h("h3", {}, "Compare"),
      h(
        "div",
        { class: "row" },
        h("label", {}, "with ", this.otherCompiler),
        h("label", {}, "options ", this.otherFlags),
        compare,
      ),
      this.differences,
    );
    this.bar.hidden = true;
  }

  get settings(): { language: string; compiler: string; options: string } {
    return { language: this.language, compiler: this.compiler.value, options: this.flags.value.trim() };
  }

  /** Takes the settings of a program. */
  async set(language: string, compiler: string, flags: string): Promise<void> {
    this.language = LANGUAGES.some(([name]) => name === language) ? (language as Language) : "";
    this.bar.hidden = !this.language;
    this.flags.value = flags;
    this.result = null;
    this.differences.replaceChildren();
    if (!this.language) return;
    await this.list();
    this.compiler.value = compiler;
    if (this.compiler.selectedIndex < 0) this.compiler.value = "";
  }

  /** Lists the compilers for the architecture. */
  async list(): Promise<void> {
    const arch = this.host.arch();
    if (!this.language || this.listed === arch) return;
    this.listed = arch;
    const { available, compilers } = await this.engine.request({ op: "compilers", arch: arch || undefined }, 20000);
    this.available = available;
    this.note.textContent = available
      ? compilers.length
        ? ""
        : "No installed compiler supports this architecture."
      : NO_SERVER;
    const list = compilers.map(({ name, version }): [string, string] => [
      name,
      `${name.replace(/.*\//, "")}${/ version (\S+)/.exec(version) ? ` (${/ version (\S+)/.exec(version)?.[1]})` : ""}`,
    ]);
    options(this.compiler, [["", "default compiler"], ...list]);
    options(this.otherCompiler, [["", "same compiler"], ...list]);
  }

  /** Whether this page can compile. */
  get usable(): boolean {
    return this.available;
  }

  private source(): SourceCode {
    const source: SourceCode = {
      language: this.language as "opencl" | "hip",
      text: this.host.text(),
      options: this.flags.value.trim(),
    };
    if (this.host.arch()) source.arch = this.host.arch();
    if (this.host.wave()) source.wave = Number(this.host.wave());
    if (this.compiler.value) source.compiler = this.compiler.value;
    return source;
  }

  /** Compiles the source unless this has been done. */
  async compile(engine: Engine): Promise<Compilation> {
    if (!this.available) throw new Error(NO_SERVER);
    const source = this.source();
    const key = JSON.stringify(source);
    if (this.result && this.key === key) return this.result;
    const result = await engine.request({ op: "compile", source }, LIMIT);
    // Older than the text: someone has typed on.
    if (key !== JSON.stringify(this.source())) return result;
    [this.result, this.key] = [result, key];
    this.log.textContent = result.log;
    this.log.hidden = !result.log;
    this.host.compiled(result);
    return result;
  }

  /** Forgets the result, which a dropped object has replaced on the page. */
  forget(): void {
    this.result = null;
  }

  private async compare(): Promise<void> {
    const source = { ...this.source(), options: this.otherFlags.value.trim() };
    if (this.otherCompiler.value) source.compiler = this.otherCompiler.value;
    this.differences.replaceChildren(h("p", { class: "dim" }, "Compiling …"));
    try {
      const own = await this.compile(this.engine);
      const other = await this.engine.request({ op: "compile", source }, LIMIT);
      if (!own.disassembly) throw new Error(own.log);
      if (!other.disassembly) throw new Error(other.log);
      const name = (s: { compiler?: string; options: string }) => `${s.compiler || "default"} ${s.options}`.trim();
      this.differences.replaceChildren(
        differing(own.disassembly, other.disassembly, name(this.source()), name(source)),
      );
    } catch (e) {
      const text = e instanceof Error ? e.message : String(e);
      this.differences.replaceChildren(h("div", { class: "fault", role: "alert" }, h("pre", {}, text)));
    }
  }
}

/** The instructions of a listing without addresses; labels are numbered, as their names contain addresses. */
export function instructions(listing: string): string[] {
  const names = new Map<string, string>();
  const label = (name: string): string => {
    if (!names.has(name)) names.set(name, `.L${names.size + 1}`);
    return names.get(name) as string;
  };
  const lines = listing.trimEnd().split("\n");
  return lines.map((line) => line.replace(/\s*\/\/ [0-9a-f]+$/, "").replace(/\.L[0-9a-f]+\b/g, label));
}

/** The number of instructions of a listing, without the padding after its end. */
const size = (lines: string[]): number => lines.filter((line) => /^ /.test(line) && !/s_code_end/.test(line)).length;

function differing(one: Disassembly, two: Disassembly, left: string, right: string): HTMLElement {
  const [a, b] = [one, two].map((d) => instructions(d.listing).filter((line) => !/s_code_end/.test(line)));
  const rows = difference(a, b, COMPARED);
  const count = (kind: string) => rows.filter((row) => row[0] === kind).length;
  const vgprs = (d: Disassembly) => d.kernels[0]?.vgprs ?? 0;
  const cut = Math.max(a.length, b.length) > COMPARED ? `; only the first ${COMPARED} lines are compared` : "";
  return h(
    "div",
    {},
    h("p", {}, `− ${left}: ${size(a)} instructions, ${vgprs(one)} VGPRs; ${count("-")} lines only here`),
    h("p", {}, `+ ${right}: ${size(b)} instructions, ${vgprs(two)} VGPRs; ${count("+")} lines only here${cut}`),
    h(
      "pre",
      { class: "diff", tabIndex: 0, "aria-label": "Differences of the two listings" },
      ...rows.map(([kind, line]) =>
        h("div", { class: kind === "+" ? "added" : kind === "-" ? "removed" : "" }, `${kind} ${line}`),
      ),
    ),
  );
}
