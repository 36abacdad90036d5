// What a job used, turn by turn, under each way to count, and where its token limit stands.
import { h } from "./element.js";
import { figure } from "./figure.js";
import { count, percent, plural, seconds } from "./numbers.js";
import { table } from "./table.js";
import { BASES } from "./words.js";

const FAR = 4; // times the highest curve: a limit beyond would press the curves flat
const MANY = 60; // turns, past which points would hide the lines

/** Returns the figure for a job; a sentence where it asked no model. */
export function usage(job) {
  if (!job.calls.length) return h("p", { class: "empty" }, "This job made no LLM calls.");
  const bases = BASES.filter(({ key }) => job.calls.some((call) => call[`${key}_total`] !== null));
  return figure({
    title: `Tokens used by ${job.name}, turn by turn.`,
    says: judgement(job, bases),
    spec: () => spec(job, bases),
    numbers: () => numbers(job, bases),
  });
}

function judgement(job, bases) {
  if (!job.limit_line.some((limit) => limit !== null)) return "No token limit applies to this job.";
  const sentences = bases.map((basis) => verdict(job, basis));
  return `${sentences.join(" ")}${far(job, bases) ? " The limit is outside this chart." : ""}`;
}

function verdict(job, { key, label }) {
  const crossed = job.calls.findIndex((call, at) => reaches(call[`${key}_total`], job.limit_line[at]));
  const at = crossed < 0 ? job.calls.length - 1 : crossed;
  const limit = `the limit of ${plural(job.limit_line[at], "token")}`;
  if (crossed >= 0) return `${label}: reaches ${limit} on turn ${job.calls[at].turn}.`;
  return `${label}: ends at ${percent(job.calls[at][`${key}_total`], job.limit_line[at])} of ${limit}.`;
}

const reaches = (total, limit) => total !== null && limit !== null && total >= limit;

const highest = (job, bases) =>
  Math.max(...job.calls.flatMap((call) => bases.map(({ key }) => call[`${key}_total`] ?? 0)));

const far = (job, bases) =>
  Math.min(...job.limit_line.filter((limit) => limit !== null)) > FAR * highest(job, bases);

function numbers(job, bases) {
  const rows = job.calls.map((call, at) => ({ ...call, limit: job.limit_line[at] }));
  return table(
    `Tokens used by ${job.name}`,
    [
      { label: "turn", value: (row) => count(row.turn), header: true, numeric: true },
      { label: "at, virtual time", value: (row) => seconds(row.at), numeric: true },
      { label: "bytes sent", value: (row) => count(row.bytes_sent), numeric: true },
      { label: "bytes received", value: (row) => count(row.bytes_received), numeric: true },
      ...bases.map(({ key, label }) => ({
        label: `${label.toLowerCase()}, tokens so far`,
        value: (row) => over(row, key),
        numeric: true,
      })),
      { label: "limit, tokens", value: (row) => count(row.limit), numeric: true },
    ],
    rows,
  );
}

function over(row, key) {
  const total = row[`${key}_total`];
  return reaches(total, row.limit) ? h("strong", { class: "bad" }, `${count(total)} ≥ limit`) : count(total);
}

/** The limit as it stands when each call is checked, from the start on. */
function limitLine(job) {
  const points = job.calls.map((call, at) => ({
    turn: call.turn,
    tokens: job.limit_line[at],
    basis: "Token limit",
  }));
  return [{ ...points[0], turn: 0 }, ...points];
}

function spec(job, bases) {
  const points = job.calls.flatMap((call) =>
    bases.map(({ key, label }) => ({ turn: call.turn, basis: label, tokens: call[`${key}_total`] })),
  );
  const start = bases.map(({ label }) => ({ turn: 0, basis: label, tokens: 0 }));
  const limits = limitLine(job);
  const shown = job.limit_line.some((limit) => limit !== null) && !far(job, bases);
  const names = [...bases.map(({ label }) => label), ...(shown ? ["Token limit"] : [])];
  const colours = [...bases.map(({ colour }) => colour), "var(--limit)"];
  const dashes = [...bases.map(({ dash }) => dash), [8, 3]];
  return {
    width: "container",
    height: 240,
    autosize: { type: "fit-x", contains: "padding" },
    data: { values: [...start, ...points, ...(shown ? limits : [])].filter(({ tokens }) => tokens !== null) },
    encoding: {
      x: {
        field: "turn",
        type: "quantitative",
        title: "turn",
        scale: { domain: [0, job.calls.at(-1).turn] },
        axis: { tickMinStep: 1, format: "d", grid: false },
      },
      y: {
        field: "tokens",
        type: "quantitative",
        title: "tokens so far",
        axis: { format: ",d", tickCount: 5, tickMinStep: 1 },
      },
      color: {
        field: "basis",
        type: "nominal",
        title: null,
        scale: { domain: names, range: colours.slice(0, names.length) },
        legend: { columns: 2, symbolOpacity: 1, symbolType: "stroke", symbolStrokeWidth: 3 },
      },
      tooltip: [
        { field: "basis", title: "counted as" },
        { field: "turn" },
        { field: "tokens", title: "tokens so far", format: "," },
      ],
    },
    layer: [
      {
        mark: { type: "line", strokeWidth: 2.5, interpolate: "linear" },
        encoding: {
          strokeDash: {
            field: "basis",
            type: "nominal",
            title: null,
            scale: { domain: names, range: dashes.slice(0, names.length) },
          },
        },
      },
      ...(job.calls.length > MANY
        ? []
        : [
            {
              transform: [{ filter: "datum.basis !== 'Token limit'" }],
              mark: { type: "point", filled: true, size: 45, opacity: 1 },
            },
          ]),
    ],
  };
}
