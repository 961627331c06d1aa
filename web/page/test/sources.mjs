// Tests of source code, code objects, links, frames and accessibility.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { example, open, shots, status, tab, test, write } from "./lib.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The violations of accessibility rules, each with the elements that violate it. */
async function violations(page) {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join("; ")}`);
  });
}

const listing = (page) => test(page, "listing").locator(".cm-content");
const choose = (page, label, value) => page.locator(`select[aria-label="${label}"]`).selectOption(value);

/** Opens the example of OpenCL C and compiles it. */
async function opencl(page) {
  await example(page, "opencl");
  await listing(page).getByText("s_endpgm").first().waitFor();
}

export const sources = {
  async "source code is compiled, linked with its instructions, and run"({ page, native }) {
    await example(page, "opencl");
    if (!native) {
      await page.locator(".source-bar", { hasText: "wavesim serve" }).waitFor();
      await test(page, "run").click();
      await test(page, "error").getByText("needs a server").waitFor();
      await example(page, "first");
      return;
    }
    await opencl(page);
    assert.match(await test(page, "problems").textContent(), /compiled for rdna3/);
    // The addition, in both.
    await page.locator(".left .editor .cm-line", { hasText: "if (i < n)" }).click();
    await page.locator(".left .editor .cm-line.linked", { hasText: "if (i < n)" }).waitFor();
    await listing(page).locator(".linked", { hasText: "v_fma" }).first().waitFor();
    await page.screenshot({ path: join(shots, "source.png") });
    await listing(page)
      .locator(".cm-line", { hasText: "v_mad_u64_u32" })
      .or(listing(page).locator(".cm-line", { hasText: "v_lshl_add" }))
      .first()
      .click();
    await page.locator(".left .editor .cm-line.linked", { hasText: "workgroup_id" }).waitFor();
    await test(page, "run").click();
    const cells = page.locator('[data-output="x"] td, [data-output="out_y"] td');
    await page.locator('[data-output="y"], [data-output="out_y"]').first().waitFor();
    assert.ok((await cells.count()) > 0);
  },

  async "errors of the compiler are underlined"({ page, native }) {
    if (!native) return "skipped: the page has no compiler";
    await opencl(page);
    await write(page, "kernel void f(global int *out_y) {\n  out_y[0] = nothing;\n}\n");
    await page.locator(".left .editor .cm-lintRange-error", { hasText: "nothing" }).waitFor();
    await test(page, "run").click();
    await test(page, "error").getByText("undeclared identifier").waitFor();
    await write(page, "kernel void f(global int *out_y) {\n  out_y[get_local_id(0)] = 7;\n}\n");
    await page.locator(".launch textarea").fill("out_y: i32[32]");
    await test(page, "run").click();
    await page.locator('[data-output="out_y"] td', { hasText: /^7$/ }).first().waitFor();
  },

  async "check and the debugger know the lines of the source"({ page, native }) {
    if (!native) return "skipped: the page has no compiler";
    await opencl(page);
    await write(
      page,
      "kernel void f(global int *x, global int *out_y) {\n  int i = get_global_id(0);\n  out_y[i] = x[i + 1];\n}\n",
    );
    await page.locator(".launch textarea").fill("x: i32[32]=arange(32)\nout_y: i32[32]");
    await page.locator(".launch input").first().fill("1");
    await test(page, "check").click();
    const finding = page.locator('.findings [data-check="mem"]').first();
    await finding.locator("button", { hasText: "line 3" }).waitFor();
    await finding.getByText("Step there").click();
    await test(page, "where").getByText("line 3").waitFor();
    await page.locator(".left .editor .line-here", { hasText: "out_y[i]" }).waitFor();
    await page.screenshot({ path: join(shots, "source-step.png") });
    await tab(page, "output");
  },

  async "two levels of optimisation are compared"({ page, native }) {
    if (!native) return "skipped: the page has no compiler";
    await opencl(page);
    await page.locator('input[aria-label="Options to compare with"]').fill("-O0");
    await test(page, "compare").click();
    await test(page, "comparison").locator(".added").first().waitFor();
    assert.match(await test(page, "comparison").textContent(), /\d+ instructions, \d+ VGPRs; \d+ lines only here/);
    await page.locator('input[aria-label="Options to compare with"]').fill("-fplugin=x");
    await test(page, "compare").click();
    await test(page, "comparison").getByText("option -fplugin=x is not supported").waitFor();
    await page.screenshot({ path: join(shots, "compare.png") });
  },

  async "a dropped object is shown as its disassembly"({ page }) {
    const object = process.env.OBJECT;
    if (!object) return "skipped: OBJECT names no code object";
    await example(page, "first");
    await tab(page, "object");
    await page.locator("#object-file").setInputFiles(object);
    await page.locator(".left .object-view", { hasText: "s_endpgm" }).waitFor();
    assert.equal(await page.locator(".left .editor").isVisible(), false);
    await page.locator(".launch textarea").fill("x: f32[50]=arange(50)\nout_y: f32[50]\n2.5\ni32=50");
    // A breakpoint at an instruction, by the margin.
    await page.locator(".object-view .cm-line", { hasText: "global_store" }).click();
    await page.keyboard.press("F9");
    await page.locator(".object-view .sign.break[title^=breakpoint]").waitFor();
    await test(page, "start").click();
    await test(page, "where").getByText("Step 0").waitFor();
    await test(page, "continue").click();
    await page.locator(".object-view .line-here", { hasText: "global_store" }).waitFor();
    await page.screenshot({ path: join(shots, "object.png") });
    await tab(page, "object");
    await page.locator(".objects button", { hasText: "Close" }).click();
    assert.equal(await page.locator(".left .editor").isVisible(), true);
  },

  async "statistics are charts"({ page }) {
    await example(page, "divergence");
    await tab(page, "statistics");
    await test(page, "run").click();
    const lanes = page.locator('[data-chart="Divergence"] tbody tr');
    await lanes.first().waitFor();
    // Lanes leave the loop at different times.
    const texts = await lanes.allTextContents();
    assert.ok(
      texts.some((t) => /line \d+\D*32\.0 of 32/.test(t)) &&
        texts.some((t) => / (?:\d|1\d)\.\d of 32|line \d+(?:\d|1\d)\.\d of 32/.test(t)),
      texts.join("\n"),
    );
    await page.locator('[data-chart="Classes"] .bar').first().waitFor();
    await page.screenshot({ path: join(shots, "statistics.png") });
    await lanes.first().locator("button").click();
    await page.locator(".left .editor .cm-editor.cm-focused").waitFor();
  },

  async "times are predicted"({ page }) {
    await example(page, "divergence");
    await tab(page, "cost");
    await test(page, "run").click();
    const lines = page.locator('[data-chart="Clocks"] tbody tr');
    await lines.first().waitFor();
    const summary = await test(page, "cost").textContent();
    assert.match(summary, /^\d+\.\d\d µs predicted .* bound by /);
    assert.match(await page.locator(".panel:visible").textContent(), /predicted for .*, not measured; uncalibrated/);
    assert.match((await lines.allTextContents()).join("\n"), /line \d+.*\d \%, \d+\.\d clocks × /);
    // Of the shares of lines and of what waves do, each is a part of one.
    const sum = async (chart) =>
      (await page.locator(`[data-chart="${chart}"] tbody td:last-child`).allTextContents())
        .map((text) => parseFloat(text))
        .reduce((a, b) => a + b, 0);
    assert.ok(Math.abs((await sum("Clocks")) - 100) < 2 && Math.abs((await sum("Waves")) - 100) < 2);
    await page.screenshot({ path: join(shots, "cost.png") });
    await lines.first().locator("button").click();
    await page.locator(".left .editor .cm-editor.cm-focused").waitFor();
    assert.deepEqual(await page.locator('select[aria-label="Device"] option').count(), 1);
  },

  async "a pause of the debugger has a button to go on"({ page }) {
    await write(page, "---\nout_y: u32[32]\nlocal = 32, 1, 1\nglobal = 1, 1, 1\n---\nloop:\n  s_branch loop\n");
    await page.waitForTimeout(300);
    await choose(page, "Time limit", "5");
    await test(page, "start").click();
    await test(page, "where").getByText("Step 0").waitFor();
    await test(page, "continue").click();
    await test(page, "paused").getByText("Paused after 5 s").waitFor({ timeout: 20000 });
    await test(page, "go-on").click();
    await status(page, /Running: step/);
    await test(page, "stop").click();
    await test(page, "paused").getByText("Paused at step").waitFor();
    await choose(page, "Time limit", "20");
  },

  async "short links: examples, and programs of a server"({ page, browser, url, native }) {
    const other = await open(browser, `${url}#e=mandelbrot`);
    assert.match(await other.locator(".left .editor .cm-content").textContent(), /Mandelbrot|mandelbrot/);
    await other.context().close();
    if (!native) return;
    await write(page, "; a short link\n---\nlocal = 32, 1, 1\n---\n  s_endpgm\n");
    await test(page, "share").click();
    await page.waitForFunction(() => /^#h=[0-9a-f]{20}$/.test(location.hash));
    const link = await page.evaluate(() => location.href);
    const reader = await open(browser, link);
    await status(reader, /came with the link/);
    assert.match(await reader.locator(".left .editor .cm-content").textContent(), /a short link/);
    await reader.evaluate(() => (location.hash = "#h=00000000000000000000"));
    await status(reader, /does not have its program/);
    reader.errors = reader.errors.filter((e) => !/404/.test(e));
    assert.deepEqual(reader.errors, []);
    await reader.context().close();
  },

  async "an embedded page has few parts, and stores nothing"({ browser, url }) {
    const page = await open(browser, `${url}?embed#e=divergence`, { width: 700, height: 420 });
    assert.equal(await test(page, "examples").isVisible(), false);
    assert.equal(await page.locator('select[aria-label="Theme"]').isVisible(), false);
    await test(page, "run").click();
    await page.locator("[data-output] td").first().waitFor();
    await page.screenshot({ path: join(shots, "embed.png") });
    await write(page, "; mine\n");
    await page.waitForTimeout(700);
    assert.equal(await page.evaluate(() => localStorage.getItem("program")), null);
    const opened = page.context().waitForEvent("page");
    await test(page, "whole").click();
    const whole = await opened;
    await whole.waitForSelector("body.ready");
    assert.match(await whole.locator(".left .editor .cm-content").textContent(), /mine/);
    assert.equal(await test(whole, "examples").isVisible(), true);
    await page.context().close();
  },

  async "CDNA 5 runs, and every architecture is offered"({ page }) {
    await example(page, "gfx1250");
    await test(page, "run").click();
    await page.locator('[data-output="out_c"] td').nth(63).getByText("126").waitFor();
    const offered = await page
      .locator('select[aria-label="Architecture"] option')
      .evaluateAll((all) => all.map((o) => o.value));
    assert.deepEqual(offered, ["", "rdna3", "rdna3.5", "rdna4", "cdna3", "cdna4", "cdna5"]);
  },

  async "help opens by its key, and says what the keys do"({ page }) {
    await page.keyboard.press("F1");
    await page.locator("dialog.help[open]").getByText("Ctrl+Shift+Enter").waitFor();
    await page.screenshot({ path: join(shots, "help.png") });
    await page.keyboard.press("Escape");
  },

  async "rules of accessibility hold in each tab, in both themes"({ browser, url, native }) {
    for (const colours of ["light", "dark"]) {
      const page = await open(browser, url, { colours });
      const holds = async (what) => assert.deepEqual(await violations(page), [], `${colours}: ${what}`);
      await holds("start");
      await example(page, "race");
      await test(page, "check").click();
      await page.locator(".findings li").first().waitFor();
      await holds("check");
      await tab(page, "statistics");
      await test(page, "run").click();
      await page.locator("[data-chart]").first().waitFor();
      await holds("statistics");
      await test(page, "start").click();
      await test(page, "where").getByText("Step 0").waitFor();
      for (let i = 0; i < 6; i++) await test(page, "step").click();
      await test(page, "where").getByText("Step 6", { exact: true }).waitFor();
      await holds("step");
      await example(page, "mandelbrot");
      await test(page, "run").click();
      await page.locator('[data-output="out_iterations"] canvas').waitFor();
      await holds("picture");
      await example(page, "changed");
      await page.locator(".isa .diff .added").first().waitFor();
      await holds("isa");
      if (native) {
        await opencl(page);
        await page.locator(".left .editor .cm-line", { hasText: "if (i < n)" }).click();
        await test(page, "compare").click();
        await test(page, "comparison").locator(".added").first().waitFor();
      } else await example(page, "opencl");
      await holds("source");
      await test(page, "examples").click();
      await holds("gallery");
      await page.keyboard.press("Escape");
      await page.keyboard.press("F1");
      await holds("help");
      await page.context().close();
    }
  },
};
