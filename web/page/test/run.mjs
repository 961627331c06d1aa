// Tests every feature of the page in Chromium, and stores screenshots in web/page/shots:
//
//   node test/run.mjs [--smoke] [NAME…]      tests whose names contain NAME
//   node test/run.mjs --url http://127.0.0.1:8000/    a page that is already served, for example by `wavesim serve`
//
// --smoke runs only the first tests. Chromium is searched in /usr/bin; CHROMIUM=PATH names another.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { details } from "./details.mjs";
import { sources } from "./sources.mjs";
import { example, launch, open, root, serve, shots, status, tab, test, write } from "./lib.mjs";

const args = process.argv.slice(2);
const smoke = args.includes("--smoke");
const at = args.indexOf("--url");
const given = at >= 0 ? args[at + 1] : null;
const wanted = args.filter((a, i) => !a.startsWith("--") && (at < 0 || i !== at + 1));

const HEADER = "---\nout_y: u32[32]\nlocal = 32, 1, 1\nglobal = 1, 1, 1\n---\n";
const HEX = (text) => Buffer.from(text).toString("base64url");

const tests = {
  async "run shows outputs as a table"({ page }) {
    await example(page, "first");
    await test(page, "run").click();
    const output = page.locator('[data-output="out_c"]');
    await output.waitFor();
    const cells = await output.locator("td").allTextContents();
    assert.equal(cells.length, 64);
    assert.deepEqual([cells[0], cells[1], cells[63]], ["0.5", "1.5", "63.5"]);
    assert.match(await test(page, "summary").textContent(), /22 wave-instructions of 2 waves/);
    await page.screenshot({ path: join(shots, "run.png") });
  },

  async "mistakes are underlined with a suggestion"({ page }) {
    await write(page, `${HEADER}  v_add_f33 v0, v0, v0\n  s_endpgm\n`);
    await page.locator(".cm-lintRange-error").first().waitFor();
    assert.match(await test(page, "problems").textContent(), /1 error/);
    await page.locator(".cm-lintRange-error").first().hover();
    const tip = page.locator(".cm-tooltip-lint");
    await tip.waitFor();
    assert.match(await tip.textContent(), /v_add_f32/);
    await page.screenshot({ path: join(shots, "diagnostics.png") });
    await test(page, "run").click();
    await test(page, "error").waitFor();
    assert.match(await test(page, "error").textContent(), /unknown instruction/);
  },

  async "step forward and back"({ page }) {
    await example(page, "first");
    await test(page, "start").click();
    await test(page, "where").getByText("Step 0").waitFor();
    for (let i = 0; i < 9; i++) await test(page, "step").click();
    await test(page, "where").getByText("Step 9", { exact: true }).waitFor();
    // v4 = a + b has just been written.
    const v4 = page.locator('tr[data-register="v4"]');
    await page.waitForFunction(() => document.querySelector('tr[data-register="v4"]')?.classList.contains("changed"));
    assert.equal(await page.locator('tr[data-register="v4"] td').first().textContent(), "3f000000");
    // SGPRs that hold addresses of arguments show their names.
    assert.match(await page.locator('tr[data-register="s8"]').textContent(), /arg_a/);
    assert.match(await test(page, "explain").textContent(), /global_store_b32/i);
    await page.screenshot({ path: join(shots, "step.png") });
    await v4.hover();
    await page.waitForSelector('tr[data-register="v4"][data-origin*="step 8"]');
    await test(page, "back").click();
    await test(page, "where").getByText("Step 8", { exact: true }).waitFor();
    assert.match(await test(page, "explain").textContent(), /v_add_f32/i);
    // Goes to the cause of v2: the load.
    await page.locator('[data-cause="v2"]').click();
    await page.waitForFunction(() =>
      /global_load_b32 v2/.test(document.querySelector('[data-test="where"]').textContent),
    );
    await test(page, "continue").click();
    await status(page, /run has ended after 22 steps/);
  },

  async "check shows both sides of a race"({ page }) {
    await example(page, "race");
    await test(page, "check").click();
    const race = page.locator('.findings [data-check="race"]').first();
    await race.waitFor();
    assert.equal(await race.locator(".side").count(), 2);
    await page.locator(".sign.finding").first().waitFor();
    await page.locator(".sign.other").first().waitFor();
    await page.screenshot({ path: join(shots, "check.png") });
    await race.locator(".side button.link").first().click();
    await page.locator(".left .editor .cm-editor.cm-focused").waitFor();
  },

  async "changed pseudocode is what runs"({ page }) {
    await example(page, "first");
    await page.locator(".left .editor .cm-line", { hasText: "v_add_f32" }).click();
    await tab(page, "isa");
    await page.locator(".isa-heading h3", { hasText: "v_add_f32" }).waitFor();
    const body = page.locator(".isa-editor .cm-content");
    await page.waitForFunction(() => /S0\.f32/.test(document.querySelector(".isa-editor .cm-content").textContent));
    await body.click();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.insertText("instruction V_ADD_F32 {\n  D0.f32 = S0.f32 * 100.0F + S7.f32;\n}\n");
    await page.locator(".isa-editor .cm-lintRange-error").waitFor();
    await page.screenshot({ path: join(shots, "isa-error.png") });
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.insertText("instruction V_ADD_F32 {\n  D0.f32 = S0.f32 * 100.0F + S1.f32;\n}\n");
    await page.locator(".isa .diff .added").first().waitFor();
    await page.waitForFunction(() => !document.querySelector(".isa-editor .cm-lintRange-error"));
    await page.screenshot({ path: join(shots, "isa.png") });
    await page.keyboard.press("Control+Enter");
    await page.locator('[data-output="out_c"]').waitFor();
    const cells = page.locator('[data-output="out_c"] td');
    assert.equal(await cells.nth(3).textContent(), "300.5");
    await tab(page, "isa");
    await page.locator(".isa-heading button", { hasText: "Reset" }).click();
    await test(page, "run").click();
    await page.waitForFunction(() => document.querySelectorAll('[data-output="out_c"] td')[3]?.textContent === "3.5");
  },
};

const more = {
  async "completion and hover know the ISA"({ page }) {
    await write(page, `${HEADER}\n  s_endpgm\n`);
    await page.keyboard.press("ControlOrMeta+Home");
    for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowDown");
    await page.keyboard.type("  v_perm");
    const list = page.locator(".cm-tooltip-autocomplete li");
    await list.first().waitFor();
    assert.ok((await list.allTextContents()).some((t) => t.startsWith("v_perm_b32")));
    await page.locator(".cm-completionInfo .card").waitFor();
    await page.screenshot({ path: join(shots, "completion.png") });
    await page.keyboard.press("Enter");
    await page.keyboard.type(" v1, v0, v0, v0");
    await page.waitForFunction(() => !document.querySelector(".cm-lintRange-error"));
    await page.locator(".left .editor .cm-line", { hasText: "v_perm_b32" }).locator(".tok-keyword").first().hover();
    const card = page.locator(".cm-tooltip-hover .card");
    await card.waitFor();
    assert.match(await card.textContent(), /V_PERM|pcode|D0/i);
    await page.screenshot({ path: join(shots, "hover.png") });
  },

  async "F12 goes to a label"({ page }) {
    await example(page, "mandelbrot");
    await page.locator(".left .editor .cm-line", { hasText: "s_cbranch_execz done" }).click();
    await page.keyboard.press("End");
    await page.keyboard.press("F12");
    await page.waitForFunction(() => document.querySelector(".left .editor .cm-activeLine")?.textContent === "done:");
  },

  async "a picture and a plot"({ page }) {
    await example(page, "mandelbrot");
    await test(page, "run").click();
    const canvas = page.locator('[data-output="out_iterations"] canvas');
    await canvas.waitFor();
    assert.deepEqual(await canvas.evaluate((c) => [c.width, c.height]), [256, 192]);
    const shades = await canvas.evaluate((c) => {
      const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
      const found = new Set();
      for (let i = 0; i < data.length; i += 4) found.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
      return found.size;
    });
    assert.ok(shades > 20, `${shades} colours`);
    await page.screenshot({ path: join(shots, "picture.png") });
    await page.locator('[data-output="out_iterations"] h3 select').selectOption("plot");
    assert.ok((await page.locator('[data-output="out_iterations"] polyline').count()) === 8);
    await page.screenshot({ path: join(shots, "plot.png") });
    await page.locator('[data-output="out_iterations"] h3 select').selectOption("picture");
  },

  async "statistics count lines"({ page }) {
    await example(page, "divergence");
    await tab(page, "statistics");
    await test(page, "run").click();
    await page.locator("[data-chart]").first().waitFor();
    assert.match(await test(page, "statistics").textContent(), /lane utilisation/);
    assert.ok((await page.locator(".left .editor .gutter-counts .sign").count()) > 10);
  },

  async "lanes are coloured, breakpoints stop, the slider travels"({ page }) {
    await example(page, "divergence");
    await page.locator(".left .editor .cm-line", { hasText: "s_and_saveexec_b32" }).click();
    await page.keyboard.press("F9");
    await page.locator('.sign.break[title^="breakpoint"]').waitFor();
    await test(page, "start").click();
    await test(page, "where").getByText("Step 0").waitFor();
    await test(page, "continue").click();
    await page.waitForFunction(() => /s_and_saveexec/.test(document.querySelector('[data-test="where"]').textContent));
    await test(page, "step").click();
    // Half of the lanes have odd numbers.
    await page.waitForFunction(
      () => document.querySelectorAll(".lane.off").length >= 10 && document.querySelectorAll(".lane.on").length >= 10,
    );
    await page.locator('select[aria-label="Colour lanes by"]').selectOption({ label: "v2" });
    await page.waitForFunction(() => document.querySelector(".lane")?.style.getPropertyValue("--c"));
    await page.locator('select[aria-label="Format of registers"]').selectOption("u32");
    await page.locator(".lane").nth(6).click();
    await page.waitForFunction(() => /lane 6/.test(document.querySelector('[data-test="where"]').textContent));
    await page.screenshot({ path: join(shots, "lanes.png") });
    const step = () => page.locator('input[aria-label="Step of the run"]').inputValue();
    const before = Number(await step());
    await page.locator('input[aria-label="Step of the run"]').fill(String(before - 5));
    await page.waitForFunction(
      (want) => document.querySelector('[data-test="where"]').textContent.startsWith(`Step ${want} `),
      before - 5,
    );
    // Without the breakpoint, which would stop the run earlier.
    await page.locator(".left .editor .cm-line", { hasText: "s_and_saveexec_b32" }).click();
    await page.keyboard.press("F9");
    await page.locator('.sign.break[title^="breakpoint"]').waitFor({ state: "detached" });
    await page.locator(".left .editor .cm-line", { hasText: "v_add_nc_u32 v3" }).click();
    await page.keyboard.press("F7");
    await page.waitForFunction(() =>
      /v_add_nc_u32\S* v3/.test(document.querySelector('[data-test="where"]').textContent),
    );
  },

  async "the debugger's console"({ page }) {
    await example(page, "first");
    await test(page, "start").click();
    await test(page, "where").getByText("Step 0").waitFor();
    await page.locator('input[aria-label="Command of the debugger"]').fill("print v0");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /v0/.test(document.querySelector(".console-log").textContent));
    await page.locator('input[aria-label="Command of the debugger"]').fill("prnt v0");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /did you mean/.test(document.querySelector(".console-log").textContent));
  },

  async "an object is disassembled and run"({ page }) {
    const object = process.env.OBJECT;
    if (!object) return "skipped: OBJECT names no code object with a kernel `scale` (wavesim asm examples/scale.s)";
    await tab(page, "object");
    await page.locator("#object-file").setInputFiles(object);
    await test(page, "listing").waitFor();
    assert.match(await test(page, "listing").textContent(), /s_endpgm/);
    await page.locator(".launch textarea").fill("x: f32[50]=arange(50)\nout_y: f32[50]\n2.5\ni32=50");
    await page.locator(".launch input").first().fill("2");
    await test(page, "run").click();
    await page.locator('[data-output="out_y"]').waitFor();
    assert.equal(await page.locator('[data-output="out_y"] td').nth(49).textContent(), "122.5");
    await tab(page, "object");
    await page.locator(".objects button", { hasText: "Close" }).click();
  },

  async "an assembly file runs with its launch"({ page }) {
    await example(page, "assembly");
    await page.locator(".launch").waitFor();
    await test(page, "run").click();
    await page.locator('[data-output="out_y"]').waitFor();
    assert.equal(await page.locator('[data-output="out_y"] td').nth(49).textContent(), "122.5");
  },

  async "WMMA multiplies matrices"({ page }) {
    await example(page, "wmma");
    await test(page, "run").click();
    const cells = page.locator('[data-output="out_d"] td');
    await cells.first().waitFor();
    const values = (await cells.allTextContents()).map(Number);
    const expected = (row) => Array.from({ length: 16 }, (_, k) => (16 * row + k) / 16).reduce((a, b) => a + b);
    values.forEach((v, i) => assert.equal(v, expected(Math.floor(i / 16)), `element ${i}`));
  },

  async "MFMA multiplies matrices, and Check knows its wait states"({ page }) {
    await example(page, "mfma");
    await test(page, "run").click();
    const cells = page.locator('[data-output="out_d"] td');
    // The output of an earlier example may still be shown.
    await cells
      .first()
      .filter({ hasText: /^77\.5$/ })
      .waitFor();
    const values = (await cells.allTextContents()).map(Number);
    const products = (row, column) => Array.from({ length: 16 }, (_, k) => (16 * row + k) * (16 * column + k));
    const expected = (i) => products(Math.floor(i / 16), i % 16).reduce((a, b) => a + b) / 16;
    values.forEach((v, i) => assert.equal(v, expected(i), `element ${i}`));
    const text = readFileSync(join(root, "examples/mfma.rdna"), "utf8");
    assert.match(text, /s_nop 15/);
    await write(page, text.replace(/ *s_nop 15.*\n/, ""));
    await test(page, "check").click();
    await page.locator('.findings [data-check="hazard"]').first().getByText("matrix instruction").waitFor();
  },

  async "a link holds the program"({ page, browser, url }) {
    await example(page, "changed");
    await test(page, "share").click();
    await page.waitForFunction(() => /^#[ph]=/.test(location.hash));
    const link = await page.evaluate(() => location.href);
    const other = await open(browser, link);
    await status(other, /came with the link/);
    await test(other, "run").click();
    await other.locator('[data-output="out_c"] td').first().waitFor();
    assert.equal(await other.locator('[data-output="out_c"] td').nth(3).textContent(), "1.5");
    assert.deepEqual(other.errors, []);
    await other.context().close();
    assert.ok(url);
  },

  async "it opens without a network"({ browser, url }) {
    if (given) return "skipped: the native engine is the network";
    const first = await open(browser, url);
    await first.waitForSelector("body.kept", { timeout: 60000 });
    await first.context().setOffline(true);
    await first.reload();
    await first.waitForSelector("body.ready", { timeout: 60000 });
    await test(first, "run").click();
    await first.locator('[data-output="out_c"] td').first().waitFor();
    await first.context().close();
  },

  async "hostile links leave the page responsive"({ browser, url, page }) {
    const link = (shared) =>
      page.evaluate(async (s) => {
        const packed = new Response(
          new Blob([
            JSON.stringify({ v: 1, changes: {}, arch: "", wave: "", grid: "", block: "", args: "", kernel: "", ...s }),
          ])
            .stream()
            .pipeThrough(new CompressionStream("deflate-raw")),
        );
        const data = new Uint8Array(await packed.arrayBuffer());
        let text = "";
        for (let i = 0; i < data.length; i += 8192) text += String.fromCharCode(...data.subarray(i, i + 8192));
        return `#p=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
      }, shared);
    const visit = async (fragment, check) => {
      const other = await open(browser, url + fragment);
      await check(other);
      // The page still works.
      await example(other, "first");
      await test(other, "run").click();
      await other.locator('[data-output="out_c"] td').first().waitFor({ timeout: 30000 });
      assert.deepEqual(
        other.errors.filter((e) => !/terminated/.test(e)),
        [],
      );
      await other.context().close();
    };
    const loop = `${HEADER}loop:\n  s_branch loop\n`;
    const stopped = async (other, pattern) => {
      await other.locator('select[aria-label="Time limit"]').selectOption("5");
      await test(other, "run").click();
      // The page answers while the kernel runs.
      const started = Date.now();
      await tab(other, "check");
      await tab(other, "output");
      assert.ok(Date.now() - started < 2000, "the page is slow while a kernel runs");
      await status(other, pattern, 60000);
    };
    await visit(await link({ text: loop }), (other) => stopped(other, /stopped after 5 s/));
    await visit(await link({ text: loop.replace("global = 1, 1, 1", "global = 4294967295, 65535, 65535") }), (other) =>
      stopped(other, /stopped after 5 s/),
    );
    await visit(await link({ text: loop.replace("u32[32]", "u32[1000000000000]") }), async (other) => {
      await test(other, "run").click();
      await test(other, "error").waitFor();
      await other.screenshot({ path: join(shots, "hostile.png") });
    });
    await visit(await link({ text: `${HEADER}${"; x\n".repeat(2_500_000)}` }), (other) =>
      status(other, /larger than 2 MB/),
    );
    await visit(await link({ text: `${HEADER}${"  v_bad v1\n".repeat(100_000)}` }), async (other) => {
      await test(other, "run").click();
      await test(other, "error").waitFor();
      assert.match(await test(other, "error").textContent(), /at most 1 MB/);
    });
    await visit(
      await link({
        text: `${HEADER}  s_endpgm\n`,
        changes: { v_add_f32: `instruction V_ADD_F32 { D0.f32 = ${"(".repeat(20000)}` },
      }),
      async (other) => {
        await test(other, "run").click();
        await test(other, "error").waitFor();
      },
    );
    for (const fragment of ["#p=AAAA", "#p=%00", `#p=${HEX("not deflated")}`])
      await visit(fragment, (other) => status(other, /cannot be opened/));
  },

  async "Stop ends an endless loop at once"({ page }) {
    await write(page, `${HEADER}loop:\n  s_branch loop\n`);
    await test(page, "run").click();
    await page.waitForFunction(() => document.body.classList.contains("busy"));
    await test(page, "stop").click();
    await status(page, /stopped/, 5000);
    await example(page, "first");
    await test(page, "run").click();
    await page.locator('[data-output="out_c"]').waitFor();
  },

  async "it is usable with the keyboard alone"({ page }) {
    await example(page, "first");
    await page.locator("#tab-output").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("#tab-step").getAttribute("aria-selected"), "true");
    await page.keyboard.press("F10");
    await test(page, "where").getByText("Step 1", { exact: true }).waitFor();
    await page.keyboard.press("F10");
    await test(page, "where").getByText("Step 2", { exact: true }).waitFor();
    await page.keyboard.press("Shift+F10");
    await test(page, "where").getByText("Step 1", { exact: true }).waitFor();
    const unnamed = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, textarea, [role=tab]")]
        .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.title || e.labels?.length))
        .map((e) => e.outerHTML),
    );
    assert.deepEqual(unnamed, []);
  },

  async "looks: both widths, both themes"({ browser, url }) {
    for (const [width, height] of [
      [1280, 800],
      [390, 844],
    ]) {
      for (const colours of ["light", "dark"]) {
        const page = await open(browser, url, { width, height, colours });
        await example(page, "mandelbrot");
        await test(page, "run").click();
        await page.locator('[data-output="out_iterations"] canvas').waitFor();
        await page.screenshot({ path: join(shots, `picture-${width}-${colours}.png`) });
        await example(page, "divergence");
        await test(page, "start").click();
        await test(page, "where").getByText("Step 0").waitFor();
        for (let i = 0; i < 14; i++) await test(page, "step").click();
        await test(page, "where").getByText("Step 14", { exact: true }).waitFor();
        await page.locator('select[aria-label="Colour lanes by"]').selectOption({ label: "v2" });
        await page.waitForFunction(() => document.querySelector(".lane")?.style.getPropertyValue("--c"));
        await page.screenshot({ path: join(shots, `step-${width}-${colours}.png`) });
        await example(page, "changed");
        await page.locator(".isa .diff .added").first().waitFor();
        await page.screenshot({ path: join(shots, `isa-${width}-${colours}.png`) });
        // Nothing is wider than the page.
        assert.ok(
          await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          `${width} ${colours}: scrolls sideways`,
        );
        await page.context().close();
      }
    }
  },
};

const browser = await launch();
if (!browser) {
  console.log("skipped: there is no Chromium (CHROMIUM=PATH names one)");
  process.exit(0);
}
const server = given ? { url: given, close() {} } : await serve();
let failed = 0;
let page = await open(browser, server.url);
for (const [name, body] of Object.entries(smoke ? tests : { ...tests, ...more, ...details, ...sources })) {
  if (wanted.length && !wanted.some((w) => name.includes(w))) continue;
  const started = performance.now();
  try {
    const note = await body({ page, browser, url: server.url, native: given !== null });
    assert.deepEqual(page.errors, [], "errors of the page");
    console.log(note ? `${name} … ${note}` : `${name} … ok (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  } catch (e) {
    failed++;
    console.log(`${name} … FAILED\n${e.stack ?? e}`);
    await page.screenshot({ path: join(shots, `failed-${failed}.png`) }).catch(() => {});
    await page.context().close();
    page = await open(browser, server.url);
  }
}
await browser.close();
server.close();
console.log(failed ? `${failed} failed` : `all passed (screenshots in ${shots.replace(root, "web/page/")})`);
process.exitCode = failed ? 1 : 0;
