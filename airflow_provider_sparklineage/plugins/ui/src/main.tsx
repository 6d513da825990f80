// The page in an element: its own React in a shadow tree, so that neither Airflow's style sheets nor
// its version of React matter.

import { createRoot } from "react-dom/client";
import flow from "@xyflow/react/dist/style.css?inline";

import { Api } from "./api";
import { App } from "./App";
import page from "./page.css?inline";
import { adopt, followTheme } from "./shared/styles";

export function mount(host: HTMLElement, api: URL): () => void {
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [];
  adopt(shadow, flow, page);
  const main = document.createElement("main");
  main.className = "sparklineage";
  shadow.replaceChildren(main);
  const unfollow = followTheme(main);
  const root = createRoot(main);
  root.render(<App api={new Api(api)} />);
  return () => {
    unfollow();
    root.unmount();
  };
}
