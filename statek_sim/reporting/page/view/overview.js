// What passed, what failed and why, and what the whole report used.
import { h, onDemand, section } from "./element.js";
import { count, plural, times } from "./numbers.js";
import { toPart, toRun } from "./route.js";
import { table } from "./table.js";
import { flush } from "./text.js";
import { waterfall } from "./waterfall.js";

const SHOWN = 20;
const LINES = 4; // of a failure, at once

/** Returns the sections about everything in the index. */
export function overview(index) {
  return [
    section(
      "overview",
      "Overview",
      verdict(index.totals),
      story(index.totals),
      tiles(index.totals),
      failures(index),
    ),
    section("suites", "Suites", suites(index)),
    index.waterfall &&
      section(
        "why",
        "Why estimate and measured differ",
        waterfall("From the harness estimate to measured tokens.", index.waterfall, index.meanings),
      ),
  ];
}

function verdict({ runs, passed, failed }) {
  const good = failed === 0;
  const sign = h("span", { "aria-hidden": "true" }, good ? "✓" : "✗");
  const words = !runs
    ? "No run."
    : good
      ? runs === 1 ? " The run passed" : ` All ${plural(runs, "run")} passed`
      : ` ${count(failed)} of ${plural(runs, "run")} failed`;
  const rest = good ? null : h("span", { class: "soft" }, ` · ${count(passed)} passed`);
  return h("p", { class: `verdict ${good ? "good" : "bad"}` }, sign, words, rest);
}

function story({ approx, measured, reported }) {
  return h(
    "p",
    { class: "story" },
    "The harness counts ",
    h("b", { class: "estimate" }, plural(approx, "token")),
    ". The models saw ",
    h("b", { class: "measured" }, count(measured)),
    ". ",
    measured > 0 && `The estimate is ${off(approx / measured)}. `,
    reported !== null && [
      "Providers reported ",
      h("b", { class: "reported" }, count(reported)),
      " where available.",
    ],
  );
}

function off(ratio) {
  const percent = Math.round(Math.abs(ratio - 1) * 100);
  if (!percent) return "right, within 1 %";
  return `${count(percent)} % too ${ratio > 1 ? "high" : "low"}`;
}

function tiles(totals) {
  const facts = [
    ["runs", totals.runs],
    ["jobs", totals.jobs],
    ["turns", totals.turns],
    ["bytes sent", totals.bytes_sent],
    ["bytes received", totals.bytes_received],
  ];
  return h(
    "dl",
    { class: "tiles" },
    facts.map(([term, number]) => h("div", {}, h("dt", {}, term), h("dd", {}, count(number)))),
  );
}

function failures({ failures: failed, runs }) {
  if (!failed.length) return null;
  const items = failed.slice(0, SHOWN).map(({ runs: [first, ...others], text }) =>
    h(
      "li",
      {},
      h("a", { href: toRun(runs[first].name) }, runs[first].name),
      others.map((n) => [" ", h("a", { href: toRun(runs[n].name) }, `[${runs[n].profile}]`)]),
      brief(flush(text)),
    ),
  );
  const more =
    failed.length > SHOWN &&
    h("p", {}, h("a", { href: toPart("runs", { outcome: "failed" }) }, "Show all failed runs"));
  return [h("h3", {}, "Failures"), h("ul", { class: "failures" }, items), more];
}

/** Returns what failed first, without the empty lines between, and on demand the whole text. */
function brief(text) {
  const lines = text.split("\n");
  const filled = lines.filter((line) => line.trim());
  if (filled.length <= LINES) return h("pre", {}, text);
  const shown = filled.slice(0, LINES);
  // A line that only announces the next ones says nothing without them.
  while (shown.length > 1 && shown.at(-1).endsWith(":")) shown.pop();
  const beginning = shown.join("\n");
  return [
    h("pre", {}, beginning, "\n…"),
    onDemand(`Show all ${count(lines.length)} lines`, () => h("pre", {}, text)),
  ];
}

function suites({ suites: all }) {
  const reported = all.some((suite) => suite.reported !== null);
  return table(
    "Suites",
    [
      {
        label: "suite",
        value: (suite) => h("a", { href: toPart("runs", { suite: suite.name }) }, suite.name),
        header: true,
      },
      { label: "runs", value: (suite) => count(suite.runs), numeric: true },
      { label: "passed", value: (suite) => count(suite.passed), numeric: true },
      { label: "failed", value: (suite) => failed(suite), numeric: true },
      { label: "estimate, tokens", value: (suite) => count(suite.approx), numeric: true },
      { label: "measured, tokens", value: (suite) => count(suite.measured), numeric: true },
      { label: "estimate\u00a0÷ measured", value: (suite) => times(suite.approx, suite.measured), numeric: true },
      ...(reported
        ? [{ label: "reported, tokens", value: (suite) => count(suite.reported), numeric: true }]
        : []),
    ],
    all,
  );
}

function failed(suite) {
  if (!suite.failed) return "0";
  return h(
    "a",
    { href: toPart("runs", { suite: suite.name, outcome: "failed" }), class: "bad" },
    `✗ ${count(suite.failed)}`,
  );
}

/** Returns what the report is of, and what is not in it. */
export function provenance({ profiles, preset, seed, digest, totals, left_out: missing }) {
  const settings = [
    `${profiles.length === 1 ? "profile" : "profiles"} ${profiles.join(", ")}`,
    `preset ${preset}`,
    seed === null ? "seeds as written" : `seed ${seed}`,
    `tokens measured with ${totals.tokenizer}`,
  ];
  const note =
    missing > 0 && ` · details for ${plural(missing, "passed run")} were omitted to keep the file small`;
  return h(
    "p",
    { class: "soft" },
    settings.join(" · "),
    " · digest ",
    h("code", { title: digest }, digest.slice(0, 12)),
    note,
  );
}
