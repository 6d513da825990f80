// Of a long list, what is near to what is in view: only that is drawn in full. An element that is not
// stays as high as it was, or is as high as its like: what is below it must not move.

import { type CSSProperties, type RefObject, useLayoutEffect, useRef, useState } from "react";

// How near to what is in view an element is drawn.
const MARGIN = "600px";

type Turn = (isNear: boolean, height: number) => void;

// The elements of one list, with one observer.
export class Nearness {
  readonly heights = new Map<Element, number>(); // of those that are drawn
  private readonly turns = new Map<Element, Turn>();
  private readonly observer = new IntersectionObserver(
    (seen) =>
      seen.forEach(({ target, isIntersecting, boundingClientRect }) =>
        this.turns.get(target)?.(isIntersecting, boundingClientRect.height)
      ),
    // TypeScript does not know `scrollMargin` yet.
    { rootMargin: MARGIN, scrollMargin: MARGIN } as IntersectionObserverInit
  );

  // How high one of them is; 0 as long as that is not known.
  get usual(): number {
    const heights = [...this.heights.values()].sort((a, b) => a - b);
    return heights[heights.length >> 1] ?? 0;
  }

  observe(element: Element, turn: Turn): () => void {
    this.turns.set(element, turn);
    this.observer.observe(element);
    return () => {
      this.observer.unobserve(element);
      this.turns.delete(element);
      this.heights.delete(element);
    };
  }
}

export const useNearness = (): Nearness => useState(() => new Nearness())[0];

// Whether an element of a list is drawn in full; `style` has its height if not. A short list is drawn
// whole.
export function useNear<E extends HTMLElement>(
  list: Nearness, isMany: boolean
): { ref: RefObject<E | null>; isNear: boolean; style: CSSProperties | undefined } {
  const ref = useRef<E>(null);
  const [height, setHeight] = useState<number | null>(isMany ? list.usual : null); // null while it is near
  const isNear = !isMany || height === null;
  const isDrawn = useRef(isNear);
  useLayoutEffect(() => {
    isDrawn.current = isNear;
  });
  useLayoutEffect(() => {
    const element = ref.current;
    return element ? list.observe(element, (isIn, high) => {
      if (isDrawn.current) list.heights.set(element, high);
      setHeight(isIn ? null : high);
    }) : undefined;
  }, [list]);
  return { ref, isNear, style: isNear || !height ? undefined : { height } };
}
