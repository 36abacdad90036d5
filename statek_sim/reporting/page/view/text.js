// Texts of any length: the beginning at once, the rest on demand.
import { h, onDemand } from "./element.js";
import { count } from "./numbers.js";

const PER_LINE = 200;

/** Returns a text as it is written; past so many lines only its beginning, and a way to see it all. */
export function written(text, lines) {
  const all = text.split("\n");
  if (all.length <= lines && text.length <= lines * PER_LINE) return h("pre", {}, text);
  const beginning = all
    .slice(0, lines)
    .join("\n")
    .slice(0, lines * PER_LINE);
  const size = all.length > lines ? `${count(all.length)} lines` : `${count(text.length)} characters`;
  return [h("pre", {}, beginning, "\n…"), onDemand(`Show all ${size}`, () => h("pre", {}, text))];
}

/** Returns what a terminal shows below a name without the two spaces by which it is below: here it stands alone. */
export function flush(told) {
  return told.replace(/^ {2}/gm, "");
}

/** Returns a sentence in which a number stays with its %. */
export function together(sentence) {
  return sentence.replace(/(\d) %/g, "$1\u00a0%");
}

/** Returns a name that may break after each `_`, and so not in the middle of a word. */
export function breakable(name) {
  return name.split(/(?<=_)/).map((part, at) => [at > 0 && h("wbr"), part]);
}

/** Returns a sentence in which names between backquotes are code. */
export function quoted(sentence) {
  return sentence.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
}
