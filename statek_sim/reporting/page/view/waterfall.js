// From the harness's estimate to the measured tokens, step by step.
import { figure } from "./figure.js";
import { count, signed } from "./numbers.js";
import { table } from "./table.js";

/** Returns the figure for a waterfall, all in tokens; `meanings` says what each of its steps is. */
export function waterfall(title, steps, meanings) {
  const rows = bars(steps, meanings);
  return figure({
    title,
    says: steps.why,
    spec: (width) => spec(rows, width),
    numbers: () =>
      table(
        title,
        [
          { label: "step", value: (row) => row.label, header: true },
          { label: "tokens", value: (row) => row.shown, numeric: true },
          { label: "description", value: (row) => row.meaning },
        ],
        rows,
      ),
  });
}

function bars({ once, history, from, to, steps }, meanings) {
  const total = (label, end, kind, meaning) => ({ label, start: 0, end, kind, shown: count(end), meaning });
  let reached = once;
  const moved = (name, label, tokens) => {
    const start = reached;
    reached += tokens;
    return {
      label,
      start,
      end: reached,
      kind: tokens < 0 ? "less" : "more",
      shown: signed(tokens),
      meaning: meanings[name],
    };
  };
  return [
    total("Each message once", once, "once", "the estimate if each message were sent once"),
    moved("history", "History sent again", history),
    total("Harness estimate", from, "estimate", "bytes sent and received, divided by 4"),
    ...steps.map(({ name, label, tokens }) => moved(name, label, tokens)),
    total("Measured", to, "measured", "tokens counted by a tokenizer"),
  ];
}

/** How much room the number after a bar has, in pixels: `+1,234,567` in 12 px. */
const NUMBER = 75;

function spec(rows, width) {
  const narrow = width < 520;
  const labels = narrow ? 130 : 260;
  const edges = rows.flatMap(({ start, end }) => [start, end]);
  const least = Math.min(0, ...edges);
  const span = Math.max(...edges, 1) - least;
  // The longest bar ends where its number still fits beside it.
  const domain = [least, least + span / (1 - Math.min(0.5, NUMBER / Math.max(width - labels, 1)))];
  const y = {
    field: "label",
    type: "nominal",
    sort: null,
    title: null,
    axis: { labelLimit: labels, ticks: false, domain: false },
  };
  const kinds = ["once", "estimate", "more", "less", "measured"];
  return {
    width: "container",
    height: 30 * rows.length,
    autosize: { type: "fit-x", contains: "padding" },
    data: { values: rows },
    encoding: { y },
    layer: [
      {
        mark: { type: "bar", cornerRadius: 2, height: { band: 0.7 } },
        encoding: {
          x: {
            field: "start",
            type: "quantitative",
            title: "tokens",
            scale: { domain, nice: false },
            axis: {
              tickCount: narrow ? 3 : 6,
              format: narrow ? "~s" : ",d",
              tickMinStep: 1,
              labelExpr: "datum.value === 0 ? '0' : datum.label",
            },
          },
          x2: { field: "end" },
          color: {
            field: "kind",
            type: "nominal",
            legend: null,
            scale: { domain: kinds, range: kinds.map((kind) => `var(--${kind})`) },
          },
          tooltip: [
            { field: "label", title: "step" },
            { field: "shown", title: "tokens" },
            { field: "meaning" },
          ],
        },
      },
      {
        transform: [{ calculate: "max(datum.start, datum.end)", as: "edge" }],
        mark: { type: "text", align: "left", dx: 5 },
        encoding: { x: { field: "edge", type: "quantitative" }, text: { field: "shown" } },
      },
    ],
  };
}
