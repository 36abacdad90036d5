// Where failures went: how many turns of each class rescue read or a nudge corrected, and what became of their runs.
import { fill, h, section } from "./element.js";
import { count } from "./numbers.js";
import { heading, stacked, table } from "./table.js";

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
    "How failures were handled",
    h("div", { class: "field choice" }, h("label", { for: "flow-arm" }, "In the arm"), choice),
    place,
  );
}

function flow({ name, flow: rows }, meanings) {
  if (!rows.length) return h("p", { class: "empty" }, `No turns failed in ${name}.`);
  const columns = [
    { label: "class", value: (row) => heading(row.class.replaceAll("_", " ")), header: true },
    { label: "description", value: (row) => h("span", { class: "roomy" }, meanings[row.class]) },
    { label: "turns", value: (row) => count(row.turns), numeric: true },
    { label: "read by rescue", value: (row) => count(row.rescued), numeric: true },
    { label: "corrected", value: (row) => count(row.nudged), numeric: true },
    { label: "runs with it", value: (row) => count(row.runs), numeric: true },
    { label: "right runs", value: (row) => count(row.right), numeric: true },
  ];
  return stacked(table(`Failures in ${name}`, columns, rows));
}
