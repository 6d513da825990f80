// Builds tab, page and file into ../static. `tab.js` and `page.js` are what Airflow's page asks for
// anew each time; the rest has names with a checksum, and browsers keep it. `file.js`, a build of its own
// (`--mode file`), is one script for the page as one file. Nothing asks another server for anything.

import { defineConfig } from "vite";

import { closed } from "./closed.mjs";
import { notices } from "./notices.mjs";
import { sources } from "./sources.mjs";

// What tab and page have in common.
const SHARED = /node_modules\/(react|react-dom|scheduler|@tanstack)\/|src\/shared\//;

export default defineConfig(({ mode }) => {
  const isFile = mode === "file";
  return {
    base: "./",
    publicDir: false,
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: isFile ? [closed()] : [notices(), sources()],
    build: {
      outDir: "../static",
      emptyOutDir: !isFile,
      target: "es2022",
      modulePreload: false,
      chunkSizeWarningLimit: 1000, // React and the graph are most of it; 180 kB as Airflow sends it
      // A library, because of pages Vite makes modules that load others by a helper, a further file.
      lib: { entry: isFile ? "src/file.tsx" : ["src/tab.ts", "src/page.ts"], formats: ["es"] },
      minify: false, // of libraries Vite keeps the blanks
      rollupOptions: {
        onwarn: (warning, warn) => warning.code === "MODULE_LEVEL_DIRECTIVE" || warn(warning), // "use client"
        output: {
          minify: true,
          entryFileNames: "[name].js",
          chunkFileNames: "[name]-[hash].js",
          codeSplitting: isFile ? false : { groups: [{ name: "shared", test: SHARED }] },
        },
      },
    },
  };
});
