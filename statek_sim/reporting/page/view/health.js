// The metrics of document 002 over the runs: of all together, and of each suite.
import { h, section } from "./element.js";
import { count, plural, seconds } from "./numbers.js";
import { heading, stacked, table } from "./table.js";
import { together } from "./text.js";

const SIGNS = { healthy: "✓", warn: "!", alert: "✗", unknown: "–", tracked: "" };
const SHARE = new Intl.NumberFormat("en-US", { style: "percent", maximumFractionDigits: 1 });
const MONEY = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", maximumFractionDigits: 4 });
const PLACES = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** Returns the section for what `metrics_json` made of the runs, without the runs themselves. */
export function health(metrics) {
  const all = metrics.all;
  const open = all.open ? `, ${count(all.open)} did not end` : "";
  return section(
    "health",
    "Agent health",
    h(
      "p",
      {},
      `${plural(all.tasks, "task")} ended, ${count(all.completed)} of them completed${open}. Suites also test failures, ` +
        "so an alert here does not mean that a run failed.",
    ),
    stacked(ofAll(metrics)),
    h("h3", {}, "By suite"),
    stacked(bySuite(metrics)),
  );
}

function ofAll({ definitions, all }) {
  return table(
    "Metrics of all runs",
    [
      { label: "metric", value: (one) => heading(one.title), header: true },
      { label: "value", value: (one) => shown(one, all.metrics[one.name].value), numeric: true },
      { label: "is", value: (one) => status(all.metrics[one.name]) },
      { label: "why", value: (one) => h("span", { class: "text" }, together(all.metrics[one.name].why || "–")) },
      { label: "formula", value: (one) => h("span", { class: "text" }, one.formula) },
    ],
    definitions,
  );
}

function bySuite({ definitions, groups }) {
  const judged = definitions.filter((one) => one.alerts);
  return table(
    "Metrics by suite",
    [
      { label: "suite", value: (group) => heading(group.name), header: true },
      { label: "tasks", value: (group) => count(group.tasks), numeric: true },
      ...judged.map((one) => ({
        label: one.title,
        value: (group) => {
          const found = group.metrics[one.name];
          const bad = found.status === "alert" || found.status === "warn";
          return `${shown(one, found.value)}${bad ? ` ${SIGNS[found.status]}` : ""}`;
        },
        numeric: true,
      })),
    ],
    groups,
  );
}

function status({ status: word }) {
  const tone = { healthy: " good", alert: " bad" }[word] ?? "";
  return h(
    "span",
    { class: `outcome${tone}` },
    h("span", { "aria-hidden": "true" }, SIGNS[word]),
    " ",
    word,
  );
}

function shown({ unit }, value) {
  if (value === null) return "–";
  if (unit === "share") return SHARE.format(value);
  if (unit === "dollars") return MONEY.format(value);
  if (unit === "seconds") return seconds(value);
  return unit === "tokens" ? count(Math.round(value)) : PLACES.format(value);
}
