// Measures the page in Chromium: first paint, readiness, download, speed of a kernel, time of a step, memory over many steps.
//
//   node test/figures.mjs [MINUTES of stepping, 1 without]
//
// It fails if a figure exceeds its bound. Times are minima of several runs, since other load only increases them.

import { launch, open, serve, test, example, write } from "./lib.mjs";
import { readFileSync } from "node:fs";

const minutes = Number(process.argv[2] ?? 1);
const browser = await launch();
if (!browser) {
  console.log("skipped: there is no Chromium (CHROMIUM=PATH names one)");
  process.exit(0);
}
const server = await serve();
let beyond = 0;
/** Prints a figure, and whether it is within its bound. */
function figure(what, value, most, unit) {
  const good = value <= most;
  if (!good) beyond++;
  console.log(`${what}: ${Number(value.toPrecision(3))} ${unit} (at most ${most})${good ? "" : ": BEYOND"}`);
}
const visits = [];
// The first visit warms up the browser.
for (const visit of ["first visit", "second visit", "third visit"]) {
  const before = server.transferred.bytes;
  const started = Date.now();
  const page = await open(browser, server.url);
  const ready = Date.now() - started;
  const paint = await page.evaluate(() =>
    Math.round(performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1),
  );
  console.log(
    `${visit}: first paint ${paint} ms, ready ${ready} ms, ${((server.transferred.bytes - before) / 1e6).toFixed(2)} MB compressed`,
  );
  visits.push({ paint, ready, mb: (server.transferred.bytes - before) / 1e6 });
  await page.context().close();
}
const best = (key) => Math.min(...visits.map((v) => v[key]));
figure("download", visits[0].mb, 2.5, "MB compressed");
figure("first paint", best("paint"), 1000, "ms");
figure("ready", best("ready"), 2000, "ms");

const page = await open(browser, server.url);
const text = readFileSync(new URL("../examples/mandelbrot.rdna", import.meta.url), "utf8");
await write(page, text.replace("LIMIT = 128", "LIMIT = 4000"));
for (let i = 0; i < 3; i++) {
  await test(page, "run").click();
  await page.waitForFunction(
    (n) =>
      document.querySelector('[data-test="summary"]')?.dataset.seen !== String(n) &&
      !document.body.classList.contains("busy"),
    i,
    { timeout: 120000 },
  );
  console.log(`mandelbrot: ${await test(page, "summary").textContent()}`);
  await page.evaluate((n) => (document.querySelector('[data-test="summary"]').dataset.seen = String(n)), i + 1);
}

await example(page, "divergence");
await test(page, "start").click();
await test(page, "where").getByText("Step 0").waitFor();
/** Steps and waits for the display inside the page, to exclude the time of the test's own messages. */
const steps = (n) =>
  page.evaluate(async (n) => {
    const times = [];
    const where = document.querySelector('[data-test="where"]');
    for (let i = 0; i < n; i++) {
      const back = document.getElementById("status").textContent.includes("ended");
      const started = performance.now();
      const shown = new Promise((resolve) =>
        new MutationObserver((_, observer) => (observer.disconnect(), resolve())).observe(where, { childList: true }),
      );
      document.querySelector(`[data-test="${back ? "first" : "step"}"]`).click();
      await shown;
      times.push(performance.now() - started);
    }
    return times.sort((a, b) => a - b);
  }, n);
await steps(200);
const rounds = [];
for (let i = 0; i < 5; i++) rounds.push(await steps(200));
for (const times of rounds)
  console.log(`a step: ${times[100].toFixed(1)} ms in the middle, ${times[190].toFixed(1)} ms in 95 of 100`);
figure("a step, in the middle", Math.min(...rounds.map((times) => times[100])), 16, "ms");

const cdp = await page.context().newCDPSession(page);
const heap = async () => {
  await cdp.send("HeapProfiler.collectGarbage");
  const { usedSize } = await cdp.send("Runtime.getHeapUsage");
  const { nodes } = await cdp.send("Memory.getDOMCounters");
  // The memory of the engine that runs kernels; the other one only serves the editor.
  const workers = await Promise.all(page.workers().map((worker) => worker.evaluate(() => self.memoryBytes?.() ?? 0)));
  return { mb: usedSize / 1e6, nodes, wasm: Math.max(0, ...workers) / 1e6 };
};
const samples = [];
const end = Date.now() + minutes * 60000;
let taken = 0;
while (Date.now() < end) {
  if (samples.length === 0 || taken % 2000 === 0) samples.push(await heap());
  await steps(200);
  taken += 200;
}
samples.push(await heap());
console.log(
  `${taken} steps in ${minutes} minutes: heap ${samples.map((s) => s.mb.toFixed(1)).join(" ")} MB, engine ${samples.map((s) => s.wasm.toFixed(1)).join(" ")} MB, DOM nodes ${samples.map((s) => s.nodes).join(" ")}`,
);
// From the second run on: the first run to the end fills the memory for checkpoints.
const [early, late] = [samples[Math.min(1, samples.length - 1)], samples[samples.length - 1]];
figure("growth of the heap", late.mb - early.mb, 2, "MB");
figure("growth of the engine's memory", late.wasm - early.wasm, 1, "MB");
figure("growth of the document", late.nodes - early.nodes, 500, "nodes");
await browser.close();
server.close();
process.exitCode = beyond ? 1 : 0;
