// Charts, drawn by Vega-Lite when they come into view, each with its numbers as a table.
/* global charts */
import { fill, h, onDemand } from "./element.js";

// Colours are the page's own variables, so that charts follow light, dark and print without being drawn again.
const CONFIG = {
  background: null,
  font: "system-ui, sans-serif", // measured before it is drawn, so it cannot be inherited
  axis: {
    labelColor: "var(--soft)",
    titleColor: "var(--soft)",
    titleFontWeight: 400,
    gridColor: "var(--line)",
    domainColor: "var(--line)",
    tickColor: "var(--line)",
    labelFontSize: 12,
    titleFontSize: 12,
    labelLimit: 220,
  },
  legend: {
    labelColor: "var(--ink)",
    titleColor: "var(--soft)",
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: 400,
    orient: "top",
    symbolOpacity: 1,
  },
  text: { fill: "var(--ink)", fontSize: 12 },
  rule: { color: "var(--soft)" },
  view: { stroke: null },
};

const waiting = new WeakMap();
const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  },
  { rootMargin: "200px" },
);

/**
 * Returns a figure: `title`, `says` (what a reader should see, in a sentence), `spec(width)`, a Vega-Lite chart for
 * a width in pixels, and `numbers()`, the table. `onClick` gets the row of a mark that was clicked.
 */
export function figure({ title, says, spec, numbers, onClick = null }) {
  const place = h("div", { class: "chart", role: "img", "aria-label": `${title} ${says}` });
  const caption = h("figcaption", {}, h("strong", {}, title), " ", says);
  waiting.set(place, { spec, onClick });
  observer.observe(place);
  return h("figure", {}, caption, place, onDemand("Show the numbers", numbers));
}

function draw(place) {
  const { spec, onClick } = waiting.get(place) ?? {};
  if (!spec) return;
  waiting.delete(place);
  observer.unobserve(place);
  // The figure has a description and a table: a label on each mark would be noise.
  const drawing = h("div", { "aria-hidden": "true" });
  fill(place, drawing);
  const { spec: compiled } = charts.compile({ ...spec(place.clientWidth), config: CONFIG });
  // The interpreter evaluates expressions without making code from text, which the page's policy forbids.
  const runtime = charts.parse(compiled, {}, { ast: true });
  const view = new charts.View(runtime, {
    expr: charts.expressionInterpreter,
    renderer: "svg",
    container: drawing,
  });
  if (onClick) view.addEventListener("click", (_event, item) => item?.datum && onClick(item.datum));
  view.runAsync().then(() => reachable(place));
}

/** Lets the keyboard scroll a chart that is wider than its place. */
function reachable(place) {
  if (place.scrollWidth > place.clientWidth) place.tabIndex = 0;
}

/** Draws what has not come into view yet: paper shows all of it. */
export function drawAll() {
  for (const place of document.querySelectorAll("figure .chart")) draw(place);
}
