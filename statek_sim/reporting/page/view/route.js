// Addresses inside the page, after the #: `#/runs?suite=claims&outcome=failed` and `#/run/claims/leak[docs]?job=main`.

/** Returns what an address shows: a part of the overview, or a run by name; and its parameters. */
export function parse(hash) {
  const [path, query = ""] = split(hash.replace(/^#\/?/, ""));
  const parameters = Object.fromEntries(new URLSearchParams(query));
  if (path.startsWith("run/")) return { view: "run", name: readable(path.slice(4)), parameters };
  return { view: "home", part: path, parameters };
}

function split(text) {
  const at = text.indexOf("?");
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function readable(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the address of a run. */
export function toRun(name, parameters = {}) {
  const kept = encodeURIComponent(name).replaceAll("%2F", "/").replaceAll("%5B", "[").replaceAll("%5D", "]");
  return `#/run/${kept}${asQuery(parameters)}`;
}

/** Returns the address of a part of the overview; empty parameters are left out. */
export const toPart = (part, parameters = {}) => `#/${part}${asQuery(parameters)}`;

function asQuery(parameters) {
  const filled = Object.entries(parameters).filter(
    ([, value]) => value !== "" && value !== undefined && value !== null,
  );
  return filled.length ? `?${new URLSearchParams(filled)}` : "";
}
