// How far the estimate is from the tokens of the same dialogue in different languages and kinds of text.
import { section } from "./element.js";
import { figure } from "./figure.js";
import { count, plural, times } from "./numbers.js";
import { table } from "./table.js";

/** Returns the section for cells `{ text, turns, tools, approx, measured, ratio }`. */
export function languages(cells) {
  const over = cells.filter((cell) => cell.ratio > 1).length;
  const extremes = [...cells].sort((a, b) => a.ratio - b.ratio);
  const least = extremes[0];
  const most = extremes.at(-1);
  return section(
    "languages",
    "Estimate against measured, by language",
    figure({
      title: "Harness estimate ÷ measured tokens.",
      says:
        "The same dialogue in each kind of text. " +
        `The estimate is too high in ${over} of ${plural(cells.length, "case")}: ` +
        `from ${described(least)} to ${described(most)}.`,
      spec: (width) => spec(cells, width),
      numbers: () => numbers(cells),
    }),
  );
}

const described = (cell) => `${times(cell.approx, cell.measured)} for ${cell.text} (${label(cell)})`;
const label = ({ turns, tools }) => `${plural(turns, "turn")}${tools ? ", tools" : ""}`;

function numbers(cells) {
  return table(
    "Estimate against measured, by language",
    [
      { label: "text", value: (cell) => cell.text, header: true },
      { label: "turns", value: (cell) => count(cell.turns), numeric: true },
      { label: "tools", value: (cell) => (cell.tools ? "yes" : "no") },
      { label: "estimate, tokens", value: (cell) => count(cell.approx), numeric: true },
      { label: "measured, tokens", value: (cell) => count(cell.measured), numeric: true },
      { label: "estimate\u00a0÷ measured", value: (cell) => times(cell.approx, cell.measured), numeric: true },
    ],
    cells,
  );
}

function spec(cells, width) {
  const narrow = width < 520;
  const turns = [...new Set(cells.map((cell) => cell.turns))].sort((a, b) => a - b);
  const rows = cells.map((cell) => ({ ...cell, offered: cell.tools ? "with tools" : "without tools" }));
  return {
    width: "container",
    height: 24 * new Set(cells.map((cell) => cell.text)).size,
    autosize: { type: "fit-x", contains: "padding" },
    data: { values: rows },
    layer: [
      {
        data: { values: [{}] },
        mark: { type: "rule", strokeWidth: 1.5 },
        encoding: { x: { datum: 1, type: "quantitative" } },
      },
      {
        mark: { type: "point", filled: true, size: 70, opacity: 0.9 },
        encoding: {
          y: {
            field: "text",
            type: "nominal",
            title: null,
            axis: { grid: true, ticks: false, domain: false },
            sort: { field: "ratio", op: "median", order: "descending" },
          },
          x: {
            field: "ratio",
            type: "quantitative",
            scale: { type: "log", nice: false, padding: 12 },
            title: narrow
              ? "← too low · exact at 1 · too high →"
              : "← the estimate is too low · exact at 1 · the estimate is too high →",
            axis: { values: [0.25, 0.5, 1, 2, 3, 4, 6, 8, 12], format: "~g", grid: true },
          },
          color: {
            field: "turns",
            type: "ordinal",
            title: "turns",
            scale: { domain: turns, range: ["var(--once)", "var(--tool)", "var(--ink)"] },
            legend: narrow ? { title: "turns", orient: "bottom" } : {},
          },
          shape: {
            field: "offered",
            type: "nominal",
            title: null,
            scale: { domain: ["without tools", "with tools"], range: ["circle", "diamond"] },
            // Two legends side by side are wider than a telephone.
            legend: {
              symbolFillColor: "var(--ink)",
              symbolStrokeColor: "var(--ink)",
              orient: narrow ? "bottom" : "top",
              direction: narrow ? "vertical" : "horizontal",
            },
          },
          tooltip: [
            { field: "text" },
            { field: "turns" },
            { field: "offered", title: "tools" },
            { field: "approx", title: "estimate, tokens", format: "," },
            { field: "measured", title: "measured, tokens", format: "," },
            { field: "ratio", title: "estimate ÷ measured", format: ".2f" },
          ],
        },
      },
    ],
  };
}
