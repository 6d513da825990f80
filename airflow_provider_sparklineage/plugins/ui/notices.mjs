// Writes NOTICE.txt next to what is built: the licence of each library of which something is in it.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const PACKAGE = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//;

// The folders of the packages that modules are of, also of those that are in other packages' files.
function folders(modules) {
  const found = new Set();
  for (const module of modules) {
    const folder = PACKAGE.exec(module.replaceAll("\\", "/").replace(/^\0/, ""))?.[1];
    if (folder) found.add(folder);
  }
  return [...found].sort();
}

function notice(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const texts = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file)).sort();
  if (!texts.length || !license) throw new Error(`${name} has no licence that could be shipped with it`);
  const content = texts.map((file) => readFileSync(join(folder, file), "utf8").trim());
  return [`${name} ${version} (${license})`, ...content].join("\n\n");
}

// Of libraries that were built into the files of others, the names that these list.
function legal(folder) {
  const file = join(folder, "dist", "dagre.esm.js.LEGAL.txt");
  return existsSync(file) ? readFileSync(file, "utf8").trim() : "";
}

export function notices() {
  return {
    name: "notices",
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((chunk) => Object.keys(chunk.modules ?? {}));
      const line = `\n\n${"-".repeat(100)}\n\n`;
      const parts = folders(modules).flatMap((folder) => [notice(folder), legal(folder)]);
      const head = "The page \"Spark lineage\" contains these libraries, each under its own licence.";
      const source = `${[head, ...parts.filter(Boolean)].join(line)}\n`;
      this.emitFile({ type: "asset", fileName: "NOTICE.txt", source });
    },
  };
}
