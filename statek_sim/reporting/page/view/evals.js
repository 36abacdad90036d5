// The page of an experiment: which parts of a harness earn their keep, and whether the difference is real.
import { index, runNamed } from "./data.js";
import { fill, h, section } from "./element.js";
import { armsSection } from "./evals_arms.js";
import { cellPage } from "./evals_cell.js";
import { flowSection } from "./evals_flow.js";
import { matrixSection } from "./evals_matrix.js";
import { arrive, frame } from "./frame.js";
import { count, plural } from "./numbers.js";
import { parse } from "./route.js";
import { noSuchRun } from "./run.js";
import { share } from "./shares.js";
import { heading, stacked, table } from "./table.js";

const SHORT = { arms: "Arms", tests: "Is it real?", matrix: "Scenarios", flow: "Failures", words: "Glossary" };
const SIGNS = { different: "≠", "different here": "≠", "cannot tell": "?", "not exercised": "·" };
const WORDS = [
  ["Arm", "The harness with some of its parts enabled. All arms use the same model and the same random numbers."],
  ["Right", "A run that met every requirement: its calls, the state of the world, and an answer that cites what was found."],
  ["Completed", "A run that ended with an answer, right or not."],
  ["95 % by scenarios", "The interval for scenarios like these. Runs of one scenario are alike, so scenarios are resampled, not runs."],
  ["Wasted calls", "Calls that failed, were rejected or repeated an answered call, and corrections."],
  ["pass^k", "The probability that k runs of a scenario are all right."],
  ["p", "The exact McNemar test over pairs with the same scenario and seed, Holm-adjusted for all comparisons."],
  ["Assumed", "A simulated model's rates are not measured; its author chose them."],
];

const main = document.getElementById("main");
const home = h(
  "div",
  { class: "home" },
  h("header", {}, h("h1", { tabindex: -1 }, index.title), provenance(index)),
  armsSection(index),
  index.tests.length > 0 && section("tests", "Is the difference real?", tests(index.tests)),
  matrixSection(index),
  flowSection(index),
  section("rates", "Model rates", rates(index.rates)),
  section("words", "Glossary", words()),
);
let left = null; // the cell that was shown last

function provenance({ model, arms, scenarios, seeds, left_out: missing }) {
  const what = [
    model.title,
    plural(scenarios.length, "scenario"),
    plural(arms.length, "arm"),
    `${plural(seeds, "seed")} each`,
  ];
  const note = missing > 0 && ` · transcripts for ${plural(missing, "cell")} were omitted to keep the file small`;
  return h("p", { class: "soft" }, what.join(" · "), note);
}

function tests(all) {
  const columns = [
    { label: "arms", value: ({ arms }) => heading(`${arms[0]} against ${arms[1]}`), header: true },
    { label: "difference, points", value: ({ difference }) => points(difference), numeric: true },
    { label: "95 % by scenarios", value: ({ interval }) => h("span", { class: "text" }, interval.map(points).join(" to ")), numeric: true },
    { label: "only one right", value: ({ only }) => only.map(count).join(" : "), numeric: true },
    { label: "p (Holm)", value: ({ p }) => (p < 0.00005 ? "< 0.0001" : p.toFixed(4)), numeric: true },
    { label: "answer", value: (test) => answer(test) },
  ];
  return stacked(table("Differences between arms", columns, all));
}

function answer({ answer: kind, says }) {
  const sign = h("span", { "aria-hidden": "true" }, SIGNS[kind]);
  return h("span", { class: "roomy" }, h("b", {}, sign), " ", says);
}

function points(number) {
  const text = Math.abs(100 * number).toFixed(1);
  return text === "0.0" ? "0.0" : `${number < 0 ? "−" : "+"}${text}`;
}

function rates(all) {
  const columns = [
    { label: "class", value: (rate) => heading(rate.class), header: true },
    { label: "rate", value: ({ rate }) => share(rate), numeric: true },
  ];
  return [
    h("p", {}, "A class's rate is its mean over scenarios: each scenario has its own. Every rate is assumed."),
    stacked(table("Model rates", columns, all)),
  ];
}

function words() {
  const terms = WORDS.map(([term, meaning]) => h("div", {}, h("dt", {}, term), h("dd", {}, meaning)));
  return h("dl", { class: "words" }, terms);
}

function show() {
  const route = parse(location.hash);
  if (route.view === "home") showHome(route.part);
  else showCell(route.name);
}

function showHome(part) {
  const first = !main.hasChildNodes();
  const returned = !home.isConnected && part === "matrix" && left;
  if (!home.isConnected) fill(main, home);
  document.title = index.title;
  if (first && !part) return;
  const link = returned && home.querySelector(`a[data-cell="${CSS.escape(left)}"]`);
  arrive(link || document.getElementById(`${part}-title`) || home.querySelector("h1"));
}

function showCell(name) {
  const cell = runNamed(name);
  fill(main, h("article", {}, cell ? cellPage(cell) : noSuchRun(name, "matrix")));
  document.title = `${name} – ${index.title}`;
  left = name;
  arrive(main.querySelector("h1"));
}

frame(home, SHORT, main, show);
