// Tables of numbers: what every chart shows, for those who read it and do not see it.
import { h } from "./element.js";

/**
 * Returns a table. A column is `{ label, value(row), numeric, header }`, where `value` gives text or an element and
 * `header` marks the one that names its row. `label` names the table for screen readers.
 */
export function table(label, columns, rows) {
  const head = h(
    "tr",
    {},
    columns.map((column) => h("th", { scope: "col", class: kind(column) }, column.label)),
  );
  const body = rows.map((row) =>
    h(
      "tr",
      {},
      columns.map((column) => cell(column, row)),
    ),
  );
  const made = h(
    "table",
    {},
    h("caption", { class: "unseen" }, label),
    h("thead", {}, head),
    h("tbody", {}, body),
  );
  return scrolling(label, made);
}

function cell(column, row) {
  const value = column.value(row);
  if (column.header) return h("th", { scope: "row", class: kind(column) }, value);
  return h("td", { class: kind(column) }, value);
}

const kind = (column) => (column.numeric ? "number" : null);

/** Returns a frame for something wide, which scrolls by itself and not the page; reachable with the keyboard. */
export function scrolling(label, content) {
  return h("div", { class: "wide", role: "region", "aria-label": label, tabindex: 0 }, content);
}
