// What was said, run and answered, in order; as text, whatever it holds.
import { fill, h } from "./element.js";
import { count, plural, seconds } from "./numbers.js";
import { written } from "./text.js";

const PAGE = 200;
const LINES = 40;
const NAMES = {
  assistant: "model's reply",
  code: "code run",
  exit: "result",
  provider: "provider",
  delivered: "result delivered",
  handler: "error handler",
  stopped: "stop",
  world: "outside",
  subtask: "delegated job",
};
const PARTS = [
  { name: "everything" },
  { name: "conversation", kinds: ["system", "user", "assistant", "notice", "delivered"] },
  { name: "code and console", kinds: ["code", "console", "exit"] },
  { name: "tools", kinds: ["tool"] },
  { name: "errors", errors: true },
];

/** Returns the entries as a list, the first 200 at once, `id` that of its choice; and `find(seq)`, which goes to an event's entry. */
export function transcript(entries, id = "transcript-part") {
  const list = h("ol", { class: "transcript" });
  const more = h("button", { type: "button", on: { click: () => add(PAGE) } });
  const status = h("p", { role: "status", class: "status" });
  const part = h(
    "select",
    { id, on: { change: () => choose(PARTS[part.selectedIndex]) } },
    PARTS.map(({ name }) => h("option", {}, name)),
  );
  let kept = [];
  const add = (number) => {
    const from = list.childElementCount;
    list.append(...kept.slice(from, from + number).map(entry));
    const left = kept.length - list.childElementCount;
    more.hidden = left === 0;
    more.textContent = `Show ${count(Math.min(PAGE, left))} more of ${count(left)}`;
  };
  const choose = ({ kinds, errors }) => {
    kept = entries.filter((each) => (!kinds || kinds.includes(each.kind)) && (!errors || each.error));
    fill(list);
    fill(status, plural(kept.length, "entry", "entries"));
    add(PAGE);
  };
  const find = (seq) => {
    part.selectedIndex = 0;
    choose(PARTS[0]);
    const at = entries.findIndex((each) => each.seq >= seq);
    if (at < 0) return;
    add(at - list.childElementCount + 1);
    list.children[at].focus();
  };
  choose(PARTS[0]);
  const choice = h("div", { class: "field choice" }, h("label", { for: part.id }, "Show"), part);
  return { element: h("div", {}, choice, status, list, more), find };
}

function entry({ seq, at, job, kind, text, error }) {
  const name = NAMES[kind] ?? kind;
  const head = h(
    "div",
    { class: "head" },
    h("b", {}, name),
    h("span", {}, job),
    h("span", {}, seconds(at)),
    h("span", {}, `event ${seq}`),
    error && h("span", { class: "bad" }, "✗ error"),
  );
  return h(
    "li",
    { tabindex: -1, class: error ? "error" : null, "data-kind": kind },
    head,
    written(text, LINES),
  );
}
