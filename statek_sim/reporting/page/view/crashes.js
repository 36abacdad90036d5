// What a crash does: a cell for every distinct place to die; a click shows what happens from there on.
import { fill, h, onDemand, section } from "./element.js";
import { count, plural } from "./numbers.js";
import { quoted } from "./text.js";

const CAME = {
  same: { sign: "✓", words: "same result as without the crash" },
  differs: { sign: "~", words: "different result, but no violation" },
  asks: { sign: "?", words: "an agent asks a person whether a call happened" },
  unknown: { sign: "…", words: "the script lacks a requested reply" },
  breaks: { sign: "✗", words: "an invariant is violated" },
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
    "Effects of crashes",
    h(
      "p",
      {},
      `${plural(explored.length, "scenario")}, ${plural(cells, "crash point")}, ${plural(crashes.runs, "run")}. `,
      "Each cell is a crash: select it to see what happens afterwards.",
      crashes.left_out ? ` Events were omitted for ${plural(crashes.left_out, "cell")}.` : "",
    ),
    legend(),
    failing.map((one) => map(one, crashes.texts)),
    sound.length > 0 &&
      onDemand(`${plural(sound.length, "scenario")} without violations`, () =>
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
    h("div", { class: "deaths", role: "group", "aria-label": `Crashes in ${one.name}` }, buttons),
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
  const more = times > 1 ? `, and in ${plural(times - 1, "other run")}` : "";
  return h("li", {}, h("strong", {}, invariant), ": ", quoted(message), h("br"), where.join("; "), more);
}

function place([event, silent, what, job]) {
  const after = silent ? `event ${count(event)}, moment ${silent}` : `event ${count(event)}`;
  return `killed after ${after} (${what}${job ? ` of ${job}` : ""})`;
}

const words = ([, , , , came]) => (kind(came) === "breaks" ? came.split(",").join(", ") : CAME[came].words);

function after([, , , , , text], texts) {
  if (text < 0) return h("p", { class: "soft" }, "The events after this crash were omitted to keep the file small.");
  return h("pre", { tabindex: 0 }, texts[text] || "No further events.");
}
