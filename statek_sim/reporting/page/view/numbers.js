// Numbers as people read them, with their units.

const WHOLE = new Intl.NumberFormat("en-US");
const PLACES = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SHORT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });

/** 12,345; a dash where there is no number. */
export const count = (number) => (number === null || number === undefined ? "–" : WHOLE.format(number));

/** +1,234 or −1,234. */
export const signed = (number) => (number < 0 ? `−${WHOLE.format(-number)}` : `+${WHOLE.format(number)}`);

/** 1 run, 2 runs. */
export const plural = (number, noun, many = `${noun}s`) => `${count(number)} ${number === 1 ? noun : many}`;

/** 12.5 s. */
export const seconds = (number) =>
  number === null || number === undefined ? "–" : `${SHORT.format(number)} s`;

/** ×2.31, how many times the second number the first one is; a dash without either. */
export function times(estimate, measured) {
  return measured ? `×${PLACES.format(estimate / measured)}` : "–";
}

/** 62 %. */
export const percent = (part, whole) => `${WHOLE.format(Math.round((100 * part) / whole))} %`;
