// Style sheets of a shadow tree or of a document, and Airflow's theme.

import shared from "./shared.css?inline";

// Add what all pages share, and then the sheets of one of them.
export function adopt(root: ShadowRoot | Document, ...texts: string[]) {
  const sheets = [shared, ...texts].map((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    return sheet;
  });
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, ...sheets];
}

// Airflow has its theme in a class of the document, and changes it without loading anew.
export function followTheme(main: HTMLElement): () => void {
  const page = document.documentElement;
  const follow = () => {
    main.dataset.theme = page.classList.contains("dark") ? "dark" : "light";
  };
  follow();
  const observer = new MutationObserver(follow);
  observer.observe(page, { attributes: true, attributeFilter: ["class"] });
  return () => observer.disconnect();
}
