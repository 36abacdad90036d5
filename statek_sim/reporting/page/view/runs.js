// The list of runs: filtered, sorted, and shown a page at a time, so that ten thousand are as quick as ten.
import { fill, h, section } from "./element.js";
import { count, plural, times } from "./numbers.js";
import { toPart, toRun } from "./route.js";
import { stacked, table } from "./table.js";
import { breakable } from "./text.js";
import { outcome } from "./words.js";

const PAGE = 25;
const FILTERS = [
  { key: "suite", label: "Suite", of: (run) => [run.suite] },
  { key: "outcome", label: "Outcome", of: (run) => [run.outcome] },
  { key: "profile", label: "Profile", of: (run) => [run.profile] },
  { key: "tag", label: "Tag", of: (run) => run.tags },
  { key: "stop", label: "Stopped by", of: (run) => run.stops },
];
const ORDERS = {
  name: { label: "run", of: (run) => run.name },
  turns: { label: "turns", of: (run) => run.turns },
  approx: { label: "estimate, tokens", of: (run) => run.approx },
  measured: { label: "measured, tokens", of: (run) => run.measured },
  ratio: { label: "estimate\u00a0÷ measured", of: (run) => (run.measured ? run.approx / run.measured : 0) },
  reported: { label: "reported, tokens", of: (run) => run.reported ?? -1 },
};

/** Returns the runs that fit the parameters, in the order they ask for. */
function chosen(runs, parameters) {
  const asked = FILTERS.filter(({ key }) => parameters[key]);
  const words = (parameters.text ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const kept = runs.filter(
    (run) =>
      asked.every(({ key, of }) => of(run).includes(parameters[key])) &&
      words.every((word) => text(run).includes(word)),
  );
  return sorted(kept, parameters.sort ?? "");
}

const text = (run) => `${run.name} ${run.title} ${run.tags.join(" ")}`.toLowerCase();

function sorted(runs, sort) {
  const down = sort.startsWith("-");
  const order = ORDERS[down ? sort.slice(1) : sort];
  if (!order) return runs;
  const compare = (a, b) => (order.of(a) < order.of(b) ? -1 : order.of(a) > order.of(b) ? 1 : a.n - b.n);
  return [...runs].sort(down ? (a, b) => compare(b, a) : compare);
}

/**
 * Returns the section; `update(parameters)`, which shows what they choose; and `link(name)`, the link to a run where
 * it is shown. `go(hash, quietly)` changes the address.
 */
export function runsSection(runs, go) {
  const status = h("p", { role: "status", "aria-live": "polite", class: "status" });
  const place = h("div");
  const pages = h("nav", { "aria-label": "Pages of runs", class: "pages" });
  const form = filterForm(runs, go);
  const reported = runs.some((run) => run.reported !== null);
  const update = (parameters) => {
    const kept = chosen(runs, parameters);
    const last = Math.max(1, Math.ceil(kept.length / PAGE));
    const page = Math.min(Math.max(1, Number(parameters.page) || 1), last);
    form.show(parameters);
    fill(status, summary(kept.length, runs.length, page));
    fill(
      place,
      kept.length ? rows(kept.slice((page - 1) * PAGE, page * PAGE), parameters, reported) : nothing(),
    );
    fill(pages, last > 1 && pageLinks(page, last, parameters));
  };
  const link = (name) => [...place.querySelectorAll("th a")].find((each) => each.textContent === name);
  return { element: section("runs", "Runs", form.element, status, place, pages), update, link };
}

function summary(kept, all, page) {
  const from = kept ? (page - 1) * PAGE + 1 : 0;
  const part =
    kept > PAGE
      ? `Runs ${count(from)} to ${count(Math.min(kept, page * PAGE))} of ${count(kept)}`
      : plural(kept, "run");
  return kept === all ? part : `${part}, filtered from ${count(all)}`;
}

const nothing = () =>
  h("p", { class: "empty" }, "No matching runs. ", h("a", { href: toPart("runs") }, "Show all runs"));

function filterForm(runs, go) {
  const search = h("input", {
    type: "search",
    name: "text",
    id: "filter-text",
    placeholder: "name, title or tag",
  });
  const selects = FILTERS.map((filter) => select(filter, runs)).filter(Boolean);
  const clear = h("a", { href: toPart("runs"), class: "button" }, "Clear");
  const fields = [field("Text", search), ...selects.map(({ label, input }) => field(label, input))];
  let now = {};
  const change = (quietly) => {
    const values = Object.fromEntries(
      [search, ...selects.map(({ input }) => input)].map((input) => [input.name, input.value]),
    );
    go(toPart("runs", { ...now, ...values, page: "" }), quietly);
  };
  search.addEventListener("input", () => change(true));
  for (const { input } of selects) input.addEventListener("change", () => change(false));
  const element = h("form", { role: "search", "aria-label": "Filter runs", class: "filters" }, fields, clear);
  element.addEventListener("submit", (event) => event.preventDefault());
  const show = (parameters) => {
    now = parameters;
    for (const input of [search, ...selects.map(({ input: each }) => each)]) {
      const value = parameters[input.name] ?? "";
      if (input.value !== value) input.value = value;
    }
  };
  return { element, show };
}

const field = (label, input) => h("div", { class: "field" }, h("label", { for: input.id }, label), input);

/** A choice among the values that occur; nothing where there is no choice. */
function select({ key, label, of }, runs) {
  const counts = new Map();
  for (const run of runs)
    for (const value of new Set(of(run))) counts.set(value, (counts.get(value) ?? 0) + 1);
  if (!counts.size) return null;
  const values = [...counts.keys()].sort();
  const options = values.map((value) => h("option", { value }, `${value} (${count(counts.get(value))})`));
  return {
    label,
    input: h("select", { name: key, id: `filter-${key}` }, h("option", { value: "" }, "all"), options),
  };
}

function rows(runs, parameters, reported) {
  const numeric = (key, value) => ({ label: sorter(key, parameters), value, numeric: true });
  const made = table(
    "Runs",
    [
      { label: sorter("name", parameters), value: name, header: true },
      { label: "outcome", value: (run) => outcome(run.outcome) },
      { label: "stopped by", value: (run) => breakable(run.stops.join(", ") || "–") },
      numeric("turns", (run) => count(run.turns)),
      numeric("approx", (run) => count(run.approx)),
      numeric("measured", (run) => count(run.measured)),
      numeric("ratio", (run) => times(run.approx, run.measured)),
      ...(reported ? [numeric("reported", (run) => count(run.reported))] : []),
    ],
    runs,
  );
  made.classList.add("runs");
  return stacked(made);
}

function name(run) {
  return h(
    "span",
    { class: "name" },
    h("a", { href: toRun(run.name) }, run.name),
    h("span", { class: "title" }, run.title),
  );
}

function sorter(key, parameters) {
  const { label } = ORDERS[key];
  const now = parameters.sort ?? "";
  const up = now === key;
  const down = now === `-${key}`;
  const next = key === "name" ? (up ? "-name" : "name") : down ? key : `-${key}`;
  const state = up ? ", ascending" : down ? ", descending" : "";
  const sign = h("span", { "aria-hidden": "true" }, up ? " ▲" : down ? " ▼" : "");
  return h(
    "a",
    {
      href: toPart("runs", { ...parameters, sort: next, page: "" }),
      "aria-label": `Sort by ${label}${state}`,
    },
    label,
    sign,
  );
}

function pageLinks(page, last, parameters) {
  const link = (to, words) =>
    h("a", { href: toPart("runs", { ...parameters, page: to }), class: "button" }, words);
  return [
    page > 1 && link(page - 1, "Previous page"),
    h("span", {}, `Page ${count(page)} of ${count(last)}`),
    page < last && link(page + 1, "Next page"),
  ];
}
