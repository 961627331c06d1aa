import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// `--mode native`: the page only for `wavesim serve`, without the WebAssembly module, which then need not be built.
export default defineConfig(({ mode }) => ({
  // Relative addresses, so that the files work in any folder of any host.
  base: "./",
  resolve: {
    alias:
      mode === "native"
        ? [
            {
              find: /^\.\.\/pkg\/wavesim_web.*$/,
              replacement: fileURLToPath(new URL("src/no-module.ts", import.meta.url)),
            },
          ]
        : [],
  },
  worker: { format: "es" },
  build: {
    target: "es2022",
    outDir: mode === "native" ? "dist-native" : "dist",
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
  },
  server: { fs: { allow: ["../.."] } },
}));
