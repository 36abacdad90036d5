// The gate's verdicts: does each preset let healthy work finish and stop what runs away?
import { h, onDemand, section } from "./element.js";
import { count, plural } from "./numbers.js";
import { table } from "./table.js";
import { outcome } from "./words.js";

/** Returns the section for the gate's report. */
export function gateSection(gate) {
  const presets = gate.presets.map((preset) => ({
    ...preset,
    verdicts: gate.verdicts.filter((verdict) => verdict.preset === preset.name),
  }));
  return section(
    "gate",
    "Presets and the gate",
    h(
      "p",
      { class: `verdict ${gate.passed ? "good" : "bad"}` },
      gate.passed ? "✓ The gate passes" : "✗ The gate fails",
    ),
    summary(presets),
    presets.map(reasons),
    worse(gate.baseline),
    presets.map(({ name, verdicts }) =>
      onDemand(`All ${plural(verdicts.length, "verdict")} on ${name}`, () => all(name, verdicts)),
    ),
  );
}

function summary(presets) {
  const failed = ({ verdicts }) => verdicts.filter((verdict) => !verdict.passed).length;
  return table(
    "Presets",
    [
      { label: "preset", value: (preset) => preset.name, header: true },
      { label: "verdict", value: (preset) => outcome(failed(preset) ? "failed" : "passed") },
      { label: "scenarios judged", value: (preset) => count(preset.verdicts.length), numeric: true },
      { label: "failed", value: (preset) => count(failed(preset)), numeric: true },
    ],
    presets,
  );
}

function reasons({ name, verdicts }) {
  const failed = verdicts.filter((verdict) => !verdict.passed);
  if (!failed.length) return null;
  return [
    h("h3", {}, `What ${name} gets wrong`),
    h(
      "ul",
      { class: "failures" },
      failed.map((verdict) => h("li", {}, verdict.reason)),
    ),
  ];
}

function worse(baseline) {
  if (!baseline?.worse?.length) return null;
  const items = baseline.worse.map((each) =>
    h("li", {}, typeof each === "string" ? each : (each.reason ?? JSON.stringify(each))),
  );
  return [h("h3", {}, `Worse than the baseline ${baseline.path}`), h("ul", { class: "failures" }, items)];
}

function all(name, verdicts) {
  return table(
    `Verdicts on ${name}`,
    [
      { label: "scenario", value: (verdict) => verdict.scenario, header: true },
      { label: "verdict", value: (verdict) => outcome(verdict.passed ? "passed" : "failed") },
      { label: "rule", value: (verdict) => verdict.rule },
      { label: "why", value: (verdict) => verdict.reason },
    ],
    verdicts,
  );
}
