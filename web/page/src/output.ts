// The outputs of a run: tables, pictures, plots.

import { fill, h, select } from "./dom";
import { placeName, type OnPlace } from "./findings";
import type { Output, RunResult } from "./protocol";
import { bytes, colour, element, format, numbers, range } from "./values";

type Mode = "table" | "picture" | "plot";

/** The number of table cells that are shown initially. */
const CELLS = 2048;

/** The last view of an output, by name. */
const chosen = new Map<string, Mode>();

/** The values that are white, of components of pixels. */
const WHITE: Record<string, number> = { u8: 255, u16: 65535, i8: 127, i16: 32767 };

function dimensions(output: Output, count: number): [width: number, height: number] {
  const { shape, channels = 1 } = output;
  if (channels > 1) {
    const width = shape[shape.length - 2];
    return [width, Math.ceil(count / Math.max(1, width * channels))];
  }
  if (shape.length >= 2) {
    const width = shape[shape.length - 1];
    return [width, Math.ceil(count / Math.max(1, width))];
  }
  const width = Math.ceil(Math.sqrt(count));
  return [width, Math.ceil(count / Math.max(1, width))];
}

function natural(output: Output, count: number): Mode {
  if (output.channels !== undefined) return "picture";
  const [width, height] = dimensions(output, count);
  return output.shape.length >= 2 && width >= 24 && height >= 12 ? "picture" : "table";
}

/** Shows all outputs of a run. `onPlace` goes to a place of the kernel. */
export function showRun(panel: HTMLElement, result: RunResult, seconds: number, onPlace: OnPlace): void {
  const { fault, instructions, waves, launch } = result;
  const speed = instructions !== null && seconds > 0 ? `, ${(instructions / seconds / 1e6).toPrecision(3)} M/s` : "";
  const counts =
    instructions === null
      ? ""
      : `${instructions.toLocaleString("en")} wave-instructions of ${waves} waves in ${(1000 * seconds).toPrecision(3)} ms${speed}`;
  fill(
    panel,
    h(
      "p",
      { class: "summary", "data-test": "summary" },
      `${launch.arch}, wave${launch.wave}, grid ${launch.grid.join("×")}, workgroup ${launch.block.join("×")}. ${counts}`,
    ),
    fault &&
      h(
        "div",
        { class: "fault", role: "alert" },
        h("b", {}, fault.kind),
        `: ${fault.message} `,
        h("button", { type: "button", class: "link", onclick: () => onPlace(fault) }, placeName(fault)),
        h("pre", {}, fault.rendered),
      ),
    ...result.outputs.map(showOutput),
    result.outputs.length === 0 &&
      h("p", { class: "dim" }, "The kernel has no outputs: arguments whose names begin with out_."),
    result.printed && h("section", {}, h("h3", {}, "Printed"), h("pre", { "data-test": "printed" }, result.printed)),
  );
}

/** One array, as table, picture or plot. */
export function showOutput(output: Output): HTMLElement {
  const data = bytes(output.data);
  const values = numbers(output.dtype, data);
  const body = h("div", { class: "output-body" });
  let mode = chosen.get(output.name) ?? natural(output, values.length);
  const draw = () => {
    if (mode === "table") body.replaceChildren(table(output, data, values));
    else if (mode === "picture") body.replaceChildren(picture(output, values));
    else body.replaceChildren(plot(output, values));
  };
  const pick = select(
    `Show ${output.name} as`,
    [
      ["table", "Table"],
      ["picture", "Picture"],
      ["plot", "Plot"],
    ],
    mode,
    (value) => {
      mode = value as Mode;
      chosen.set(output.name, mode);
      draw();
    },
  );
  draw();
  const cut =
    data.length < output.bytes ? h("p", { class: "dim" }, `The first ${data.length} of ${output.bytes} bytes.`) : null;
  return h(
    "section",
    { class: "output", "data-output": output.name },
    h("h3", {}, h("b", {}, output.name), h("span", { class: "dim" }, `: ${output.type}`), pick),
    body,
    cut,
  );
}

function table(output: Output, data: Uint8Array, values: Float64Array, most = CELLS): HTMLElement {
  const [full, rows] = dimensions(output, values.length);
  const body = h("tbody");
  const shown = Math.min(values.length, most);
  // Sixteen columns if they fit half a screen.
  let longest = 0;
  for (let k = 0; k < Math.min(shown, 256); k++)
    longest = Math.max(longest, element(output.dtype, data, values, k).length);
  const columns = output.shape.length >= 2 ? full : longest <= 3 ? 16 : 8;
  for (let at = 0; at < shown; at += columns) {
    const row = h("tr", {}, h("th", { scope: "row" }, String(output.shape.length >= 2 ? at / columns : at)));
    for (let k = at; k < Math.min(at + columns, shown); k++)
      row.append(h("td", {}, element(output.dtype, data, values, k)));
    body.append(row);
  }
  const wrap = h(
    "div",
    { class: "scroll" },
    h("table", { class: "values", "aria-label": `${output.name}, ${rows} rows` }, body),
  );
  if (shown < values.length) {
    const more = h(
      "button",
      { type: "button", onclick: () => wrap.replaceWith(table(output, data, values, most * 16)) },
      `Show more (${shown} of ${values.length})`,
    );
    wrap.append(more);
  }
  return wrap;
}

function picture(output: Output, values: Float64Array): HTMLElement {
  const { channels = 1 } = output;
  const [natural] = dimensions(output, values.length);
  const caption = h("p", { class: "dim", "aria-live": "off" });
  const canvas = h("canvas", { class: "picture", role: "img", "aria-label": `${output.name} as a picture` });
  let width = natural;
  const [low, high] = range(values);
  // If most elements are small, a linear scale would show only two colours.
  const sorted = Float64Array.from(values).sort();
  const white = WHITE[output.dtype] ?? (/^(b?f)/.test(output.dtype) ? 1 : Math.max(high, 1));
  let palette = channels > 1 ? "pixels" : low >= 0 && high > 16 * Math.max(sorted[values.length >> 1], 1) ? "log" : "scale";
  const draw = () => {
    const height = Math.max(1, Math.ceil(values.length / channels / width));
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d");
    if (!context) return;
    const image = context.createImageData(width, height);
    for (let i = 0; i * channels < values.length; i++) {
      const v = values[i * channels];
      let rgb: number[];
      if (palette === "pixels")
        rgb = [0, 1, 2].map((k) => (k < channels ? Math.round((255 * values[i * channels + k]) / white) : 0));
      else if (palette === "rgba") rgb = [v & 255, (v >>> 8) & 255, (v >>> 16) & 255];
      else {
        const t = high > low ? (v - low) / (high - low) : 0;
        rgb =
          palette === "grey"
            ? [t, t, t].map((x) => Math.round(255 * x))
            : colour(palette === "log" ? Math.log1p(255 * t) / Math.log(256) : t);
      }
      image.data.set([...rgb, 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
    // Small pictures are enlarged by integral factors, so that elements remain square.
    const scale = Math.max(1, Math.floor(600 / Math.max(width, height)));
    canvas.style.width = `${width * scale}px`;
    caption.textContent = `${width}×${height}, from ${format(output.dtype, low)} to ${format(output.dtype, high)}`;
  };
  canvas.addEventListener("mousemove", (e) => {
    const box = canvas.getBoundingClientRect();
    const x = Math.floor(((e.clientX - box.left) / box.width) * canvas.width);
    const y = Math.floor(((e.clientY - box.top) / box.height) * canvas.height);
    const at = (y * width + x) * channels;
    const pixel = Array.from(values.subarray(at, at + channels), (v) => format(output.dtype, v));
    if (pixel.length > 0) caption.textContent = `[${y}, ${x}] = ${pixel.join(", ")}`;
  });
  const colours = select(
    "Colours",
    [
      ["scale", "Scale"],
      ["log", "Log scale"],
      ["grey", "Grey"],
      ["rgba", "RGB bytes"],
      ...(channels > 1 ? [["pixels", "Pixels"] as [string, string]] : []),
    ],
    palette,
    (value) => {
      palette = value;
      draw();
    },
  );
  const size = h("input", {
    type: "number",
    min: "1",
    max: "4096",
    value: String(natural),
    "aria-label": "Width",
    title: "Width",
    onchange: () => {
      width = Math.min(4096, Math.max(1, Number(size.value) || natural));
      draw();
    },
  });
  draw();
  return h("figure", {}, canvas, h("figcaption", {}, caption, colours, " width ", size));
}

const SVG = "http://www.w3.org/2000/svg";

function svg(tag: string, props: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, String(value));
  element.textContent = text;
  return element;
}

/** One line per row of the innermost dimension: at most eight rows, also distinguished by dash patterns. */
function plot(output: Output, values: Float64Array): HTMLElement {
  const [w, height, left, bottom] = [560, 220, 64, 20];
  const columns = output.shape.length >= 2 ? dimensions(output, values.length)[0] : values.length;
  const rows = Math.min(8, Math.max(1, Math.ceil(values.length / Math.max(1, columns))));
  const [low, high] = range(values.subarray(0, rows * columns));
  const root = svg("svg", {
    viewBox: `0 0 ${w} ${height}`,
    class: "plot",
    role: "img",
    "aria-label": `${output.name} from ${low} to ${high}`,
  });
  const x = (i: number) => left + ((w - left - 8) * i) / Math.max(1, columns - 1);
  const y = (v: number) =>
    height - bottom - ((height - bottom - 8) * (v - low)) / Math.max(high - low, Number.MIN_VALUE);
  for (const k of [0, 0.25, 0.5, 0.75, 1]) {
    const v = low + k * (high - low);
    root.append(svg("line", { x1: left, x2: w - 8, y1: y(v), y2: y(v), class: "grid" }));
    root.append(svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, format("f16", v)));
  }
  for (const k of [0, 0.5, 1]) {
    const i = Math.round(k * (columns - 1));
    root.append(
      svg("text", { x: x(i), y: height - 5, "text-anchor": k === 0 ? "start" : k === 1 ? "end" : "middle" }, String(i)),
    );
  }
  // With more points than pixels, draws the extremes of each bucket.
  const step = Math.max(1, Math.floor(columns / 1000));
  for (let row = 0; row < rows; row++) {
    const points: string[] = [];
    for (let i = 0; i < columns; i += step) {
      const bucket = values.subarray(
        row * columns + i,
        Math.min(row * columns + i + step, (row + 1) * columns, values.length),
      );
      for (const v of step > 1 ? range(bucket) : bucket)
        if (Number.isFinite(v)) points.push(`${x(i).toFixed(1)},${y(v).toFixed(1)}`);
    }
    root.append(svg("polyline", { points: points.join(" "), class: `series s${row}` }));
  }
  const figure = h("figure", {});
  figure.append(root);
  if (output.shape.length >= 2)
    figure.append(h("figcaption", { class: "dim" }, `${rows} of ${Math.ceil(values.length / columns)} rows`));
  return figure;
}
