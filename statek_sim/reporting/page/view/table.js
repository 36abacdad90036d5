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

/** Gives each cell its column's name: on narrow screens a row becomes a block that shows it beside the value. */
export function stacked(frame) {
  frame.classList.add("stacked");
  const labels = [...frame.querySelectorAll("thead th")].map((each) =>
    each.textContent.replace(/[▲▼]/g, "").trim(),
  );
  for (const row of frame.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((each, column) => (each.dataset.label = labels[column]));
  }
  return frame;
}

/** Returns what names a row: where rows are blocks it stands above the others, without its column's name. */
export function heading(text) {
  return h("span", { class: "heading" }, text);
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
