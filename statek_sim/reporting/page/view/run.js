// One run: what it is about, how it ended, and everything its jobs did.
import { h, onDemand, section } from "./element.js";
import { details, index } from "./data.js";
import { count, plural } from "./numbers.js";
import { toPart, toRun } from "./route.js";
import { table } from "./table.js";
import { breakable, flush, written } from "./text.js";
import { timeline } from "./timeline.js";
import { transcript } from "./transcript.js";
import { usage } from "./usage.js";
import { waterfall } from "./waterfall.js";
import { outcome } from "./words.js";

const LIMITS = {
  max_turns: "turns",
  max_token_usage: "tokens",
  max_exceptions: "exceptions",
  max_consecutive_exceptions: "exceptions in a row",
};

/** Returns the page of a run; `job` is the name of the job that was asked for, `back` where the reader came from. */
export function runPage(run, job, back) {
  const found = details(run);
  const parts = found
    ? told(run, found, job)
    : [h("p", { class: "empty" }, "This run's details were omitted to keep the file small.")];
  return [heading(run, back), ...parts];
}

/** Returns what is shown for the address of a run that is not in this report. */
export function noSuchRun(name, part = "runs") {
  return [
    h("h1", { tabindex: -1 }, "No such run"),
    h("p", {}, "This report has no run named ", h("code", {}, name), "."),
    h("p", {}, h("a", { href: toPart(part) }, "Show all runs")),
  ];
}

function heading(run, back) {
  return h(
    "header",
    { class: "run-head" },
    h("p", { class: "back" }, h("a", { href: back }, "← Back to the list")),
    h("h1", { tabindex: -1 }, run.title || run.name),
    h("p", { class: "facts" }, outcome(run.outcome), h("code", {}, run.name)),
    run.tags.length > 0 &&
      h(
        "p",
        { class: "tags" },
        "Tags: ",
        run.tags.map((tag) => [h("a", { href: toPart("runs", { tag }) }, tag), " "]),
      ),
  );
}

function told(run, found, asked) {
  const job = found.jobs.find(({ name }) => name === asked) ?? found.jobs[0];
  const entries = asked ? found.transcript.filter((entry) => entry.job === asked) : found.transcript;
  const said = transcript(entries);
  return [
    about(found),
    failure(found),
    found.transcript.length > 0 && section("timeline", "Timeline", timeline(found, said.find)),
    found.jobs.length > 0 && section("jobs", "Jobs", jobs(run, found.jobs, job, asked)),
    job &&
      section(
        "usage",
        `Usage of ${job.name}`,
        usage(job),
        job.waterfall && waterfall("Why estimate and measured differ.", job.waterfall, index.meanings),
      ),
    section(
      "transcript",
      asked ? `Transcript of ${asked}` : "Transcript",
      asked && h("p", {}, h("a", { href: toRun(run.name) }, "Show all jobs")),
      said.element,
    ),
    job && section("inside", `Details of ${job.name}`, inside(job)),
  ];
}

function failure({ failure: expected, error }) {
  // What is told of a failure quotes the run's error already, as a rule.
  const quoted = error && expected && oneLine(expected).includes(oneLine(error));
  const texts = [expected, quoted ? null : error].filter(Boolean);
  return (
    texts.length > 0 &&
    section(
      "failure",
      "Why it failed",
      texts.map((text) => h("pre", { class: "failure" }, flush(text))),
    )
  );
}

const oneLine = (text) => text.replace(/\s+/g, " ");

function about({ source, proves, preset, seed, leaked_claims: leaked }) {
  return h(
    "div",
    { class: "about" },
    h("p", { class: "soft" }, origin(source, proves), `Preset ${preset}, seed ${seed}.`),
    leaked.length > 0 &&
      h("p", { class: "bad" }, `✗ Claims never released: ${leaked.join(", ")}`),
  );
}

/** Which words the scenario is about, where it says so. */
function origin(source, proves) {
  const statements = proves.length > 0 && `statements ${proves.join(", ")}`;
  const named = [source, statements].filter(Boolean);
  return named.length > 0 && `About ${named.join(", ")}. `;
}

function jobs(run, all, current, asked) {
  return table(
    "Jobs",
    [
      {
        label: "job",
        value: ({ name }) =>
          h(
            "a",
            {
              href: toRun(run.name, { job: name }),
              class: "whole",
              "aria-current": asked && name === current.name ? "true" : null,
            },
            name,
          ),
        header: true,
      },
      { label: "agent", value: ({ agent }) => agent },
      { label: "started by", value: ({ parent }) => parent ?? "–" },
      { label: "model", value: ({ model }) => h("span", { class: "whole" }, model ?? "–") },
      { label: "status", value: ({ status }) => status },
      { label: "stopped by", value: ({ stop }) => breakable(stop ?? "–") },
      { label: "turns", value: ({ calls }) => count(calls.length), numeric: true },
      { label: "estimate, tokens", value: ({ calls }) => count(calls.at(-1)?.approx_total), numeric: true },
      { label: "measured, tokens", value: ({ calls }) => count(calls.at(-1)?.measured_total), numeric: true },
      { label: "limits", value: (job) => h("span", { class: "roomy" }, limits(job)) },
    ],
    all,
  );
}

function limits({ limits: set }) {
  const shown = Object.entries(LIMITS).filter(([key]) => set[key] !== null && set[key] !== undefined);
  return shown.map(([key, words]) => `${words} ${count(set[key])}`).join(", ") || "none";
}

function inside(job) {
  return [
    h("p", {}, "Result: ", job.exit === null ? "none" : h("code", {}, job.exit)),
    job.error && h("pre", { class: "failure" }, job.error),
    onDemand(`Last request: ${plural(job.history.length, "message")}`, () =>
      h("ol", { class: "transcript" }, job.history.map(message)),
    ),
  ];
}

function message({ role, text, more }) {
  const rest =
    more && h("pre", { class: "soft" }, typeof more === "string" ? more : JSON.stringify(more, null, 2));
  return h(
    "li",
    { "data-kind": role },
    h("div", { class: "head" }, h("b", {}, role)),
    text && written(text, 40),
    rest,
  );
}
