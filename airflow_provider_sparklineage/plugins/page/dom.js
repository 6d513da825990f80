// Elements of text: no text of an event ever becomes markup.

// A name can be of any length; what is longer than this can only be there to break something.
const LONGEST = 2000;
// Control characters have no look; separators that turn or hide text have one of their own here.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

export function shown(value) {
  const text = value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value;
  return text.replace(INVISIBLE, "\ufffd");
}

// An element with classes ("div.card.lit"), properties and children: elements, or texts.
export function make(what, properties = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "title") element.title = shown(value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  for (const child of children) {
    if (child) element.append(typeof child === "string" ? shown(child) : child);
  }
  return element;
}

// A name of somebody else's: its direction is its own and turns nothing around it.
export const name = (text, what = "bdi") => make(what, { title: text, dir: "auto" }, text);

// "1 column", "30,000 columns".
export const counted = (number, what) =>
  `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

// A link, but only of the kind that a browser follows to a page.
export function link(text, url) {
  let target;
  try {
    target = new URL(url, document.baseURI);
  } catch {
    return null;
  }
  if (!["http:", "https:"].includes(target.protocol)) return null;
  return make("a", { href: target.href, target: "_blank", rel: "noopener noreferrer" }, text);
}
