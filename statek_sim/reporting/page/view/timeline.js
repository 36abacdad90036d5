// A lane per job, with what it waited for, held and called, and marks for what happened; in the order of events.
import { figure } from "./figure.js";
import { plural, seconds } from "./numbers.js";
import { table } from "./table.js";

const BAR = "M-0.35,-1L0.35,-1L0.35,1L-0.35,1Z";
const OCTAGON = "M-0.4,-1L0.4,-1L1,-0.4L1,0.4L0.4,1L-0.4,1L-1,0.4L-1,-0.4Z";
const STAR = "M0,-1L0.3,-0.3L1,0L0.3,0.3L0,1L-0.3,0.3L-1,0L-0.3,-0.3Z";
const KINDS = [
  { name: "turn", kinds: ["system", "assistant"], colour: "var(--estimate)", shape: "circle" },
  { name: "code run", kinds: ["code"], colour: "var(--less)", shape: BAR },
  { name: "tool call", kinds: ["tool", "tools"], colour: "var(--tool)", shape: "square" },
  { name: "job", kinds: ["job", "wait"], colour: "var(--soft)", shape: "triangle-right" },
  { name: "claim", kinds: ["claim"], colour: "var(--claim)", shape: "diamond" },
  { name: "external change", kinds: ["world"], colour: "var(--less)", shape: "triangle-left" },
  {
    name: "error handler",
    kinds: ["handler"],
    colour: "var(--measured)",
    shape: "triangle-down",
  },
  {
    name: "message",
    kinds: ["user", "delivered", "notice", "subtask", "asked", "person", "resumed"],
    colour: "var(--reported)",
    shape: "triangle-up",
  },
  {
    name: "exception, failure or loss",
    kinds: ["provider", "store", "killed"],
    colour: "var(--limit)",
    shape: "cross",
  },
  { name: "stop or end", kinds: ["stopped", "exit"], colour: "var(--ink)", shape: OCTAGON },
];
const HARNESS = { name: "harness", colour: "var(--more)", shape: STAR };
const HEIGHTS = { claim: 30, tool: 18, wait: 18 };
const NOWHERE = "outside jobs";
const EVENT = 11;
const WIDEST = 6000;
const LABEL = 120;

/** Returns the kind of a span or an entry of the transcript; a stop that is an error is a stop. */
function kindOf({ kind, error }) {
  const sought = error && kind !== "stopped" ? "provider" : kind;
  return KINDS.find(({ kinds }) => kinds.includes(sought)) ?? HARNESS;
}

/** Returns the entries that have a mark: one per event, and of what was printed only errors. */
export function marksOf(transcript) {
  const seen = new Set();
  return transcript.filter(
    ({ seq, kind, error }) => (kind !== "console" || error) && !seen.has(seq) && seen.add(seq),
  );
}

/** Returns the first line of an entry's text, short enough to stand beside a mark. */
function label({ text }) {
  const [line] = text.split("\n", 1);
  return line === text && text.length <= LABEL ? text : `${line.slice(0, LABEL)}...`;
}

/** Returns the figure for a run's lanes, spans and transcript; `onEvent(seq)` is told which event was clicked. */
export function timeline({ lanes, spans, transcript }, onEvent) {
  const marks = marksOf(transcript);
  const places = ranks(marks, [...lanes, ...spans]);
  const end = Math.max(...marks.map((mark) => mark.at), 0);
  return figure({
    title: "Events by job.",
    says:
      `${plural(lanes.length, "job")}, ${plural(marks.length, "event")}, ${seconds(end)} of virtual time. ` +
      "Events run from left to right; bars show waits, tool calls and claims.",
    spec: (width) => spec({ lanes, spans, marks }, places, width),
    numbers: () => numbers(marks),
    onClick: (row) => row.seq !== undefined && onEvent(row.seq),
  });
}

/** Gives every event that is shown its place from the left: the trace has many others between them. */
function ranks(marks, spans) {
  const seen = new Set(marks.map((mark) => mark.seq));
  for (const span of spans) for (const seq of [span.from_seq, span.to_seq]) if (seq !== null) seen.add(seq);
  return new Map([...seen].sort((a, b) => a - b).map((seq, place) => [seq, place + 1]));
}

function numbers(marks) {
  return table(
    "Events by job",
    [
      { label: "event", value: (mark) => mark.seq, numeric: true, header: true },
      { label: "virtual time", value: (mark) => seconds(mark.at), numeric: true },
      { label: "job", value: (mark) => mark.job || NOWHERE },
      { label: "kind", value: (mark) => kindOf(mark).name },
      { label: "what", value: label },
    ],
    marks,
  );
}

function spec({ lanes, spans, marks }, places, width) {
  const last = places.size + 1;
  const jobs = [...new Set([...lanes, ...marks, ...spans].map(({ job }) => job || NOWHERE))];
  const used = [...KINDS, HARNESS].filter((kind) =>
    [...marks, ...spans].some((each) => kindOf(each) === kind),
  );
  const x = { type: "quantitative", axis: null, scale: { domain: [0, last], nice: false } };
  const y = {
    field: "job",
    type: "nominal",
    sort: jobs,
    title: null,
    axis: { ticks: false, domain: false, labelLimit: 140 },
    scale: { domain: jobs },
  };
  const colour = {
    field: "kind",
    type: "nominal",
    title: null,
    scale: { domain: used.map(({ name }) => name), range: used.map(({ colour }) => colour) },
  };
  return {
    width: Math.min(WIDEST, Math.max(width - 150, EVENT * last)),
    height: { step: jobs.length > 8 ? 34 : 46 },
    encoding: { y },
    layer: [
      {
        data: {
          values: lanes.map((lane) => ({
            job: lane.job,
            from: places.get(lane.from_seq),
            to: places.get(lane.to_seq),
          })),
        },
        mark: { type: "bar", height: 4, cornerRadius: 2, color: "var(--line)" },
        encoding: { x: { ...x, field: "from" }, x2: { field: "to" } },
      },
      ...Object.entries(HEIGHTS).map(([kind, height]) => ({
        data: { values: spans.filter((span) => span.kind === kind).map((span) => bar(span, places, last)) },
        mark: { type: "bar", height, cornerRadius: 4, fillOpacity: 0.3 },
        encoding: {
          x: { ...x, field: "from" },
          x2: { field: "to" },
          color: colour,
          tooltip: [{ field: "kind" }, { field: "label" }, { field: "took", title: "virtual time" }],
        },
      })),
      {
        data: { values: moments(marks, places) },
        mark: { type: "rule", strokeDash: [2, 3], color: "var(--line)" },
        encoding: { x: { ...x, field: "place" }, y: { value: 0 }, y2: { value: "height" } },
      },
      {
        data: { values: moments(marks, places) },
        mark: { type: "text", baseline: "bottom", align: "left", dy: -4, fontSize: 11, fill: "var(--soft)" },
        encoding: { x: { ...x, field: "place" }, y: { value: 0 }, text: { field: "time" } },
      },
      {
        data: { values: marks.map((mark) => point(mark, places)) },
        mark: { type: "point", filled: true, size: 90, opacity: 1, stroke: "var(--paper)", strokeWidth: 1 },
        encoding: {
          x: { ...x, field: "place" },
          color: { ...colour, legend: { columns: width < 520 ? 2 : 10, symbolOpacity: 1, symbolSize: 80 } },
          shape: {
            field: "kind",
            type: "nominal",
            title: null,
            scale: { domain: used.map(({ name }) => name), range: used.map(({ shape }) => shape) },
          },
          tooltip: [
            { field: "kind" },
            { field: "label", title: "what" },
            { field: "time", title: "virtual time" },
            { field: "seq", title: "event" },
          ],
        },
      },
    ],
  };
}

function bar(span, places, last) {
  const took = span.to === null ? "not ended" : `${seconds(span.from)} to ${seconds(span.to)}`;
  return {
    job: span.job || NOWHERE,
    kind: kindOf(span).name,
    label: span.label,
    from: places.get(span.from_seq),
    to: span.to_seq === null ? last : places.get(span.to_seq),
    took,
  };
}

function point(mark, places) {
  return {
    job: mark.job || NOWHERE,
    kind: kindOf(mark).name,
    label: label(mark),
    time: seconds(mark.at),
    seq: mark.seq,
    place: places.get(mark.seq),
  };
}

/** Where virtual time passes, as lines with the new time; those too near to the last are left out. */
function moments(marks, places) {
  const found = [];
  let at = null;
  let place = -Infinity;
  for (const mark of [...marks].sort((a, b) => a.seq - b.seq)) {
    if (mark.at === at) continue;
    at = mark.at;
    if (places.get(mark.seq) - place < 5) continue;
    place = places.get(mark.seq);
    found.push({ place: place - 0.5, time: seconds(at) });
  }
  return found;
}
