// The tab "Object": a code object is dropped, shown as assembly, and run with arguments.

import { button, h } from "./dom";
import type { Engine } from "./engine";
import type { Disassembly } from "./protocol";

export interface Loaded {
  name: string;
  base64: string;
}

export class Objects {
  readonly element: HTMLElement;
  loaded: Loaded | null = null;
  private body = h("div", {});
  private drop: HTMLElement;

  constructor(
    private engine: Engine,
    private onload: (loaded: Loaded, disassembly: Disassembly) => void,
  ) {
    const file = h("input", {
      type: "file",
      id: "object-file",
      "aria-label": "Code object",
      onchange: () => {
        const chosen = file.files?.[0];
        if (chosen) void this.open(chosen);
      },
    });
    this.drop = h(
      "label",
      { class: "drop", for: "object-file" },
      "Drop a code object here (an ELF file for gfx11 or gfx12, or a bundle), or choose one: ",
      file,
    );
    this.element = h("div", { class: "objects" }, this.drop, this.body);
    for (const type of ["dragenter", "dragover"])
      this.element.addEventListener(type, (e) => (e.preventDefault(), this.drop.classList.add("over")));
    this.element.addEventListener("dragleave", () => this.drop.classList.remove("over"));
    this.element.addEventListener("drop", (e) => {
      e.preventDefault();
      this.drop.classList.remove("over");
      const dropped = e.dataTransfer?.files[0];
      if (dropped) void this.open(dropped);
    });
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
      const disassembly = await this.engine.request({ op: "disassemble", object: base64 }, 20000);
      this.loaded = { name: file.name, base64 };
      this.show(file.name, disassembly);
      this.onload(this.loaded, disassembly);
    } catch (e) {
      this.close();
      this.body.replaceChildren(
        h("div", { class: "fault", role: "alert" }, e instanceof Error ? e.message : String(e)),
      );
    }
  }

  close(): void {
    this.loaded = null;
    this.body.replaceChildren();
  }

  private show(name: string, d: Disassembly): void {
    const kernels = d.kernels.map((k) =>
      h(
        "li",
        {},
        h("b", {}, k.name),
        ` wave${k.wave}, ${k.vgprs} VGPRs, ${k.lds} bytes of LDS; takes ${k.args.map((a) => `${a.name ?? "?"} (${a.kind}, ${a.size} bytes)`).join(", ") || "what its code says"}`,
      ),
    );
    this.body.replaceChildren(
      h(
        "h3",
        {},
        name,
        h("span", { class: "chip" }, d.arch),
        button("Close", "Back to the text", () => this.onclose()),
      ),
      h("ul", {}, ...kernels),
      h("pre", { class: "listing", "data-test": "listing", tabIndex: 0 }, d.listing),
    );
  }

  /** Replaced by the page. */
  onclose: () => void = () => this.close();
}
