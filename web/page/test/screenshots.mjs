// Takes the pictures of the documentation in Chromium, and stores them in docs:
//
//   node web/page/test/screenshots.mjs [WAVESIM]      by default target/release/wavesim
//
// The page must be built (`cargo xtask build-web`, or `npm run build:native` in web/page); wavesim serves and compiles.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { example, launch, open, root, tab, test } from "./lib.mjs";

const repository = join(root, "../..");
const wavesim = process.argv[2] ?? join(repository, "target/release/wavesim");
const folder = ["dist-native", "dist"].map((name) => join(root, name)).find((name) => existsSync(name));
if (!folder) throw new Error("there is no page: cargo xtask build-web builds it");
const docs = join(repository, "docs");

/** Starts `wavesim serve`, and returns it with its address. */
async function serve() {
  const server = spawn(wavesim, ["serve", "--port", "0", "--page", folder], { stdio: ["ignore", "ignore", "pipe"] });
  const url = await new Promise((resolve, reject) => {
    let text = "";
    server.stderr.on("data", (data) => {
      text += data;
      const found = text.match(/http:\/\/\S+\//);
      if (found) resolve(found[0]);
    });
    server.on("exit", () => reject(new Error(`wavesim serve: ${text}`)));
  });
  return { server, url };
}

/** What each picture shows. */
const pictures = {
  /** The debugger inside a divergent branch. */
  async "playground.png"(page) {
    await example(page, "divergence");
    await page.locator(".left .editor .cm-line", { hasText: "; if odd" }).click();
    await page.keyboard.press("F9");
    await test(page, "start").click();
    await test(page, "where").getByText("Step 0").waitFor();
    await test(page, "continue").click();
    await test(page, "where").getByText("s_and_saveexec").waitFor();
    await test(page, "step").click();
    await test(page, "where").getByText("v_mad_u32_u24").waitFor();
  },
  /** OpenCL C beside its instructions. */
  async "playground-source.png"(page) {
    await example(page, "opencl");
    const listing = test(page, "listing").locator(".cm-content");
    await listing.getByText("s_endpgm").first().waitFor();
    await page.locator(".left .editor .cm-line", { hasText: "if (i < n)" }).click();
    await page.keyboard.press("Home");
    await page.evaluate(() => (document.querySelector(".left .editor .cm-scroller").scrollLeft = 0));
    await listing.locator(".linked").first().waitFor();
  },
  /** Charts of a run. */
  async "playground-statistics.png"(page) {
    await example(page, "divergence");
    await tab(page, "statistics");
    await test(page, "run").click();
    await page.locator('[data-chart="Divergence"] tbody tr').first().waitFor();
  },
};

const browser = await launch();
if (!browser) {
  console.log("skipped: there is no Chromium (CHROMIUM=PATH names one)");
  process.exit(0);
}
const { server, url } = await serve();
try {
  for (const [name, arrange] of Object.entries(pictures)) {
    const page = await open(browser, url);
    await arrange(page);
    await page.mouse.move(0, 0);
    await page.screenshot({ path: join(docs, name) });
    if (page.errors.length > 0) throw new Error(`${name}: ${page.errors.join("\n")}`);
    console.log(`docs/${name}`);
    await page.context().close();
  }
} finally {
  await browser.close();
  server.kill();
}
