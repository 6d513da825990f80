// The forms of squares, which stand for partitions: form and colour, not colour alone.

export const SIZE = 12; // pixels

const MIDDLE = SIZE / 2;

// Around x, in a line of the height SIZE.
export const box = (x: number, size: number): string => `M${x - size / 2},${MIDDLE - size / 2}h${size}v${size}h${-size}z`;

export const crossed = (x: number): string => `${box(x, 9)}m0,0l9,9m0,-9l-9,9`;

export const diamond = (x: number): string => `M${x},0.5l5.5,5.5l-5.5,5.5l-5.5,-5.5z`;

export const triangle = (x: number): string => `M${x},0.5l5.5,10.5h-11z`;

export const triangleDown = (x: number): string => `M${x},11.5l5.5,-10.5h-11z`;

export const dash = (x: number): string => `M${x - 4.5},${MIDDLE}h9`;
