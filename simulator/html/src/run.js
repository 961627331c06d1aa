const place = s => (s.line ? (s.file ? s.file + ":" : "line ") + s.line : "pc 0x" + s.pc.toString(16));
const who = s => "workgroup (" + s.workgroup.join(",") + "), wave " + s.wave + (s.lane == null ? "" : ", lane " + s.lane);
const grouped = n => n.toString().replace(/\B(?=(\d{3})+$)/g, " ");

// The picture of a finding with two program points: both lanes, what they access, and the order that is missing.
const picture = (parent, f) => {
  const o = f.other, W = 760, H = f.address == null ? 108 : 208;
  const svg = draw(parent, "svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img", "aria-label": `${o.role} and ${f.kind}`, class: "pair" });
  // As many characters as fit in a box.
  const fitting = text => (text.length > 37 ? text.slice(0, 36) + "…" : text);
  const box = (x, title, s) => {
    draw(svg, "rect", { x, y: 8, width: 290, height: 92, rx: 6, fill: "none", stroke: "var(--fg)" });
    draw(svg, "text", { x: x + 10, y: 27, "font-weight": "bold" }, title);
    draw(svg, "text", { x: x + 10, y: 45 }, who(s));
    draw(svg, "text", { x: x + 10, y: 63 }, place(s));
    draw(svg, "text", { x: x + 10, y: 83, style: "font-family: ui-monospace, monospace" }, fitting(s.text));
  };
  box(8, o.role, o);
  box(W - 298, f.check + ": " + f.kind, f);
  draw(svg, "line", { x1: 300, y1: 54, x2: W - 300, y2: 54, stroke: "var(--bad)", "stroke-width": 2, "stroke-dasharray": "6 5", class: "missing" });
  const [over, under] = f.edge ?? ["no order", "between them"];
  draw(svg, "text", { x: W / 2, y: 45, "text-anchor": "middle", style: "fill: var(--bad)" }, over);
  draw(svg, "text", { x: W / 2, y: 71, "text-anchor": "middle", style: "fill: var(--bad)" }, under);
  if (f.address != null) {
    draw(svg, "rect", { x: W / 2 - 110, y: 148, width: 220, height: 44, rx: 6, fill: "none", stroke: "var(--accent)" });
    draw(svg, "text", { x: W / 2, y: 175, "text-anchor": "middle" }, "address 0x" + f.address);
    for (const x of [150, W - 150]) draw(svg, "line", { x1: x, y1: 100, x2: W / 2 + (x < W / 2 ? -110 : 110), y2: 168, stroke: "var(--accent)", "stroke-width": 2 });
  }
};

const findings = (section, list) => {
  list.forEach((f, at) => {
    const card = el(section, "div", undefined, { className: "finding " + f.severity, id: `finding-${section.id}-${at}` });
    el(card, "p").append(Object.assign(document.createElement("b"), { textContent: f.check + ": " }), f.message);
    if (f.text) el(el(card, "p"), "code", `at ${place(f)}: ${f.text}   (${who(f)})`);
    if (f.other) el(el(card, "p"), "code", `${f.other.role} ${place(f.other)}: ${f.other.text}   (${who(f.other)})`);
    if (f.hint) el(card, "p", f.hint);
    if (f.count > 1) el(card, "p", `seen ${f.count} times; the first is shown`);
    if (f.order) el(card, "p", "found with --order " + f.order);
    if (f.other) picture(card, f);
  });
};

const sources = (section, input) => {
  const counts = new Map();
  for (const i of input.activity?.instructions ?? []) if (i.line) { const key = (i.file ?? "") + ":" + i.line; counts.set(key, (counts.get(key) || 0) + i.count); }
  const most = Math.max(1, ...counts.values());
  const of = (name, line, s) => s.line === line && (!s.file || s.file === name || input.sources.length === 1);
  for (const s of input.sources) {
    el(section, "h3", s.name);
    const pane = el(section, "div", undefined, { className: "pane source", tabIndex: 0 });
    pane.setAttribute("role", "region");
    pane.setAttribute("aria-label", "source of " + s.name);
    s.text.split("\n").forEach((text, at) => {
      const line = at + 1, n = counts.get(s.name + ":" + line) ?? counts.get(":" + line);
      const row = el(pane, "div");
      el(row, "span", line, { className: "num" });
      row.append(text || " ");
      if (n) { row.style.background = `rgba(var(--hot), ${(0.5 * Math.sqrt(n / most)).toFixed(3)})`; row.title = grouped(n) + " executions"; }
      for (const f of input.findings ?? []) {
        if (of(s.name, line, f)) el(pane, "div", `${f.check}: ${f.message}`, { className: "here " + f.severity });
        if (f.other && of(s.name, line, f.other)) el(pane, "div", `${f.other.role} of ${f.check} at ${place(f)}`, { className: "here note" });
      }
    });
  }
};

const maps = (section, input) => {
  const key = el(section, "p", undefined, { className: "key" });
  for (const [name, colour] of [["loads", "#3b82f6"], ["stores", "#f59e0b"], ["both", "#a855f7"], ["untouched", "var(--line)"]]) { el(key, "i").style.background = colour; key.append(name); }
  for (const a of input.activity.allocations) {
    const touched = a.bins.filter(b => b[1] + b[2]).length;
    el(section, "h3", `${a.name}: ${grouped(a.bytes)} bytes${a.address ? " at 0x" + a.address : ""}`);
    const map = el(section, "div", undefined, { className: "map" });
    map.setAttribute("role", "img");
    map.setAttribute("aria-label", `accesses of ${a.name}: ${touched} of ${Math.ceil(a.bytes / a.bin)} parts of ${a.bin} bytes`);
    const bins = new Map(a.bins.map(b => [b[0], b]));
    const marked = new Set();
    for (const f of input.findings ?? []) if (f.address != null && a.address) { const d = Number(BigInt("0x" + f.address) - BigInt("0x" + a.address)); if (d >= 0 && d < a.bytes) marked.add(Math.floor(d / a.bin)); }
    for (let at = 0; at * a.bin < a.bytes; at++) {
      const b = bins.get(at), cell = el(map, "i");
      const [, loads, stores, groups, more] = b ?? [at, 0, 0, [], false];
      if (loads || stores) cell.className = loads && stores ? "rw" : loads ? "r" : "w";
      if (marked.has(at)) cell.classList.add("f");
      cell.title = `bytes ${at * a.bin} to ${Math.min(a.bytes, (at + 1) * a.bin) - 1}: ${loads} loads, ${stores} stores` + (groups.length ? "; workgroups " + groups.map(g => `(${g.join(",")})`).join(" ") + (more ? " and more" : "") : "") + (marked.has(at) ? "; a finding is here" : "");
    }
  }
  if (input.activity.elsewhere) el(section, "p", grouped(input.activity.elsewhere) + " accesses were elsewhere.");
};

// A line over time; `value` is between 0 and `top`.
const chart = (section, title, unit, top, points) => {
  const W = 1200, H = 150;
  el(section, "h3", title);
  const svg = draw(section, "svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img", "aria-label": title, class: "chart" });
  const X = at => 50 + at / Math.max(1, points.length) * (W - 60), Y = v => 10 + (1 - v / (top || 1)) * (H - 40);
  // A middle that rounds to one of the ends says nothing.
  const marks = [0, top / 2, top].filter(v => v !== top / 2 || ![0, top].some(end => unit(end) === unit(v)));
  for (const v of marks) { draw(svg, "line", { x1: 50, x2: W - 10, y1: Y(v), y2: Y(v), stroke: "var(--line)" }); draw(svg, "text", { x: 44, y: Y(v) + 4, "text-anchor": "end" }, unit(v)); }
  let path = "", open = false;
  points.forEach((v, at) => { if (v == null) { open = false; return; } path += `${open ? "L" : "M"}${X(at)},${Y(v)}L${X(at + 1)},${Y(v)}`; open = true; });
  draw(svg, "path", { d: path, fill: "none", stroke: "var(--accent)", "stroke-width": 2 });
  draw(svg, "text", { x: W / 2, y: H - 6, "text-anchor": "middle" }, "instructions of waves, in the order of execution");
};

const table = (section, value, path = "") => {
  const rows = [];
  // Keys are words with underscores, but for the names of instructions and of outputs.
  const words = (name, key) => (["opcodes", "outcomes"].includes(name) ? key : key.replaceAll("_", " "));
  const walk = (v, name) => { if (v && typeof v === "object" && !Array.isArray(v)) for (const k in v) walk(v[k], name ? name + " " + words(name, k) : words("", k)); else rows.push([name, v]); };
  walk(value, path);
  const body = el(section, "table");
  for (const [name, v] of rows) { const tr = el(body, "tr"); el(tr, "td", name, { className: "text" }); el(tr, "td", typeof v === "number" ? (Number.isInteger(v) ? grouped(v) : v.toFixed(4)) : v === null ? "none" : String(v)); }
};

$("label").textContent = D.label ?? "";
D.inputs.forEach((input, at) => {
  const part = title => { const s = el($("inputs"), "section", undefined, { id: `${title.replaceAll(" ", "-").toLowerCase()}-${at}` }); el(s, "h2", D.inputs.length > 1 ? `${input.name}: ${title.toLowerCase()}` : title); return s; };
  if (input.summary) el(part("Result"), "p", input.summary, { className: (input.findings ?? []).some(f => f.severity === "error") ? "bad" : "good" });
  if (input.findings?.length) findings(part("Findings"), input.findings);
  if (input.report) el(part("Report"), "pre", input.report);
  if (input.sources?.length) sources(part("Source"), input);
  if (input.activity) {
    maps(part("Memory"), input);
    const time = part("Over time"), t = input.activity.time;
    chart(time, "Active lanes of vector instructions", v => Math.round(100 * v) + " %", 1, t.map(b => (b[2] ? b[1] / b[2] : null)));
    chart(time, "Waves that have not ended", v => Math.round(v), Math.max(1, ...t.map(b => b[3])), t.map(b => b[3]));
  }
  if (input.stats) table(part("Statistics"), input.stats);
});
