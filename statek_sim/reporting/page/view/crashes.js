// What a crash does: a cell for every distinct place to die; a click shows what happens from there on.
import { fill, h, onDemand, section } from "./element.js";
import { count, plural } from "./numbers.js";
import { quoted } from "./text.js";

const CAME = {
  same: { sign: "✓", words: "ends as undisturbed" },
  differs: { sign: "~", words: "ends otherwise, and nothing breaks" },
  asks: { sign: "?", words: "an agent asks a person whether a call happened" },
  unknown: { sign: "…", words: "something is asked for that no script says" },
  breaks: { sign: "✗", words: "an invariant breaks" },
};

/** Returns the section for an exploration of kills. */
export function crashesSection(crashes) {
  const explored = crashes.scenarios.filter((one) => one.cells.length);
  const failing = explored.filter((one) => one.failures.length);
  const sound = explored.filter((one) => !one.failures.length);
  const not = crashes.scenarios.filter((one) => one.problem !== null);
  const cells = explored.reduce((sum, one) => sum + one.cells.length, 0);
  return section(
    "crashes",
    "What a crash does",
    h(
      "p",
      {},
      `${plural(explored.length, "scenario")}, ${plural(cells, "place")} at which a worker may die, ${plural(crashes.runs, "run")}. `,
      "Each cell is a death: press it to read what happens from there on.",
      crashes.left_out ? ` ${plural(crashes.left_out, "cell")} had no room for that.` : "",
    ),
    legend(),
    failing.map((one) => map(one, crashes.texts)),
    sound.length > 0 &&
      onDemand(`${plural(sound.length, "scenario")} in which nothing breaks`, () =>
        sound.map((one) => map(one, crashes.texts)),
      ),
    not.length > 0 &&
      onDemand(`${plural(not.length, "scenario")} not explored`, () =>
        h("ul", {}, not.map((one) => h("li", {}, h("code", {}, one.name), ": ", one.problem))),
      ),
  );
}

const kind = (came) => (Object.hasOwn(CAME, came) ? came : "breaks");

function legend() {
  const items = Object.entries(CAME).map(([name, { sign, words }]) =>
    h("li", {}, h("span", { class: `death ${name}`, "aria-hidden": "true" }, sign), " ", words),
  );
  return h("ul", { class: "deaths-legend" }, items);
}

function map(one, texts) {
  const told = h("div", { class: "after-death", "aria-live": "polite" });
  const buttons = one.cells.map((cell) => button(cell, () => show(cell)));
  function show(cell) {
    buttons.forEach((other, at) => other.setAttribute("aria-pressed", String(one.cells[at] === cell)));
    fill(told, h("p", {}, h("strong", {}, place(cell)), ": ", words(cell)), after(cell, texts));
  }
  return h(
    "article",
    { class: "crash-map" },
    h("h3", {}, one.name),
    h("p", { class: "soft" }, one.proven),
    one.failures.length > 0 && h("ul", { class: "failures" }, one.failures.map(failure)),
    h("div", { class: "deaths", role: "group", "aria-label": `Deaths in ${one.name}` }, buttons),
    told,
  );
}

function button(cell, press) {
  const name = kind(cell[4]);
  const label = `${place(cell)}: ${words(cell)}`;
  const attributes = { type: "button", class: `death ${name}`, "aria-label": label, title: label };
  return h("button", { ...attributes, "aria-pressed": "false", on: { click: press } }, CAME[name].sign);
}

function failure({ invariant, message, where, times }) {
  const more = times > 1 ? `, and in ${plural(times - 1, "further run")}` : "";
  return h("li", {}, h("strong", {}, invariant), ": ", quoted(message), h("br"), where.join("; "), more);
}

function place([event, silent, what, job]) {
  const after = silent ? `event ${count(event)}, moment ${silent}` : `event ${count(event)}`;
  return `killed after ${after} (${what}${job ? ` of ${job}` : ""})`;
}

const words = ([, , , , came]) => (kind(came) === "breaks" ? came.split(",").join(", ") : CAME[came].words);

function after([, , , , , text], texts) {
  if (text < 0) return h("p", { class: "soft" }, "What happens from there on had no room on this page.");
  return h("pre", { tabindex: 0 }, texts[text] || "Nothing happens any more.");
}
