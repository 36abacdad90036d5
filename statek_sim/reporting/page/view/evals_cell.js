// One scenario in one arm: its runs, and what was said in one that was wrong and one that was right.
import { details, index } from "./data.js";
import { h, onDemand, section } from "./element.js";
import { count, plural } from "./numbers.js";
import { toPart, toRun } from "./route.js";
import { heading, stacked, table } from "./table.js";
import { transcript } from "./transcript.js";
import { outcome } from "./words.js";

/** Returns the page of a cell. */
export function cellPage(cell) {
  const scenario = index.scenarios.find(({ id }) => id === cell.scenario);
  const found = details(cell);
  return [
    h(
      "header",
      { class: "run-head" },
      h("p", {}, h("a", { href: toPart("matrix") }, "← Back to the scenarios")),
      h("h1", { tabindex: -1 }, scenario.title),
      h("p", { class: "facts" }, h("code", {}, cell.name), `${cell.passed} of ${plural(cell.runs, "run")} right`, h("span", { class: "soft" }, `${scenario.tier}, ${scenario.capability}`)),
      h("p", { class: "tags" }, "Other arms: ", others(cell)),
    ),
    ...(found ? told(found) : [h("p", { class: "empty" }, "This cell's runs were omitted to keep the file small.")]),
  ];
}

function others({ scenario, arm }) {
  return index.arms
    .filter(({ name }) => name !== arm)
    .map(({ name }) => [h("a", { href: toRun(`${scenario}[${name}]`) }, name), " "]);
}

function told({ seeds, transcripts }) {
  return [
    ...transcripts.map(conversation),
    section("seeds", "All runs", stacked(table("All runs", COLUMNS, seeds))),
  ];
}

const COLUMNS = [
  { label: "seed", value: ({ seed }) => heading(`seed ${seed}`), header: true },
  { label: "outcome", value: ({ passed }) => outcome(passed ? "passed" : "failed") },
  { label: "ended by", value: ({ stop }) => stop },
  { label: "requests", value: ({ turns }) => count(turns), numeric: true },
  { label: "missing", value: ({ problems }) => h("span", { class: "roomy" }, problems.join("; ") || "–") },
];

function conversation({ seed, passed, task, answer, turns, entries }) {
  const failed = turns.filter(({ failure }) => failure);
  return section(
    `seed-${seed}`,
    `Seed ${seed}, ${passed ? "right" : "not right"}`,
    h("p", {}, h("b", {}, "Task: "), task),
    h("p", {}, h("b", {}, "Answer: "), answer ?? h("span", { class: "soft" }, "none")),
    failed.length > 0 && [h("h3", {}, "Turns where the model failed"), stacked(table("Turns where the model failed", TURNS, failed))],
    h("h3", {}, "Transcript"),
    passed ? onDemand("Show the transcript", () => transcript(entries, `transcript-${seed}`).element) : transcript(entries, `transcript-${seed}`).element,
  );
}

const TURNS = [
  { label: "turn", value: ({ turn }) => heading(`turn ${turn}`), header: true },
  { label: "failure", value: ({ failure }) => failure.replaceAll("_", " ") },
  { label: "how", value: ({ how }) => h("span", { class: "roomy" }, how || "–") },
  { label: "rescue", value: ({ stage }) => stage ?? "–" },
  { label: "corrected with", value: ({ nudged }) => h("span", { class: "text" }, nudged?.replaceAll("_", " ") ?? "–") },
];
