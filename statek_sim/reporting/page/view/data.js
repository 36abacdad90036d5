// What the file holds: the index, read at once, and details per run, read when a run is opened.

export const index = JSON.parse(document.getElementById("index").textContent);

const byName = new Map(index.runs.map((run) => [run.name, run]));

/** Returns the run with this name, or undefined. */
export const runNamed = (name) => byName.get(name);

/** Returns the details of a run; null where the report leaves them out. */
export function details(run) {
  const block = document.querySelector(`script.details[data-run="${run.n}"]`);
  return block && JSON.parse(block.textContent);
}
