// Shared code of the page tests: a server for the built files, Chromium, and user actions.

import { createReadStream, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const shots = join(root, "shots");
mkdirSync(shots, { recursive: true });

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

/** Serves the built page with compression, like hosts of static files. */
export async function serve(folder = join(root, "dist")) {
  if (!existsSync(join(folder, "index.html"))) throw new Error(`${folder} has no page: run cargo xtask build-web`);
  const cache = new Map();
  const transferred = { bytes: 0 };
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://x").pathname).replace(/\/$/, "/index.html");
    const file = join(folder, path);
    if (!file.startsWith(folder) || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    if (!cache.has(file)) cache.set(file, gzipSync(readFileSync(file), { level: 9 }));
    const body = cache.get(file);
    transferred.bytes += body.length;
    response.writeHead(200, {
      "content-type": TYPES[extname(file)] ?? "application/octet-stream",
      "content-encoding": "gzip",
      "content-length": body.length,
    });
    response.end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => server.close(),
    transferred,
    createReadStream,
  };
}

export function launch() {
  const path =
    process.env.CHROMIUM ??
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
  if (!path) return null;
  return chromium.launch({
    executablePath: path,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
    ],
  });
}

/** Opens the page and waits until its engine answers. Errors of the page are collected in `errors`. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
    colorScheme: options.colours ?? "light",
  });
  const page = await context.newPage();
  page.errors = [];
  page.on("pageerror", (e) => page.errors.push(String(e)));
  page.on("console", (m) => m.type() === "error" && page.errors.push(m.text()));
  await page.goto(url);
  await page.waitForSelector("body.ready", { timeout: options.timeout ?? 60000 });
  return page;
}

export const test = (page, name) => page.locator(`[data-test="${name}"]`);

/** Opens an example of the gallery. */
export async function example(page, id) {
  await test(page, "examples").click();
  await page.locator(`[data-example="${id}"]`).click();
}

/** Replaces the kernel's text like a paste. */
export async function write(page, text) {
  await page.locator(".left .editor .cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

export const tab = (page, name) => page.locator(`#tab-${name}`).click();

export async function status(page, pattern, timeout = 30000) {
  await page.waitForFunction(
    ([source]) => new RegExp(source).test(document.getElementById("status").textContent),
    [pattern.source],
    { timeout },
  );
}
