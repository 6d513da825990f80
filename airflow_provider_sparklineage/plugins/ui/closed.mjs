// Makes a script that can stand in a script element: no text in it begins or ends one.

export function closed() {
  return {
    name: "closed",
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.code?.includes("<!--")) throw new Error(`${chunk.fileName} has a comment of HTML`);
        chunk.code = chunk.code?.replaceAll(/<(?=\/?script)/gi, "\\x3c");
      }
    },
  };
}
