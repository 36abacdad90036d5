// Where failures went: each class, by which stage it was read, whether it was corrected, and how its run ended.
import { fill, h, onDemand, section } from "./element.js";
import { count, plural } from "./numbers.js";
import { heading, stacked, table } from "./table.js";

const SVG = "http://www.w3.org/2000/svg";
const HEADS = ["what went wrong", "read by rescue", "corrected", "the run ended"];
const COLOURS = { right: "var(--good)", "wrong answer": "var(--bad)", "no answer": "var(--soft)" };
const WIDTH = 900;
const BAR = 12; // pixels of a block
const GAP = 22; // pixels between blocks, room for a label
const TALL = 340; // pixels of all turns above each other

/** Returns the section: one arm at a time, the full harness first. */
export function flowSection({ arms, meanings }) {
  const place = h("div", {});
  const at = Math.max(0, arms.findIndex(({ name }) => name === "full"));
  const choice = h(
    "select",
    { id: "flow-arm", on: { change: () => fill(place, flow(arms[choice.selectedIndex], meanings)) } },
    arms.map(({ name }, n) => h("option", { selected: n === at }, name)),
  );
  fill(place, flow(arms[at], meanings));
  return section(
    "flow",
    "Where failures went",
    h("div", { class: "field choice" }, h("label", { for: "flow-arm" }, "In the arm"), choice),
    place,
  );
}

function flow({ name, paths, flow: rows }, meanings) {
  if (!paths.length) return h("p", { class: "empty" }, `In ${name} no turn failed.`);
  const turns = paths.reduce((sum, path) => sum + path[4], 0);
  const says = `${plural(turns, "failed turn")} in ${name}; a band is as wide as turns went that way, in the colour of how their runs ended.`;
  const drawing = h("div", { class: "chart flow", role: "img", tabindex: 0, "aria-label": `Where failures went. ${says}` }, drawn(paths, turns));
  const caption = h("figcaption", {}, h("strong", {}, "From failure to outcome."), " ", says, legend());
  return [
    h("figure", {}, caption, drawing, onDemand("Show the numbers", () => numbers(paths))),
    h("h3", {}, "Runs with a failure"),
    classes(rows, meanings),
  ];
}

function legend() {
  return h(
    "span",
    { class: "flow-legend" },
    Object.keys(COLOURS).map((end) => h("span", { "data-end": end }, h("b", { "aria-hidden": "true" }, "■"), ` ${end}`)),
  );
}

const steps = ([failure, rescued, nudged, end]) => [failure, rescued ?? "not read", nudged ?? "not corrected", end];

function numbers(paths) {
  const columns = [
    ...HEADS.map((label, n) => ({
      label,
      value: (path) => (n ? steps(path)[n] : heading(steps(path)[0])),
      header: n === 0,
    })),
    { label: "turns", value: (path) => count(path[4]), numeric: true },
  ];
  return stacked(table("Ways of failed turns", columns, paths));
}

function classes(rows, meanings) {
  const columns = [
    { label: "class", value: (row) => heading(row.class.replaceAll("_", " ")), header: true },
    { label: "what it is", value: (row) => h("span", { class: "roomy" }, meanings[row.class]) },
    { label: "turns", value: (row) => count(row.turns), numeric: true },
    { label: "runs with it", value: (row) => count(row.runs), numeric: true },
    { label: "of these right", value: (row) => count(row.right), numeric: true },
  ];
  return stacked(table("Runs with a failure", columns, rows));
}

// -- the drawing: blocks in four columns, and a band for every way between them ---------------------------------

function drawn(paths, turns) {
  const scale = TALL / turns;
  const columns = HEADS.map((_, n) => blocks(paths, n, scale));
  const height = 24 + Math.max(...columns.map(bottom));
  const image = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height });
  image.append(...bands(paths, columns, scale));
  columns.forEach((column, n) => {
    image.append(text(x(n) + (n === 3 ? BAR : 0), 12, HEADS[n], n === 3 ? "end" : "start", "var(--soft)"));
    for (const [label, block] of column) image.append(...shown(label, block, n));
  });
  return image;
}

const x = (n) => 1 + (n * (WIDTH - BAR - 2)) / 3;

const bottom = (column) => Math.max(...[...column.values()].map(({ y, height }) => y + height));

function blocks(paths, n, scale) {
  const found = new Map();
  for (const path of paths) {
    const label = steps(path)[n];
    found.set(label, (found.get(label) ?? 0) + path[4]);
  }
  let y = 24 + GAP;
  const many = [...found.keys()].sort((a, b) => found.get(b) - found.get(a));
  const order = n === 3 ? Object.keys(COLOURS).filter((end) => found.has(end)) : many;
  return new Map(
    order.map((label) => {
      const height = Math.max(1, found.get(label) * scale);
      const block = { y, height, turns: found.get(label), out: y, into: y };
      y += height + GAP;
      return [label, block];
    }),
  );
}

function bands(paths, columns, scale) {
  const ends = Object.keys(COLOURS);
  const order = [...paths].sort((a, b) => ends.indexOf(a[3]) - ends.indexOf(b[3]));
  const made = [];
  for (let n = 0; n < 3; n += 1) {
    for (const path of order) {
      const from = columns[n].get(steps(path)[n]);
      const to = columns[n + 1].get(steps(path)[n + 1]);
      const thick = path[4] * scale;
      made.push(band(x(n) + BAR, from.out, x(n + 1), to.into, thick, path));
      from.out += thick;
      to.into += thick;
    }
  }
  return made;
}

function band(x1, y1, x2, y2, thick, path) {
  const middle = (x1 + x2) / 2;
  const [a, b] = [y1 + thick / 2, y2 + thick / 2];
  const line = svg("path", {
    d: `M${x1},${a} C${middle},${a} ${middle},${b} ${x2},${b}`,
    fill: "none",
    stroke: COLOURS[path[3]],
    "stroke-width": Math.max(0.75, thick),
    "stroke-opacity": 0.4,
  });
  const title = svg("title", {});
  title.textContent = `${steps(path).join(" → ")}: ${plural(path[4], "turn")}`;
  line.append(title);
  return line;
}

function shown(label, { y, height, turns }, n) {
  const last = n === 3;
  return [
    svg("rect", { x: x(n), y, width: BAR, height, fill: COLOURS[label] ?? "var(--ink)" }),
    text(x(n) + (last ? BAR : 0), y - 6, `${label.replaceAll("_", " ")} ${count(turns)}`, last ? "end" : "start", "var(--ink)"),
  ];
}

function text(at, y, words, anchor, colour) {
  const made = svg("text", { x: at, y, "text-anchor": anchor, fill: colour, "font-size": 13 });
  made.textContent = words;
  return made;
}

function svg(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
