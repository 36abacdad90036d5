// The page: shows what the address after the # asks for.
import { crashesSection } from "./crashes.js";
import { index, runNamed } from "./data.js";
import { fill, h } from "./element.js";
import { arrive, frame } from "./frame.js";
import { gateSection } from "./gate.js";
import { health } from "./health.js";
import { overview, provenance } from "./overview.js";
import { parse, toPart } from "./route.js";
import { noSuchRun, runPage } from "./run.js";
import { runsSection } from "./runs.js";
import { glossary } from "./words.js";

const main = document.getElementById("main");
const runs = runsSection(index.runs, go);
const home = h(
  "div",
  { class: "home" },
  h("header", {}, h("h1", { tabindex: -1 }, index.title), provenance(index)),
  index.gate && gateSection(index.gate),
  overview(index),
  runs.element,
  index.metrics && health(index.metrics),
  index.crashes && crashesSection(index.crashes),
  glossary(),
);
let list = toPart("runs");
let left = null; // the run that was shown last

const SHORT = {
  why: "Why they differ",
  health: "Health",
  gate: "Gate",
  crashes: "Crashes",
  words: "Glossary",
};

/** Goes to an address; quietly, without a step for the back button, while the reader types. */
function go(hash, quietly) {
  if (!quietly) {
    location.hash = hash;
    return;
  }
  history.replaceState(null, "", hash);
  list = hash;
  runs.update(parse(hash).parameters);
}

function show() {
  const route = parse(location.hash);
  const first = !main.hasChildNodes();
  if (route.view === "home") showHome(route, first);
  else showRun(route);
}

function showHome({ part, parameters }, first) {
  const stayed = home.isConnected;
  if (part === "runs") list = location.hash;
  runs.update(part === "runs" ? parameters : {});
  if (!stayed) fill(main, home);
  document.title = index.title;
  const filtering = document.activeElement.closest("form.filters");
  if (filtering || (first && !part)) return;
  const returned = !stayed && part === "runs" && runs.link(left);
  arrive(returned || document.getElementById(`${part}-title`) || home.querySelector("h1"));
}

function showRun({ name, parameters }) {
  const run = runNamed(name);
  const parts = run ? runPage(run, parameters.job, list) : noSuchRun(name);
  fill(main, h("article", {}, parts));
  document.title = `${name} – ${index.title}`;
  left = name;
  arrive(main.querySelector("h1"));
}

frame(home, SHORT, main, show);
