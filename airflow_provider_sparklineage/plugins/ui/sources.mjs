// Writes sources.json next to what is built: a checksum over all that it is built from. Python makes
// the same in tests/unit/plugins/test_page.py, which compares the two.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const HERE = import.meta.dirname;

const sha256 = (content) => createHash("sha256").update(content).digest("hex");

function files() {
  const found = readdirSync(HERE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(HERE.length + 1).replaceAll("\\", "/"));
  return found.filter((name) => !name.startsWith("node_modules/")).sort();
}

export function checksum() {
  const lines = files().map((name) => `${name} ${sha256(readFileSync(join(HERE, name)))}\n`);
  return sha256(lines.join(""));
}

export function sources() {
  return {
    name: "sources",
    generateBundle() {
      const source = `${JSON.stringify({ sha256: checksum() })}\n`;
      this.emitFile({ type: "asset", fileName: "sources.json", source });
    },
  };
}
