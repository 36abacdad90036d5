// Every scenario in every arm: how many of its runs were right; a cell leads to its transcripts.
import { h, section } from "./element.js";
import { plural } from "./numbers.js";
import { toRun } from "./route.js";
import { grade } from "./shares.js";
import { scrolling } from "./table.js";

const SIGNS = { all: "✓", some: "~", none: "✗" };

/** Returns the section. */
export function matrixSection({ arms, scenarios, runs }) {
  const cells = new Map(runs.map((cell) => [cell.name, cell]));
  const columns = h("tr", {}, h("th", { scope: "col" }, "scenario"), arms.map(({ name }) => h("th", { scope: "col", class: "number" }, name)));
  const bodies = ["easy", "medium", "hard"].map((tier) => body(tier, arms, scenarios.filter((one) => one.tier === tier), cells));
  const caption = h("caption", { class: "unseen" }, "Right runs per scenario and arm");
  return section(
    "matrix",
    "Scenarios",
    h("p", {}, "Right runs per scenario and arm: ✓ all, ~ some, ✗ none. Select a cell to see its runs and transcripts."),
    scrolling("Right runs per scenario and arm", h("table", { class: "cells" }, caption, h("thead", {}, columns), bodies)),
  );
}

function body(tier, arms, scenarios, cells) {
  if (!scenarios.length) return null;
  const title = h("tr", { class: "tier" }, h("th", { scope: "rowgroup", colspan: arms.length + 1 }, `${tier} (${plural(scenarios.length, "scenario")})`));
  const rows = scenarios.map(({ id, title: says }) =>
    h("tr", {}, h("th", { scope: "row", title: says }, id), arms.map(({ name }) => h("td", {}, cell(cells.get(`${id}[${name}]`))))),
  );
  return h("tbody", {}, title, rows);
}

function cell({ name, passed, runs }) {
  const how = grade(passed, runs);
  return h(
    "a",
    { class: `cell ${how}`, href: toRun(name), "data-cell": name },
    h("span", { class: "unseen" }, `${name}: `),
    h("span", { "aria-hidden": "true" }, SIGNS[how]),
    ` ${passed}/${runs}`,
  );
}
