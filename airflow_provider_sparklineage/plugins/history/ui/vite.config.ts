// Builds the page into ../static: page.js, which Airflow's browser asks for anew each time, and the
// rest under names with a checksum, which it keeps. Nothing of it asks another server for anything.

import { defineConfig } from "vite";

import { notices } from "./notices.mjs";
import { sources } from "./sources.mjs";

export default defineConfig({
  base: "./",
  publicDir: false,
  define: { "process.env.NODE_ENV": '"production"' },
  plugins: [notices(), sources()],
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    chunkSizeWarningLimit: 1000, // React and the graph are most of it; 180 kB as Airflow sends it
    rollupOptions: {
      input: "src/page.ts",
      preserveEntrySignatures: "strict",
      onwarn: (warning, warn) => warning.code === "MODULE_LEVEL_DIRECTIVE" || warn(warning), // "use client"
      output: { entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js", assetFileNames: "[name]-[hash][extname]" },
    },
  },
});
