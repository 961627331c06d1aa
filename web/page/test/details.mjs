// Tests of less common interactions, and regression tests.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { example, open, root, shots, status, tab, test, write } from "./lib.mjs";

/** A compressed bundle with two kernels for three targets. */
const bundle = join(root, "../../tests/filetests/code_objects/relocated/relocated.bundle");
const HEADER = "---\nout_y: u32[32]\nlocal = 32, 1, 1\nglobal = 1, 1, 1\n---\n";
const LOOP = `${HEADER}loop:\n  v_add_nc_u32 v1, 1, v1\n  s_branch loop\n`;

const at = (page, step) => test(page, "where").getByText(`Step ${step}`, { exact: true }).waitFor();
const where = (page, pattern) =>
  page.waitForFunction(
    (source) => new RegExp(source).test(document.querySelector('[data-test="where"]').textContent),
    pattern.source,
  );
const choose = (page, label, value) => page.locator(`select[aria-label="${label}"]`).selectOption(value);
const line = (page, text) => page.locator(".left .editor .cm-line", { hasText: text }).first();

async function start(page) {
  await test(page, "start").click();
  await at(page, 0);
}

/** Returns a link to the program that the page shows. */
async function linkOf(page) {
  await test(page, "share").click();
  await page.waitForFunction(() => /^#[ph]=/.test(location.hash));
  const link = await page.evaluate(() => location.href);
  await page.evaluate(() => history.replaceState(null, "", location.pathname));
  return link;
}

export const details = {
  async "every button of the debugger moves it"({ page }) {
    await example(page, "race");
    await start(page);
    await test(page, "stepall").click();
    // One step of each of four waves.
    await at(page, 4);
    await test(page, "next").click();
    await at(page, 5);
    await test(page, "first").click();
    await at(page, 0);
    await line(page, "s_barrier").click();
    await page.keyboard.press("F9");
    await status(page, /Breakpoint on line 18 set/);
    await page.keyboard.press("F8");
    await where(page, /s_barrier/);
    const stopped = await test(page, "where").textContent();
    await page.keyboard.press("F8");
    await page.waitForFunction((old) => document.querySelector('[data-test="where"]').textContent !== old, stopped);
    await test(page, "reverse").click();
    await page.waitForFunction((old) => document.querySelector('[data-test="where"]').textContent === old, stopped);
    await page.keyboard.press("Shift+F8");
    await at(page, 0);
    await test(page, "step").click();
    await at(page, 1);
    await test(page, "restart").click();
    await at(page, 0);
    await line(page, "s_barrier").click();
    await page.keyboard.press("F9");
    await status(page, /Breakpoint on line 18 deleted/);
  },

  async "the choices of the bar: theme, architecture, wave size"({ page }) {
    await example(page, "first");
    await choose(page, "Theme", "dark");
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(22, 25, 29)");
    await choose(page, "Theme", "light");
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(251, 251, 250)");
    await choose(page, "Theme", "");
    await choose(page, "Wave size", "64");
    await test(page, "problems").getByText("wave64").waitFor();
    await test(page, "run").click();
    await test(page, "summary").getByText("wave64").waitFor();
    await start(page);
    await page.waitForFunction(() => document.querySelectorAll(".wave-row .lane").length === 64);
    await page.locator(".lane").nth(40).click();
    await where(page, /lane 40/);
    await choose(page, "Wave size", "");
    const architectures = page.locator('select[aria-label="Architecture"] option');
    assert.deepEqual(await architectures.evaluateAll((options) => options.map((option) => option.value)), [
      ...["", "rdna3", "rdna3.5", "rdna4", "cdna3", "cdna4", "cdna5"],
    ]);
    await choose(page, "Architecture", "rdna4");
    await test(page, "problems")
      .getByText(/error|rdna4/)
      .waitFor();
    await tab(page, "isa");
    await page.locator(".isa input").fill("s_wait_loadcnt");
    await page.keyboard.press("Enter");
    await page.locator(".isa-heading h3", { hasText: "s_wait_loadcnt" }).waitFor();
    await choose(page, "Architecture", "");
    await page.locator(".isa input").fill("v_add_f33");
    await page.keyboard.press("Enter");
    await page.locator(".isa-heading", { hasText: "did you mean `v_add_f32`" }).waitFor();
  },

  async "long arrays: more of a table, another width of a picture"({ page }) {
    await write(page, HEADER.replace("u32[32]", "u32[4096]") + "  s_endpgm\n");
    await test(page, "run").click();
    const output = page.locator('[data-output="out_y"]');
    await output.locator("td").first().waitFor();
    assert.equal(await output.locator("td").count(), 2048);
    await output.getByText("Show more").click();
    assert.equal(await output.locator("td").count(), 4096);
    await output.locator("h3 select").selectOption("picture");
    await output.locator('input[aria-label="Width"]').fill("128");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("canvas.picture")?.height === 32);
    await output.locator("h3 select").selectOption("table");
  },

  async "an image is a picture of its pixels"({ page }) {
    // The page keeps the view that was chosen for the output of another name.
    const values = Array.from({ length: 3 * 2 }, (_, i) => [40 * i, 255 - i, 7, 255]).flat();
    const text = `---\nout_pixels: image2d<rgba8unorm>[3, 2] = ${values.join(", ")}\nlocal = 4\n---\n  s_endpgm\n`;
    await write(page, text);
    await test(page, "run").click();
    const canvas = page.locator('[data-output="out_pixels"] canvas');
    await canvas.waitFor();
    assert.deepEqual(await canvas.evaluate((c) => [c.width, c.height]), [3, 2]);
    const pixels = await canvas.evaluate((c) => Array.from(c.getContext("2d").getImageData(0, 0, 3, 2).data));
    assert.deepEqual(pixels, values);
  },

  async "integers of 64 bits have all their digits"({ page }) {
    const body = [
      "  s_load_b64 s[4:5], s[3:4], 0",
      "  v_mov_b32 v1, 1",
      "  v_mov_b32 v2, 0x200000",
      "  v_mov_b32 v3, 0",
      "  s_waitcnt lgkmcnt(0)",
      "  global_store_b64 v3, v[1:2], s[4:5]",
      "  s_endpgm\n",
    ].join("\n");
    await write(page, HEADER.replace("u32[32]", "u64[2]").replace("local = 32", "local = 1") + body);
    await test(page, "run").click();
    await page.locator('[data-output="out_y"] td').first().getByText("9007199254740993").waitFor();
  },

  async "an object is dropped on the page"({ page }) {
    const object = process.env.OBJECT;
    if (!object) return "skipped: OBJECT names no code object";
    await example(page, "first");
    const data = readFileSync(object).toString("base64");
    await page.evaluate((base64) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], "dropped.co"));
      const target = document.querySelector(".left .editor .cm-content");
      for (const type of ["dragenter", "dragover", "drop"])
        target.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, data);
    await test(page, "listing").waitFor();
    await page.locator(".objects h3", { hasText: "dropped.co" }).waitFor();
    // The object is for one architecture.
    await choose(page, "Architecture", "rdna4");
    await test(page, "run").click();
    await test(page, "error").getByText("the code is for rdna3, not for").waitFor();
    await choose(page, "Architecture", "");
    assert.match(await page.locator(".left .editor .cm-content").textContent(), /arg_a/);
  },

  async "the kernels of an object are chosen from a list"({ page }) {
    const objects = process.env.OBJECTS;
    if (!objects) return "skipped: OBJECTS names no code object with two kernels";
    await tab(page, "object");
    await page.locator("#object-file").setInputFiles(objects);
    await page.locator('select[aria-label="Kernel to run"]').waitFor();
    const names = await page.locator('select[aria-label="Kernel to run"] option').allTextContents();
    assert.equal(names.length, 2);
    await choose(page, "Kernel to run", "1");
    assert.equal(await page.locator('.launch input[aria-label="Name of the kernel"]').inputValue(), names[1]);
    await page.locator(".objects button", { hasText: "Close" }).click();
  },

  async "a bundle shows the code of the chosen architecture"({ page }) {
    await tab(page, "object");
    await page.locator("#object-file").setInputFiles(bundle);
    await test(page, "listing").waitFor();
    const listing = () => test(page, "listing").textContent();
    const first = await listing();
    await choose(page, "Architecture", "rdna4");
    await page.waitForFunction((old) => document.querySelector('[data-test="listing"]')?.textContent !== old, first);
    assert.match(await listing(), /s_wait_kmcnt/);
    await choose(page, "Architecture", "");
    await page.locator(".objects button", { hasText: "Close" }).click();
  },

  async "a kernel of a bundle runs, on each of its architectures"({ page }) {
    await tab(page, "object");
    await page.locator("#object-file").setInputFiles(bundle);
    await test(page, "listing").waitFor();
    await page.locator('select[aria-label="Kernel to run"]').selectOption({ label: "relocated" });
    const args = page.locator(".launch textarea");
    await args.fill("out: i32[4]=arange(4)\ni32=1");
    await page.locator('.launch input[aria-label^="Workgroups"]').fill("1");
    await page.locator('.launch input[aria-label^="Work-items"]').fill("1");
    for (const arch of ["rdna3", "rdna4"]) {
      await choose(page, "Architecture", arch);
      await test(page, "run").click();
      await test(page, "summary").getByText("1 waves").waitFor();
      const cells = await page.locator('[data-output="out"] td').allTextContents();
      assert.deepEqual(cells, ["41", "9", "2", "41"]);
      // Code for another architecture has the same arguments.
      assert.match(await args.inputValue(), /arange\(4\)\ni32=1/);
    }
    await choose(page, "Architecture", "");
    await tab(page, "object");
    await page.locator(".objects button", { hasText: "Close" }).click();
  },

  async "labels: jump, Ctrl-click and hover, with dots too"({ page }) {
    await write(page, `${HEADER}  s_branch .LBB0_2\n  s_nop 0\n.LBB0_2:\n  s_endpgm\n`);
    await line(page, "s_branch").click();
    await page.keyboard.press("End");
    await page.keyboard.press("F12");
    await page.waitForFunction(
      () => document.querySelector(".left .editor .cm-activeLine")?.textContent === ".LBB0_2:",
    );
    const target = page.locator(".left .editor .cm-line", { hasText: "s_branch" });
    const box = await target.evaluate((e) => {
      const range = document.createRange();
      const walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const from = node.data.indexOf("LBB0");
        if (from < 0) continue;
        range.setStart(node, from);
        range.setEnd(node, from + 4);
      }
      const { x, y, width, height } = range.getBoundingClientRect();
      return [x + width / 2, y + height / 2];
    });
    await page.mouse.move(...box);
    const card = page.locator(".cm-tooltip-hover .card");
    await card.waitFor();
    assert.match(await card.textContent(), /\.LBB0_2: line 8.*s_endpgm/);
    await line(page, "s_nop").click();
    await page.keyboard.down("Control");
    await page.mouse.click(...box);
    await page.keyboard.up("Control");
    await page.waitForFunction(
      () => document.querySelector(".left .editor .cm-activeLine")?.textContent === ".LBB0_2:",
    );
  },

  async "modifiers and counters are those of the architecture"({ page }) {
    const offered = async (text) => {
      await write(page, `${HEADER}  s_endpgm\n${text}`);
      await page.keyboard.press("Control+Space");
      const list = page.locator(".cm-tooltip-autocomplete li");
      await list.first().waitFor();
      const found = await list.allTextContents();
      await page.keyboard.press("Escape");
      return found;
    };
    assert.ok((await offered("  s_waitcnt v")).includes("vmcnt(0)"));
    assert.ok((await offered("  global_load_b32 v1, v0, s[4:5] gl")).includes("glc"));
    await choose(page, "Architecture", "rdna4");
    await test(page, "problems")
      .getByText(/error|rdna4/)
      .waitFor();
    await page.waitForTimeout(300);
    assert.ok((await offered("  global_load_b32 v1, v0, s[4:5] sc")).includes("scope:"));
    await choose(page, "Architecture", "");
  },

  async "a link holds the launch; one that is pasted opens"({ page, browser, url }) {
    await example(page, "assembly");
    await page.locator(".launch").waitFor();
    await page.locator(".launch textarea").fill("x: f32[50]=arange(50)\nout_y: f32[50]\n3.5\ni32=50");
    const link = await linkOf(page);
    const other = await open(browser, url);
    await other.evaluate((hash) => (location.hash = hash), new URL(link).hash);
    await status(other, /came with the link/);
    await other.locator(".launch").waitFor();
    await test(other, "run").click();
    await other.locator('[data-output="out_y"] td').first().waitFor();
    assert.equal(await other.locator('[data-output="out_y"] td').nth(2).textContent(), "7");
    await other.evaluate(() => (location.hash = "#p=%00"));
    await status(other, /cannot be opened/);
    assert.deepEqual(other.errors, []);
    await other.context().close();
  },

  async "a link leaves the reader's own program alone"({ browser, page, url }) {
    await example(page, "divergence");
    const link = await linkOf(page);
    const other = await open(browser, url);
    await write(other, `${HEADER}  s_nop 7\n  s_endpgm\n`);
    await other.waitForFunction(() => localStorage.getItem("program")?.includes("s_nop 7"));
    const visit = async (address) => {
      await other.goto("about:blank");
      await other.goto(address);
      await other.waitForSelector("body.ready");
    };
    await visit(link);
    await line(other, "s_and_saveexec_b32").waitFor();
    await test(other, "run").click();
    await other.locator("[data-output]").first().waitFor();
    await other.waitForTimeout(700);
    await visit(url);
    await line(other, "s_nop 7").waitFor();
    // An edited program belongs to the user.
    await visit(link);
    await line(other, "s_endpgm").click();
    await other.keyboard.type(" ");
    await other.waitForFunction(() => localStorage.getItem("program")?.includes("s_and_saveexec_b32"));
    await other.context().close();
  },

  async "pseudocode: each instruction has its own history, each architecture its own text"({ page }) {
    await example(page, "first");
    await tab(page, "isa");
    const show = async (name) => {
      await page.locator(".isa input").fill(name);
      await page.keyboard.press("Enter");
      await page.locator(".isa-heading h3", { hasText: name }).waitFor();
    };
    const body = page.locator(".isa-editor .cm-content");
    await show("v_mul_f32");
    await body.click();
    await page.keyboard.press("ControlOrMeta+End");
    await page.keyboard.type("// mine");
    await show("v_sub_f32");
    await body.click();
    for (let i = 0; i < 5; i++) await page.keyboard.press("ControlOrMeta+z");
    assert.match(await body.textContent(), /V_SUB_F32 for rdna3/);
    assert.doesNotMatch(await body.textContent(), /V_MUL|mine/);
    assert.equal(await page.locator(".isa .chips .chip").count(), 1);
    await choose(page, "Architecture", "rdna4");
    await page.waitForFunction(() =>
      /V_SUB_F32 for rdna4/.test(document.querySelector(".isa-editor .cm-content").textContent),
    );
    await show("v_mul_f32");
    assert.doesNotMatch(await body.textContent(), /mine/);
    await choose(page, "Architecture", "");
    await page.waitForFunction(() => /mine/.test(document.querySelector(".isa-editor .cm-content").textContent));
    await page.locator(".isa-heading button", { hasText: "Reset" }).click();
    await page.waitForFunction(() => !document.querySelector(".isa .chips .chip"));
  },

  async "the debugger explains changed pseudocode"({ page }) {
    await example(page, "changed");
    await test(page, "start").click();
    await at(page, 0);
    await line(page, "v_add_f32").click();
    await test(page, "to-line").click();
    await where(page, /v_add_f32/);
    assert.match(await test(page, "explain").textContent(), /V_ADD_F32 \(changed\)[^]*S0\.f32 \* S1\.f32/);
  },

  async "memory: parts, panes and marks"({ page }) {
    await example(page, "race");
    await start(page);
    const lds = page.locator('[data-memory="lds"]');
    await lds.locator("> summary").click();
    await test(page, "memory-lds").waitFor();
    await line(page, "s_barrier").click();
    await test(page, "to-line").click();
    await page.waitForFunction(() => document.querySelectorAll('[data-test="memory-lds"] td.changed').length > 8);
    // Changing the view is not a step.
    await page.locator(".lane").nth(5).click();
    await where(page, /lane 5/);
    await page.waitForTimeout(200);
    assert.ok((await page.locator('[data-test="memory-lds"] td.changed').count()) > 8);
    await lds.getByLabel("LDS: offset in bytes").fill("0x40");
    await page.keyboard.press("Enter");
    await test(page, "memory-lds").locator("th", { hasText: "+40" }).first().waitFor();
    const argument = page.locator('[data-memory="argument"]');
    await argument.locator("> summary").click();
    await test(page, "memory-argument").waitFor();
    await argument.getByText("As table, picture or plot").click();
    await argument.locator('[data-output="arg_x"]').waitFor();
    await test(page, "step").click();
    await page.waitForTimeout(200);
    // The panes stay open.
    assert.equal(await page.locator("details.memory[open]").count(), 2);
    await argument.locator('[data-output="arg_x"]').waitFor();
    assert.ok(await page.locator('[data-memory="scratch"]').isHidden());
    await page.screenshot({ path: join(shots, "memory.png") });

    await write(
      page,
      "---\nlocal = 4, 1, 1\nscratch = 16\n---\n  v_mov_b32 v1, 8\n  scratch_store_b32 v1, v0, off\n  s_endpgm\n",
    );
    await page.waitForTimeout(300);
    await start(page);
    await page.locator('[data-memory="scratch"] > summary').click();
    await test(page, "step").click();
    await at(page, 1);
    await test(page, "step").click();
    await at(page, 2);
    await page.locator(".lane").nth(3).click();
    await page.waitForFunction(
      () => document.querySelectorAll('[data-test="memory-scratch"] td')[2]?.textContent === "3",
    );
  },

  async "the focus stays where it is while one steps"({ page }) {
    await example(page, "first");
    await start(page);
    for (const place of ['[data-cause="v1"]', ".lane.here", 'select[aria-label="Colour lanes by"]']) {
      await page.locator(place).focus();
      const before = await test(page, "where").textContent();
      await page.keyboard.press("F10");
      await page.waitForFunction((old) => document.querySelector('[data-test="where"]').textContent !== old, before);
      assert.ok(
        await page.evaluate((place) => document.activeElement === document.querySelector(place), place),
        `${place} has lost the focus`,
      );
    }
    await page.locator(".lane.here").focus();
    await page.keyboard.press("ArrowRight");
    await where(page, /lane 1\b/);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.lane), "1");
  },

  async "who wrote a register is asked once, and shown"({ page }) {
    await example(page, "first");
    await start(page);
    for (let i = 0; i < 9; i++) await test(page, "step").click();
    await at(page, 9);
    // A pointer that only passes over a register sends no request.
    for (const name of ["v0", "v1", "v2", "v4"]) await page.locator(`tr[data-register="${name}"] th`).hover();
    await test(page, "origin").getByText("v4: last written at step 8").waitFor();
    assert.equal(await page.locator("tr[data-origin]").count(), 1);
  },

  async "a finding leads into the debugger"({ page }) {
    await example(page, "race");
    await test(page, "check").click();
    const race = page.locator('.findings [data-check="race"]').first();
    await race.waitFor();
    const number = /line (\d+)/.exec(await race.locator(".side button.link").first().textContent())[1];
    await race.getByText("Step there").click();
    await where(page, new RegExp(`line ${number}:`));
    await tab(page, "output");
  },

  async "long commands of the debugger pause, at Stop and at the limit"({ page }) {
    await write(page, LOOP);
    await page.waitForTimeout(300);
    await choose(page, "Time limit", "5");
    await start(page);
    await test(page, "continue").click();
    await status(page, /Running: step/);
    await test(page, "stop").click();
    await status(page, /Paused at step/);
    // It is not ended later.
    await page.waitForTimeout(1800);
    await test(page, "continue").click();
    await status(page, /Running: step/);
    await status(page, /Paused after 5 s at step/, 20000);
    const before = await test(page, "where").textContent();
    await test(page, "step").click();
    await page.waitForFunction((old) => document.querySelector('[data-test="where"]').textContent !== old, before);
    await choose(page, "Time limit", "20");
  },

  async "Check and Run say why they ended"({ page }) {
    await write(page, LOOP);
    await choose(page, "Time limit", "5");
    await test(page, "check").click();
    await status(page, /stopped after 5 s/, 20000);
    await test(page, "run").click();
    await test(page, "stop").click();
    await status(page, /^stopped$/);
    // Also before the engine has restarted.
    await test(page, "run").click();
    await test(page, "stop").click();
    await status(page, /^stopped$/);
    await page.waitForFunction(() => !document.body.classList.contains("busy"));
    await choose(page, "Time limit", "20");
    await write(page, `${HEADER}  s_load_b64 s[4:5], s[6:7], 0\n  s_endpgm\n`);
    await test(page, "check").click();
    await status(page, /findings?|then/);
  },

  async "leaving the page ends its run"({ browser, url, native }) {
    if (!native) return "skipped: the engine is part of the page";
    const page = await open(browser, url);
    const sent = [];
    page.context().on("request", (r) => sent.push(new URL(r.url())));
    await write(page, LOOP);
    await test(page, "run").click();
    await page.waitForFunction(() => document.body.classList.contains("busy"));
    const running = sent.findLast((u) => u.pathname.endsWith("/api"));
    await page.goto("about:blank");
    // The engine answers the next request of the page at once, since its run has ended: the run's own limit is 20 s.
    const number = Number(running.searchParams.get("request")) + 1;
    const next = `${running.origin}${running.pathname}?session=${running.searchParams.get("session")}&request=${number}`;
    const answer = await fetch(next, {
      method: "POST",
      body: '{"op":"architectures"}',
      signal: AbortSignal.timeout(8000),
    });
    assert.match(await answer.text(), /rdna4/);
    await page.context().close();
  },

  async "Stop ends the run of its own page only"({ browser, url, page }) {
    const other = await open(browser, url);
    await write(other, LOOP);
    await test(other, "run").click();
    await write(page, LOOP);
    await test(page, "run").click();
    await other.waitForFunction(() => document.body.classList.contains("busy"));
    await page.waitForTimeout(500);
    await test(page, "stop").click();
    await status(page, /^stopped$/, 5000);
    assert.ok(await other.evaluate(() => document.body.classList.contains("busy")));
    // The other page is closed, which ends its run.
    await other.context().close();
    await example(page, "first");
    await test(page, "run").click();
    await page.locator('[data-output="out_c"]').waitFor();
  },
};
