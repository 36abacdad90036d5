// The page: shows what the address after the # asks for.
import { crashesSection } from "./crashes.js";
import { index, runNamed } from "./data.js";
import { fill, h } from "./element.js";
import { drawAll } from "./figure.js";
import { gateSection } from "./gate.js";
import { health } from "./health.js";
import { languages } from "./languages.js";
import { overview, provenance } from "./overview.js";
import { parse, toPart } from "./route.js";
import { noSuchRun, runPage } from "./run.js";
import { runsSection } from "./runs.js";
import { sweepSection } from "./sweep.js";
import { themeButton } from "./theme.js";
import { glossary } from "./words.js";

const main = document.getElementById("main");
const runs = runsSection(index.runs, go);
const home = h(
  "div",
  { class: "home" },
  h("header", {}, h("h1", { tabindex: -1 }, index.title), provenance(index)),
  overview(index),
  runs.element,
  index.corpus && languages(index.corpus),
  index.metrics && health(index.metrics),
  index.gate && gateSection(index.gate),
  index.sweep && sweepSection(index.sweep),
  index.crashes && crashesSection(index.crashes),
  glossary(),
);
let list = toPart("runs");
let left = null; // the run that was shown last

function navigation() {
  const parts = [...home.querySelectorAll("section")].map((part) => [
    part.id,
    part.querySelector("h2").textContent,
  ]);
  const short = {
    why: "Why they differ",
    languages: "Languages",
    health: "Health",
    gate: "Gate",
    sweep: "Trade-off",
    crashes: "Crashes",
    words: "Words",
  };
  return parts.map(([id, title]) => h("a", { href: toPart(id) }, short[id] ?? title));
}

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

function arrive(place) {
  place.focus({ preventScroll: true });
  // What stands above a page's title belongs to it, and nothing above it may hide it.
  if (place.matches("h1")) scrollTo(0, 0);
  else place.scrollIntoView({ block: place.matches("a") ? "center" : "start" });
}

fill(document.getElementById("navigation"), navigation());
document.getElementById("tools").append(themeButton());
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  arrive(main.querySelector("h1"));
});
addEventListener("hashchange", show);
addEventListener("beforeprint", drawAll);
matchMedia("print").addEventListener("change", ({ matches }) => matches && drawAll());
show();
