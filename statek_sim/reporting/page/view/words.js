// The words the page explains, and how outcomes and bases are shown everywhere.
import { h, section } from "./element.js";

/** The three ways to count tokens, in the order the page shows them. */
export const BASES = [
  { key: "approx", label: "Harness estimate", colour: "var(--estimate)", dash: [1, 0] },
  { key: "measured", label: "Measured", colour: "var(--measured)", dash: [6, 2] },
  { key: "reported", label: "Reported", colour: "var(--reported)", dash: [2, 2] },
];

const MEANINGS = [
  ["Run", "One scenario under one behaviour profile: a STATEK profile, such as docs or 1.4, or an agent profile, such as hardened."],
  ["Turn", "A request to the language model and its reply."],
  ["Job", "An agent working on a task. A job can start other jobs."],
  [
    "Harness estimate",
    "STATEK's token count: bytes sent and received, divided by 4. Its limits use this count.",
  ],
  ["Measured", "Tokens counted by a tokenizer: what the model actually sees."],
  ["Proxy", "Counted with another tokenizer, because the model's own is unknown."],
  ["Reported", "Token usage reported in the provider's replies: what it bills."],
  ["Estimate ÷ measured", "×2 means that the harness counts twice as many tokens as the model sees."],
  ["Virtual time", "The simulation's clock, in seconds. It stands still while code runs."],
  ["Claim", "A job's hold on something that only one job can use at a time."],
  ["Error handler", "A function that STATEK calls when a job or a tool fails."],
  ["Preset", "A file with the harness's limits, such as the number of turns."],
];

/** Returns the outcome in a word, with a sign that needs no colour. */
export function outcome(word) {
  const good = word === "passed";
  const sign = h("span", { "aria-hidden": "true" }, good ? "✓" : "✗");
  return h("span", { class: `outcome ${good ? "good" : "bad"}` }, sign, " ", word);
}

/** Returns what the page's words mean. */
export function glossary() {
  const terms = MEANINGS.map(([term, meaning]) => h("div", {}, h("dt", {}, term), h("dd", {}, meaning)));
  return section("words", "Glossary", h("dl", { class: "words" }, terms));
}
