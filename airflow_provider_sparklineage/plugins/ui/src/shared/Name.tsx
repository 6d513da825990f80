// Names, and links to where something is shown: no text of an event ever becomes markup.

import { Fragment, type ReactNode } from "react";

import { partsOf, shown } from "./names";

// A name of somebody else's: its direction is its own and turns nothing around it.
export function Name({ text, className }: { text: string; className?: string }) {
  return <bdi className={className} title={shown(text)} dir="auto">{shown(text)}</bdi>;
}

// A name that breaks between its parts, where a line is too short for it.
export function Parted({ text, className, title }: { text: string; className?: string; title?: string }) {
  return (
    <bdi className={className} title={title ?? (className && shown(text))}>
      {partsOf(shown(text)).map((part, n) => <Fragment key={n}>{n > 0 && <wbr />}{part}</Fragment>)}
    </bdi>
  );
}

interface LinkProps {
  url: string | undefined;
  children: ReactNode;
  otherwise?: ReactNode;
  label?: string | undefined; // for a screen reader, where links to several things have one text
}

// A link, but only of the kind that a browser follows to a page; else the text alone, if it is wanted.
export function Link({ url, children, otherwise = null, label }: LinkProps) {
  const target = url ? targetOf(url) : null;
  if (!target) return otherwise;
  return <a href={target} target="_blank" rel="noopener noreferrer" aria-label={label}>{children}</a>;
}

function targetOf(url: string): string | null {
  const target = URL.canParse(url, document.baseURI) ? new URL(url, document.baseURI) : null;
  return target && ["http:", "https:"].includes(target.protocol) ? target.href : null;
}
