// Compresses the WebAssembly module for the download: hosts of static files support gzip at best, some no compression.
//
//   node compress.mjs MODULE.wasm COMPRESSED.zst

import { readFileSync, writeFileSync } from "node:fs";
import { compress, init } from "@bokuweb/zstd-wasm";

const [from, to] = process.argv.slice(2);
await init();
writeFileSync(to, compress(readFileSync(from), 22));
