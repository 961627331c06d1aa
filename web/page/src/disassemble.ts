// The tab "Object": the code object that Run uses. It has been dropped on the page, or compiled from the source.

import { button, h, select } from "./dom";
import type { Engine } from "./engine";
import type { Listing } from "./listing";
import type { Disassembly } from "./protocol";

export interface Loaded {
  name: string;
  base64: string;
  /** Whether it has been compiled from the source in the editor. */
  compiled: boolean;
}

export class Objects {
  readonly element: HTMLElement;
  loaded: Loaded | null = null;
  /** The name of the kernel that Run launches. */
  private kernel = "";
  private body = h("div", { class: "object-body" });
  private drop: HTMLElement;

  constructor(
    private engine: Engine,
    private arch: () => string,
    private listing: Listing,
    /** Shows what belongs below the listing of compiled code. */
    private below: HTMLElement,
    /** Called when a kernel of the object becomes the target of Run. */
    private onkernel: (loaded: Loaded, kernel: Disassembly["kernels"][0] | undefined) => void,
    /** Called when a file is dropped on the page. */
    ondrop: () => void,
  ) {
    const file = h("input", {
      type: "file",
      id: "object-file",
      "aria-label": "Code object",
      onchange: () => {
        const chosen = file.files?.[0];
        if (chosen) void this.open(chosen);
        // Allows the same file to be chosen again after it has changed.
        file.value = "";
      },
    });
    this.drop = h(
      "label",
      { class: "drop", for: "object-file" },
      "Drop a code object here (an ELF file for gfx11, gfx12, gfx942, gfx950 or gfx1250, or a bundle), or choose one: ",
      file,
    );
    this.element = h("div", { class: "objects" }, this.drop, this.body);
    // Anywhere on the page, including the editor, which would insert the file as text.
    const files = (e: DragEvent) => e.dataTransfer?.types.includes("Files") ?? false;
    for (const type of ["dragenter", "dragover"] as const)
      document.addEventListener(type, (e) => files(e) && (e.preventDefault(), this.drop.classList.add("over")), true);
    document.addEventListener("dragleave", (e) => e.relatedTarget || this.drop.classList.remove("over"));
    document.addEventListener(
      "drop",
      (e) => {
        if (!files(e)) return;
        e.preventDefault();
        e.stopPropagation();
        this.drop.classList.remove("over");
        const dropped = e.dataTransfer?.files[0];
        ondrop();
        if (dropped) void this.open(dropped);
      },
      true,
    );
  }

  async open(file: File): Promise<void> {
    this.body.replaceChildren(h("p", { class: "dim" }, "Reading …"));
    try {
      if (file.size > 16 << 20)
        throw new Error(`${file.name} has ${(file.size / (1 << 20)).toFixed(1)} MB: at most 16 MB can be opened here`);
      const data = new Uint8Array(await file.arrayBuffer());
      let text = "";
      for (let i = 0; i < data.length; i += 8192) text += String.fromCharCode(...data.subarray(i, i + 8192));
      const base64 = btoa(text);
      await this.list({ name: file.name, base64, compiled: false });
    } catch (e) {
      this.fail(e);
    }
  }

  /** Disassembles the code for the newly selected architecture: a bundle has code for several. */
  async archChanged(): Promise<void> {
    if (!this.loaded || this.loaded.compiled) return;
    try {
      await this.list(this.loaded);
    } catch (e) {
      this.fail(e);
    }
  }

  private async list(loaded: Loaded): Promise<void> {
    const arch = this.arch() || undefined;
    this.present(loaded, await this.engine.request({ op: "disassemble", object: loaded.base64, arch }, 20000));
  }

  /** Shows an object, and makes it the target of Run. */
  present(loaded: Loaded, disassembly: Disassembly): void {
    this.loaded = loaded;
    // The previously selected kernel, if this code contains it.
    const same = disassembly.kernels.findIndex((k) => k.name === this.kernel);
    const chosen = Math.max(same, 0);
    this.show(loaded, disassembly, chosen);
    this.choose(loaded, disassembly.kernels[chosen]);
  }

  private choose(loaded: Loaded, kernel: Disassembly["kernels"][0] | undefined): void {
    this.kernel = kernel?.name ?? "";
    this.onkernel(loaded, kernel);
  }

  private fail(e: unknown): void {
    this.close();
    this.body.replaceChildren(h("div", { class: "fault", role: "alert" }, e instanceof Error ? e.message : String(e)));
  }

  close(): void {
    this.loaded = null;
    this.kernel = "";
    this.drop.hidden = false;
    this.body.replaceChildren();
  }

  private show(loaded: Loaded, d: Disassembly, chosen: number): void {
    const { name } = loaded;
    const kernels = d.kernels.map((k) =>
      h(
        "li",
        {},
        h("b", {}, k.source_name),
        ` wave${k.wave}, ${k.vgprs} VGPRs, ${k.lds} bytes of LDS; takes ${k.args.map((a) => a.text).join(", ") || "unspecified arguments"}`,
      ),
    );
    this.body.replaceChildren(
      h(
        "h3",
        {},
        name,
        h("span", { class: "chip" }, d.arch),
        loaded.compiled ? null : button("Close", "Back to the text", () => this.onclose()),
      ),
      d.kernels.length > 1
        ? h(
            "label",
            {},
            "Run launches ",
            select(
              "Kernel to run",
              d.kernels.map((k, at): [string, string] => [String(at), k.source_name]),
              String(chosen),
              (at) => this.choose(loaded, d.kernels[Number(at)]),
            ),
          )
        : "",
      h("ul", {}, ...kernels, ...(d.more ? [h("li", { class: "dim" }, `${d.more} more`)] : [])),
      ...(loaded.compiled ? [this.listing.element, this.below] : []),
    );
    this.listing.show(d);
    this.drop.hidden = loaded.compiled;
  }

  /** Replaced by the page. */
  onclose: () => void = () => this.close();
}
