// The gate's verdicts: does each preset let healthy work finish and stop what runs away?
import { h, onDemand, section } from "./element.js";
import { figure } from "./figure.js";
import { count, plural } from "./numbers.js";
import { table } from "./table.js";
import { quoted } from "./text.js";
import { outcome } from "./words.js";

const WIDEST = 160; // pixels of a preset's column
const LIMITS = {
  max_turns: "turns",
  max_token_usage: "tokens",
  max_exceptions: "exceptions",
  max_consecutive_exceptions: "exceptions in a row",
};

/** Returns the section for the gate's report. */
export function gateSection(gate) {
  const presets = gate.presets.map((preset) => ({
    ...preset,
    own: of(gate.verdicts, "preset", preset.name),
  }));
  return section(
    "gate",
    "Presets and the gate",
    h(
      "p",
      { class: `verdict ${gate.passed ? "good" : "bad"}` },
      gate.passed ? "✓ The gate passes" : "✗ The gate fails",
    ),
    limits(presets),
    presets.map(reasons),
    remarks(gate.remarks),
    h("h3", {}, "Rules"),
    rules(gate.verdicts, presets),
    h("h3", {}, "Scenarios"),
    heatMap(gate.verdicts, presets),
    presets.map(({ name, own }) =>
      onDemand(`All ${plural(own.length, "verdict")} on ${name}`, () => all(name, own)),
    ),
  );
}

const of = (verdicts, key, value) => verdicts.filter((verdict) => verdict[key] === value);

const failures = (verdicts) => verdicts.filter((verdict) => !verdict.passed);

const values = (verdicts, key) => [...new Set(verdicts.map((verdict) => verdict[key]))];

function limits(presets) {
  const shown = Object.entries(LIMITS).map(([key, label]) => ({
    label: `limit, ${label}`,
    value: (preset) => count(preset.limits[key]),
    numeric: true,
  }));
  return table(
    "Presets",
    [
      { label: "preset", value: (preset) => preset.name, header: true },
      { label: "gate", value: (preset) => outcome(failures(preset.own).length ? "failed" : "passed") },
      ...shown,
      { label: "verdicts", value: (preset) => count(preset.own.length), numeric: true },
      { label: "failed", value: (preset) => count(failures(preset.own).length), numeric: true },
    ],
    presets,
  );
}

function reasons({ name, own }) {
  const failed = failures(own);
  if (!failed.length) return null;
  const items = failed.map((verdict) => h("li", {}, quoted(verdict.reason), " ", place(verdict)));
  return [h("h3", {}, `Failures under ${name}`), h("ul", { class: "failures" }, items)];
}

const place = ({ path, line }) => h("code", { class: "soft" }, `${path}:${line}`);

function remarks(all) {
  if (!all.length) return null;
  return [
    h("h3", {}, "Remarks"),
    h(
      "ul",
      {},
      all.map((remark) => h("li", {}, remark.message, " ", place(remark))),
    ),
  ];
}

function rules(verdicts, presets) {
  const columns = presets.map(({ name, own }) => ({
    label: name,
    value: (rule) => kept(of(own, "rule", rule)),
  }));
  const named = { label: "rule", value: (rule) => rule, header: true };
  return table("Verdicts by rule", [named, ...columns], values(verdicts, "rule"));
}

function kept(verdicts) {
  if (!verdicts.length) return "–";
  const failed = failures(verdicts).length;
  if (failed) return h("span", { class: "outcome bad" }, `✗ ${failed} of ${count(verdicts.length)} fail`);
  return h("span", { class: "outcome good" }, `✓ ${count(verdicts.length)} pass`);
}

function heatMap(verdicts, presets) {
  const cells = values(verdicts, "scenario").flatMap((scenario) =>
    presets.map(({ name, own }) => cell(scenario, name, of(own, "scenario", scenario))),
  );
  const scenarios = values(cells, "scenario");
  const named = { label: "scenario", value: (scenario) => scenario, header: true };
  const columns = presets.map(({ name, own }) => ({
    label: name,
    value: (scenario) => kept(of(own, "scenario", scenario)),
  }));
  return figure({
    title: "Every scenario under every preset.",
    says: `${plural(scenarios.length, "scenario")}, ${plural(presets.length, "preset")}; ✗ marks a violated rule.`,
    spec: (width) => spec(cells, presets, scenarios, width),
    numbers: () => table("Every scenario under every preset", [named, ...columns], scenarios),
  });
}

function cell(scenario, preset, verdicts) {
  const failed = failures(verdicts);
  const result = failed.length ? "failed" : verdicts.length ? "passed" : "not judged";
  const why = (failed.length ? failed : verdicts).map(({ reason }) => reason).join("; ");
  return { scenario, preset, result, sign: { failed: "✗", passed: "✓" }[result] ?? "–", why };
}

function spec(cells, presets, scenarios, width) {
  const colours = { passed: "var(--good-paper)", failed: "var(--bad-paper)", "not judged": "var(--raised)" };
  const shown = Object.keys(colours).filter((result) => cells.some((each) => each.result === result));
  const narrow = width < 520;
  const axis = { title: null, ticks: false, domain: false, labelAngle: 0 };
  const across = { ...axis, orient: "top", labelLimit: (width - (narrow ? 150 : 330)) / presets.length };
  // Narrow screens have no room for the suite, and show a long id in two lines.
  const name = "slice(datum.label, indexof(datum.label, '/') + 1)";
  const lines = `split(replace(${name}, regexp('^(.{8,20}-)(?=.{4})'), '$1\\n'), '\\n')`;
  const down = narrow
    ? { ...axis, labelLimit: 140, labelOffset: -4, labelExpr: lines }
    : { ...axis, labelLimit: 320 };
  return {
    width: Math.min(width, (narrow ? 150 : 330) + WIDEST * presets.length),
    height: (narrow ? 30 : 22) * scenarios.length,
    autosize: { type: "fit-x", contains: "padding" },
    data: { values: cells },
    encoding: {
      x: { field: "preset", type: "nominal", sort: presets.map(({ name }) => name), axis: across },
      y: { field: "scenario", type: "nominal", sort: scenarios, axis: down },
    },
    layer: [
      {
        mark: { type: "rect", stroke: "var(--paper)", strokeWidth: 2 },
        encoding: {
          color: {
            field: "result",
            type: "nominal",
            title: null,
            scale: { domain: shown, range: shown.map((result) => colours[result]) },
            legend: null,
          },
          tooltip: [{ field: "scenario" }, { field: "preset" }, { field: "why" }],
        },
      },
      {
        mark: { type: "text" },
        encoding: {
          text: { field: "sign" },
          color: {
            condition: { test: "datum.result === 'failed'", value: "var(--bad)" },
            value: "var(--ink)",
          },
        },
      },
    ],
  };
}

function all(name, verdicts) {
  return table(
    `Verdicts on ${name}`,
    [
      { label: "scenario", value: (verdict) => verdict.scenario, header: true },
      { label: "verdict", value: (verdict) => outcome(verdict.passed ? "passed" : "failed") },
      { label: "rule", value: (verdict) => verdict.rule },
      { label: "why", value: (verdict) => h("span", { class: "roomy" }, quoted(verdict.reason)) },
      { label: "where", value: place },
    ],
    verdicts,
  );
}
