// Arms beside each other: how often they are right, and between which bounds that is for scenarios like these.
import { h, section } from "./element.js";
import { figure } from "./figure.js";
import { count } from "./numbers.js";
import { share } from "./shares.js";
import { heading, stacked, table } from "./table.js";

/** Returns the section. */
export function armsSection({ arms }) {
  return section(
    "arms",
    "Arms",
    story(arms),
    figure({
      title: "Right and completed, by arm.",
      says: "Dots show the percentage of right runs, lines the 95 % interval by scenarios, ticks the percentage of completed runs.",
      spec: (width) => spec(arms, width),
      numbers: () => numbers(arms),
    }),
    h("h3", {}, "Mean cost per run"),
    costs(arms),
  );
}

function story(arms) {
  const full = arms.find(({ name }) => name === "full");
  const bare = arms.find(({ name }) => name === "bare");
  if (!full || !bare) return null;
  return h(
    "p",
    { class: "story" },
    "Right runs: ",
    h("b", { class: "reported" }, share(full.score)),
    " with the full harness, ",
    h("b", { class: "measured" }, share(bare.score)),
    " with the bare harness.",
  );
}

function numbers(arms) {
  const powers = Object.keys(arms[0].powers);
  const columns = [
    { label: "arm", value: (arm) => heading(arm.name), header: true },
    { label: "parts", value: (arm) => h("span", { class: "text" }, parts(arm)) },
    { label: "runs", value: (arm) => count(arm.runs), numeric: true },
    { label: "completed", value: (arm) => share(arm.completion), numeric: true },
    { label: "right", value: (arm) => share(arm.score), numeric: true },
    { label: "95 % by scenarios", value: (arm) => arm.interval.map(share).join(" – "), numeric: true },
    ...powers.map((k) => ({ label: `pass^${k}`, value: (arm) => (k in arm.powers ? share(arm.powers[k]) : "–"), numeric: true })),
  ];
  return stacked(table("Arms", columns, arms));
}

function parts({ parts: on }) {
  return on.join(", ") || "none";
}

function costs(arms) {
  const priced = arms.some(({ cost }) => cost !== null);
  const columns = [
    { label: "arm", value: (arm) => heading(arm.name), header: true },
    { label: "requests", value: (arm) => arm.requests.toFixed(1), numeric: true },
    { label: "calls", value: (arm) => arm.calls.toFixed(1), numeric: true },
    { label: "wasted", value: (arm) => arm.wasted.toFixed(1), numeric: true },
    ...["measured", "estimated"].map((way) => ({
      label: `tokens ${way}`,
      value: ({ tokens }) => count(Math.round(tokens[way])),
      numeric: true,
    })),
    ...(priced
      ? [{ label: "US$ per 1,000 runs", value: ({ cost }) => (cost === null ? "–" : cost.toFixed(2)), numeric: true }]
      : []),
  ];
  return stacked(table("Mean cost per run", columns, arms));
}

function spec(arms, width) {
  const rows = arms.map(({ name, score, completion, interval: [low, high] }) => ({ name, score, completion, low, high }));
  const axis = { format: "%", title: null, values: [0, 0.25, 0.5, 0.75, 1] };
  return {
    width,
    height: 34 * rows.length,
    autosize: { type: "fit-x", contains: "padding" },
    data: { values: rows },
    encoding: {
      y: { field: "name", type: "nominal", sort: null, axis: { title: null, ticks: false, domain: false, labelLimit: width / 3, labelPadding: 10 } },
      tooltip: [
        { field: "name", title: "arm" },
        { field: "score", title: "right", format: ".1%" },
        { field: "low", title: "from", format: ".1%" },
        { field: "high", title: "to", format: ".1%" },
        { field: "completion", title: "completed", format: ".1%" },
      ],
    },
    layer: [
      {
        mark: { type: "rule", strokeWidth: 5, opacity: 0.45, color: "var(--reported)" },
        encoding: {
          x: { field: "low", type: "quantitative", scale: { domain: [0, 1] }, axis },
          x2: { field: "high" },
        },
      },
      { mark: { type: "tick", thickness: 3, color: "var(--measured)", size: 18 }, encoding: { x: { field: "completion", type: "quantitative" } } },
      { mark: { type: "point", filled: true, size: 110, opacity: 1, color: "var(--reported)" }, encoding: { x: { field: "score", type: "quantitative" } } },
    ],
  };
}
