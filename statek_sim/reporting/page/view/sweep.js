// What other limits would do: healthy workloads stopped against what runaways use.
import { h, section } from "./element.js";
import { figure } from "./figure.js";
import { count, plural } from "./numbers.js";
import { stacked, table } from "./table.js";

const WIDE = 10; // columns, past which a heat map takes the whole width
// How opaque the most is: the number on it keeps a contrast of 4.5, in light and in dark.
const STRONGEST = 0.52;
const MEASURES = [
  {
    key: "killed",
    title: "Healthy workloads stopped too early",
    unit: "workloads",
    colour: "var(--measured)",
  },
  {
    key: "runaway_tokens",
    title: "Tokens that runaways used",
    unit: "tokens",
    colour: "var(--estimate)",
  },
];

/** Returns the section for the sweep: a heat map per measure, and the frontier, where neither can be had for less. */
export function sweepSection(sweep) {
  const rows = cells(sweep);
  const best = rows.filter((cell) => cell.best);
  const limits = [sweep.x.limit, sweep.y?.limit].filter(Boolean).join(" and ");
  return section(
    "sweep",
    "The trade-off between limits",
    h(
      "p",
      {},
      `${plural(sweep.healthy, "healthy workload")} and ${plural(sweep.runaways, "runaway")}, run again under the preset `,
      `${sweep.preset} with ${plural(rows.length, "setting")} of ${limits}. `,
      `${plural(best.length, "setting is", "settings are")} on the frontier: `,
      "no other one stops fewer healthy workloads and lets runaways use less.",
    ),
    h(
      "div",
      { class: sweep.x.values.length > WIDE ? null : "pair" },
      MEASURES.map((measure) => heatMap(sweep, rows, measure)),
    ),
    h("h3", {}, "On the frontier"),
    stacked(numbers(sweep, best, "Settings on the frontier")),
  );
}

function cells(sweep) {
  const best = new Set(sweep.frontier);
  return sweep.cells.map((cell, at) => ({
    ...cell,
    best: best.has(at),
    own: at === sweep.current,
    across: count(cell.x),
    down: cell.y === null ? "" : count(cell.y),
  }));
}

function heatMap(sweep, rows, measure) {
  return figure({
    title: `${measure.title}.`,
    says: "The stronger the colour, the more; frames mark the frontier, a dashed one the preset's own values.",
    spec: (width) => spec(sweep, rows, measure, width),
    numbers: () => numbers(sweep, rows, measure.title),
  });
}

function numbers(sweep, rows, label) {
  const cost = rows.some((cell) => cell.runaway_cost !== null);
  return table(
    label,
    [
      { label: sweep.x.limit, value: (cell) => count(cell.x), numeric: true, header: true },
      ...(sweep.y ? [{ label: sweep.y.limit, value: (cell) => count(cell.y), numeric: true }] : []),
      {
        label: "healthy workloads stopped",
        value: (cell) => `${count(cell.killed)} of ${count(cell.healthy)}`,
        numeric: true,
      },
      { label: "runaway, tokens", value: (cell) => count(cell.runaway_tokens), numeric: true },
      ...(cost ? [{ label: "runaway, cost", value: (cell) => cell.runaway_cost ?? "–", numeric: true }] : []),
      ...(rows.some((cell) => cell.own)
        ? [{ label: "note", value: (cell) => (cell.own ? "the preset's own" : "–") }]
        : []),
      {
        label: "stopped",
        value: (cell) => names(cell.killed_names),
      },
    ],
    rows,
  );
}

/** Names of workloads; the suite that all have in common says nothing. */
function names(killed) {
  const short = killed.map((name) => name.slice(name.indexOf("/") + 1));
  return h("span", { class: "roomy", title: killed.join(", ") || null }, short.join(", ") || "–");
}

function spec(sweep, rows, { key, unit, colour }, width) {
  const most = Math.max(1, ...rows.map((cell) => cell[key]));
  const columns = sweep.x.values.length;
  const room = (width - 90) / columns;
  const axis = (limit) => ({
    title: limit,
    labelAngle: 0,
    ticks: false,
    domain: false,
    labelOverlap: true,
    labelSeparation: 4,
    titlePadding: 10,
  });
  const position = {
    x: { field: "across", type: "ordinal", sort: sweep.x.values.map(count), axis: axis(sweep.x.limit) },
    y: {
      field: "down",
      type: "ordinal",
      sort: sweep.y?.values.map(count).reverse(),
      axis: sweep.y ? axis(sweep.y.limit) : null,
    },
  };
  const shown = { data: { values: rows.map((cell) => ({ ...cell, short: short(cell[key]) })) } };
  const layers = [
    {
      mark: { type: "rect", color: colour, cornerRadius: 2 },
      encoding: {
        opacity: {
          field: key,
          type: "quantitative",
          scale: { domain: [0, most], range: [0.06, STRONGEST] },
          legend: null,
        },
        tooltip: [
          { field: "across", title: sweep.x.limit },
          ...(sweep.y ? [{ field: "down", title: sweep.y.limit }] : []),
          { field: key, title: unit, format: "," },
        ],
      },
    },
    {
      transform: [{ filter: "datum.best" }],
      mark: { type: "rect", fill: null, stroke: "var(--ink)", strokeWidth: 2.5, cornerRadius: 2 },
    },
    {
      transform: [{ filter: "datum.own" }],
      // Beside the number in the middle of the cell, and inside of a frame of the frontier.
      mark: {
        type: "rect",
        fill: null,
        stroke: "var(--ink)",
        strokeWidth: 1.5,
        strokeDash: [4, 2],
        cornerRadius: 2,
        width: { band: 0.86 },
        height: { band: 0.72 },
      },
    },
  ];
  const texts = {
    mark: { type: "text", fontSize: 11, color: "var(--ink)" },
    encoding: { text: { field: "short" } },
  };
  return {
    ...shown,
    width: "container",
    height: 30 * (sweep.y?.values.length ?? 1),
    autosize: { type: "fit-x", contains: "padding" },
    encoding: position,
    layer: room > 30 ? [...layers, texts] : layers,
  };
}

const short = (number) => (number >= 10000 ? `${count(Math.round(number / 1000))}k` : count(number));
