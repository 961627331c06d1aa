const us = t => t >= 1e6 ? (t / 1e6).toFixed(3) + " s" : t >= 1e3 ? (t / 1e3).toFixed(3) + " ms" : t.toFixed(2) + " us";
const si = v => { for (const [f, p] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (v >= f) return (v / f).toFixed(2) + " " + p; return v.toFixed(2) + " "; };
$("label").textContent = D.label;
fact("predicted time", us(D.microseconds.predicted), us(D.microseconds.low) + " to " + us(D.microseconds.high));
fact("bound by", D.bound.by, D.bound.why);
fact("occupancy", D.occupancy.waves_per_simd + " of " + D.occupancy.most + " waves a SIMD", "limited by " + D.occupancy.limit);
fact("workgroups sampled", D.sample.workgroups + " of " + D.sample.of_workgroups, D.sample.error ? "sampling error " + (100 * D.sample.error).toFixed(1) + " %" : "");
const bars = (id, list) => { for (const [name, share] of list) { el($(id), "span", name); const b = el($(id), "span", undefined, { className: "bar" }); el(b, "i").style.width = Math.min(100, 100 * share) + "%"; el($(id), "span", (100 * share).toFixed(1) + " %"); } };
const stalled = Object.values(D.stalls).reduce((a, b) => a + b, 0);
const total = D.instructions.reduce((a, r) => a + r.clocks, 0) || 1;
bars("stalls", [["issue", 1 - stalled / total], ...Object.entries(D.stalls).map(([n, v]) => [n, v / total])].filter(x => x[1] > 0.001));
bars("busy", [...Object.entries(D.units).filter(x => x[1] > 0.001), ...D.levels.map(l => [l.name, l.busy])]);
{
  const R = D.roofline, W = 620, H = 320, svg = draw($("roofline"), "svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "roofline" });
  const x0 = -3, x1 = 3, top = Math.log10(R.vector_roof) + 0.4, low = top - 5;
  const X = v => 60 + (Math.min(x1, Math.max(x0, Math.log10(Math.max(v, 1e-9)))) - x0) / (x1 - x0) * (W - 80);
  const Y = v => 15 + (top - Math.max(low, Math.log10(Math.max(v, 1)))) / (top - low) * (H - 55);
  for (let e = Math.ceil(low); e <= top; e += 1) { const y = Y(10 ** e); draw(svg, "line", { x1: 60, x2: W - 20, y1: y, y2: y, stroke: "var(--line)" }); draw(svg, "text", { x: 55, y: y + 4, "text-anchor": "end" }, si(10 ** e).replace(".00", "")); }
  draw(svg, "text", { x: 4, y: 11 }, "FLOP/s");
  const knee = R.vector_roof / R.memory_roof;
  const points = [[10 ** x0, 10 ** x0 * R.memory_roof], [knee, R.vector_roof], [10 ** x1, R.vector_roof]];
  for (let e = x0; e <= x1; e++) { draw(svg, "line", { x1: X(10 ** e), x2: X(10 ** e), y1: 15, y2: H - 40, stroke: "var(--line)" }); draw(svg, "text", { x: X(10 ** e), y: H - 24, "text-anchor": "middle" }, "1e" + e); }
  draw(svg, "polyline", { points: points.map(p => X(p[0]) + "," + Y(p[1])).join(" "), fill: "none", stroke: "var(--fg)", "stroke-width": 2 });
  draw(svg, "text", { x: W - 20, y: Y(R.vector_roof) - 5, "text-anchor": "end" }, "f32 vector " + si(R.vector_roof) + "FLOP/s");
  draw(svg, "text", { x: 64, y: Y(10 ** -1.5 * R.memory_roof) - 14 }, "memory " + si(R.memory_roof) + "B/s");
  draw(svg, "circle", { cx: X(R.intensity), cy: Y(R.flop_per_second), r: 6, fill: "var(--accent)" });
  draw(svg, "text", { x: X(R.intensity) + 9, y: Y(R.flop_per_second) + 4 }, si(R.flop_per_second) + "FLOP/s");
  draw(svg, "text", { x: W / 2, y: H - 6, "text-anchor": "middle" }, "FLOP per byte of memory");
}
const hottest = Math.max(...D.instructions.map(r => r.clocks), 1);
const heat = share => `rgba(var(--hot), ${(0.75 * Math.sqrt(share)).toFixed(3)})`;
const select = line => { for (const d of document.querySelectorAll("[data-line]")) d.classList.toggle("on", d.dataset.line === line); const first = document.querySelector(`#assembly [data-line="${CSS.escape(line)}"]`); if (first) first.scrollIntoView({ block: "nearest" }); };
const choose = (d, line) => { d.dataset.line = line; d.tabIndex = 0; d.onclick = () => select(line); d.onkeydown = e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); select(line); } }; };
{
  const perLine = new Map();
  for (const r of D.instructions) if (r.line) { const k = r.file + ":" + r.line; perLine.set(k, (perLine.get(k) || 0) + r.clocks); }
  const most = Math.max(...perLine.values(), 1);
  for (const s of D.sources) {
    if (D.sources.length > 1) el($("source"), "div", s.name);
    s.text.split("\n").forEach((text, at) => {
      const key = s.name + ":" + (at + 1), own = perLine.get(key) ?? perLine.get(":" + (at + 1));
      const d = el($("source"), "div"); el(d, "span", at + 1, { className: "num" }); d.append(text || " ");
      if (own !== undefined) { d.style.background = heat(own / most); d.title = own.toFixed(0) + " clocks of waves"; choose(d, key); }
    });
  }
  if (!D.sources.length) el($("source"), "div", "no source: compile with -g, or run where the source files are");
  for (const r of D.instructions) {
    const d = el($("assembly"), "div"); el(d, "span", r.address, { className: "num" }); d.append(r.instruction);
    d.style.background = heat(r.clocks / hottest); d.title = (r.clocks / r.executed).toFixed(1) + " clocks each, class " + r.class + r.remarks.map(m => "\n" + m.text).join("");
    choose(d, (D.sources.length === 1 ? D.sources[0].name : r.file) + ":" + r.line);
  }
}
{
  const columns = [["address", r => r.address], ["instruction", r => r.instruction], ["class", r => r.class], ["executed", r => r.executed, 0], ["clocks", r => r.clocks / r.executed, 1], ["stalled", r => r.stalled / r.executed, 1],
    ["share %", r => 100 * r.clocks / total, 1], ["lines", r => r.lines_per_access, 1], ["conflicts", r => r.lds_conflict_clocks, 1], ["lost lanes", r => r.lost_lanes, 1], ["mostly", r => r.stalled ? Object.entries(r.stalls).sort((a, b) => b[1] - a[1])[0][0] : ""], ["remarks", r => r.remarks.map(m => m.rule).join(" ")]];
  const left = at => at < 3 || at >= 10, wraps = columns.length - 1;
  const head = el($("table").tHead, "tr"), body = $("table").tBodies[0];
  let by = -1, up = false;
  const fill = () => {
    const rows = [...D.instructions];
    if (by >= 0) rows.sort((a, b) => { const x = columns[by][1](a), y = columns[by][1](b); return (typeof x === "number" ? x - y : String(x).localeCompare(String(y))) * (up ? 1 : -1); });
    body.replaceChildren();
    for (const r of rows) { const tr = el(body, "tr"); columns.forEach(([, of, digits], at) => { const v = of(r); el(tr, "td", typeof v !== "number" ? v : v ? v.toFixed(digits) : "", { className: at === wraps ? "wrap" : left(at) ? "code" : "" }); }); tr.title = r.remarks.map(m => m.text).join("\n"); tr.style.background = heat(r.clocks / hottest * 0.5); }
  };
  columns.forEach(([name], at) => { const th = el(head, "th", undefined, { className: left(at) ? "text" : "", scope: "col" }); const b = el(th, "button", name); b.onclick = () => { up = by === at ? !up : left(at); by = at; for (const h of head.children) h.removeAttribute("aria-sort"); th.setAttribute("aria-sort", up ? "ascending" : "descending"); fill(); }; });
  fill();
}
{
  const colours = ["#c0392b", "#d35400", "#8e44ad", "#16a085", "#f1c40f", "#2980b9", "#7f8c8d", "#e84393", "#2c8a3c", "#6d4c41"];
  D.reasons.forEach((name, at) => { const s = el($("legend"), "span", " \u25a0 "); s.style.color = colours[at]; $("legend").append(name); });
  const waves = [...new Set(D.timeline.map(s => s[0] + " " + s[2]))], end = Math.max(...D.timeline.map(s => s[4]), 1);
  const simd = new Map(D.timeline.map(s => [s[0] + " " + s[2], s[1]]));
  waves.sort((a, b) => { const [p, w] = a.split(" ").map(Number), [q, v] = b.split(" ").map(Number); return p - q || simd.get(a) - simd.get(b) || w - v; });
  const LEFT = 110, TOP = 18, EACH = waves.length > 64 ? 6 : 12, W = 1200, X = clocks => LEFT + clocks / end * (W - LEFT - 20);
  const rows = new Map(waves.map((w, at) => [w, TOP + at * EACH]));
  const svg = draw($("timeline"), "svg", { viewBox: `0 0 ${W} ${TOP + Math.max(1, waves.length) * EACH + 4}`, width: W, role: "img", "aria-label": "timeline" });
  const step = 10 ** Math.floor(Math.log10(end)) / (end / 10 ** Math.floor(Math.log10(end)) < 3 ? 5 : 1);
  for (let at = 0; at <= end; at += step) { draw(svg, "line", { x1: X(at), x2: X(at), y1: TOP - 3, y2: TOP + waves.length * EACH, stroke: "var(--line)" }); draw(svg, "text", { x: X(at), y: 11, "text-anchor": "middle" }, at.toFixed(0)); }
  draw(svg, "text", { x: 4, y: 11 }, "clocks");
  let group = "", below = 0;
  for (const w of waves) {
    const name = D.processor + " " + w.split(" ")[0] + " SIMD " + simd.get(w), y = rows.get(w);
    if (name !== group && y >= below) { draw(svg, "text", { x: 4, y: y + EACH - 2 }, name); below = y + 10; }
    group = name;
  }
  for (const [p, s, w, from, to, , why] of D.timeline) { const r = draw(svg, "rect", { x: X(from), y: rows.get(p + " " + w), width: Math.max(0.5, X(to) - X(from)), height: EACH - 1, fill: colours[why ?? 6] }); draw(r, "title", {}, `${D.processor} ${p}, SIMD ${s}, wave ${w}: ${D.reasons[why ?? 6]}, ${(to - from).toFixed(0)} clocks`); }
  if (!waves.length) el($("timeline"), "div", "no wave has waited");
}
