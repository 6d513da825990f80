// Of a long list, what is near to what is in view: only that is drawn in full. An element that is not
// stays as high as it was, or is as high as its like: what is below it must not move.

import { FIRST } from "./fold.js";

// How near to what is in view an element is drawn.
const MARGIN = "600px";

export class Near {
  // draw: (element, isNear), called where that has changed.
  constructor(draw) {
    this.draw = draw;
    this.drawn = new Set();
    this.observer = new IntersectionObserver(
      (seen) => seen.forEach(({ target, isIntersecting }) => this.#turn(target, isIntersecting)),
      { rootMargin: MARGIN, scrollMargin: MARGIN }
    );
  }

  // These are the list now. A short one is drawn whole. To be called before those of a long one take
  // the place of the first ones, which tell how high one of them is.
  show(elements) {
    this.observer.disconnect();
    if (elements.length <= FIRST) return elements.forEach((element) => this.#turn(element, true));
    const heights = [...this.drawn].map((element) => element.offsetHeight).filter(Boolean);
    const usual = heights.sort((a, b) => a - b)[heights.length >> 1];
    for (const element of elements) {
      if (usual && !this.drawn.has(element)) element.style.height ||= `${usual}px`;
      this.observer.observe(element);
    }
  }

  #turn(element, isNear) {
    if (isNear === this.drawn.has(element)) return;
    element.style.height = isNear ? "" : `${element.offsetHeight}px`;
    if (isNear) this.drawn.add(element);
    else this.drawn.delete(element);
    this.draw(element, isNear);
  }
}
