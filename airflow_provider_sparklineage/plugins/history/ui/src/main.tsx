// The page in an element: its own React in a shadow tree, so that neither Airflow's style sheets nor
// its version of React matter.

import { createRoot } from "react-dom/client";
import flow from "@xyflow/react/dist/style.css?inline";

import { Api } from "./api";
import { App } from "./App";
import page from "./page.css?inline";

export function mount(host: HTMLElement, api: URL): () => void {
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [flow, page].map((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    return sheet;
  });
  const main = document.createElement("main");
  main.className = "lineage";
  shadow.replaceChildren(main);
  const unfollow = followTheme(main);
  const root = createRoot(main);
  root.render(<App api={new Api(api)} />);
  return () => {
    unfollow();
    root.unmount();
  };
}

// Airflow has its theme in a class of the document, and changes it without loading anew.
function followTheme(main: HTMLElement): () => void {
  const page = document.documentElement;
  const follow = () => {
    main.dataset.theme = page.classList.contains("dark") ? "dark" : "light";
  };
  follow();
  const observer = new MutationObserver(follow);
  observer.observe(page, { attributes: true, attributeFilter: ["class"] });
  return () => observer.disconnect();
}
