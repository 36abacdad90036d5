// A lane per job, with what it waited for, held and called, and marks for what happened; in the order of events.
import { figure } from "./figure.js";
import { plural, seconds } from "./numbers.js";
import { table } from "./table.js";

const BAR = "M-0.35,-1L0.35,-1L0.35,1L-0.35,1Z";
const OCTAGON = "M-0.4,-1L0.4,-1L1,-0.4L1,0.4L0.4,1L-0.4,1L-1,0.4L-1,-0.4Z";
const STAR = "M0,-1L0.3,-0.3L1,0L0.3,0.3L0,1L-0.3,0.3L-1,0L-0.3,-0.3Z";
const KINDS = [
  { name: "turn", kinds: ["turn", "reply"], colour: "var(--estimate)", shape: "circle" },
  { name: "code run", kinds: ["code"], colour: "var(--less)", shape: BAR },
  { name: "tool call", kinds: ["tool", "tool_result"], colour: "var(--tool)", shape: "square" },
  { name: "wait", kinds: ["wait", "released"], colour: "var(--soft)", shape: "triangle-right" },
  {
    name: "claim",
    kinds: ["claim", "release_claim"],
    colour: "var(--claim)",
    shape: "diamond",
  },
  { name: "change outside", kinds: ["world"], colour: "var(--less)", shape: "triangle-left" },
  {
    name: "error handler",
    kinds: ["handler", "registered"],
    colour: "var(--measured)",
    shape: "triangle-down",
  },
  {
    name: "message",
    kinds: ["message", "delivered", "reactivated", "notified", "asked", "person", "resumed"],
    colour: "var(--reported)",
    shape: "triangle-up",
  },
  {
    name: "harness",
    kinds: [
      "offered",
      "rescue",
      "refused",
      "nudge",
      "step",
      "compacted",
      "harness",
      "commit",
      "attempt",
      "escalated",
      "recalled",
    ],
    colour: "var(--more)",
    shape: STAR,
  },
  {
    name: "exception, failure or loss",
    kinds: ["exception", "failure", "store", "killed"],
    colour: "var(--limit)",
    shape: "cross",
  },
  { name: "stop or end", kinds: ["stop", "exit"], colour: "var(--ink)", shape: OCTAGON },
];
const OTHER = { name: "other", colour: "var(--soft)", shape: "circle" };
const HEIGHTS = { claim: 30, tool: 18, wait: 18 };
const NOWHERE = "outside jobs";
const EVENT = 11;
const WIDEST = 6000;

const kindOf = (kind) => KINDS.find(({ kinds }) => kinds.includes(kind)) ?? OTHER;

/** Returns the figure for the lanes, spans and marks of a run; `onEvent(seq)` is told which event was clicked. */
export function timeline({ lanes, spans, marks }, onEvent) {
  const places = ranks(marks, [...lanes, ...spans]);
  const end = Math.max(...marks.map((mark) => mark.at), 0);
  return figure({
    title: "What happened, job by job.",
    says:
      `${plural(lanes.length, "job")}, ${plural(marks.length, "event")}, ${seconds(end)} of virtual time. ` +
      "Events are in order from left to right; bars are waits, tool calls and claims held.",
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
    "What happened, job by job",
    [
      { label: "event", value: (mark) => mark.seq, numeric: true, header: true },
      { label: "virtual time", value: (mark) => seconds(mark.at), numeric: true },
      { label: "job", value: (mark) => mark.job || NOWHERE },
      { label: "kind", value: (mark) => kindOf(mark.kind).name },
      { label: "what", value: (mark) => mark.label },
    ],
    marks,
  );
}

function spec({ lanes, spans, marks }, places, width) {
  const last = places.size + 1;
  const jobs = [...new Set([...lanes, ...marks, ...spans].map(({ job }) => job || NOWHERE))];
  const used = [...KINDS, OTHER].filter((kind) =>
    [...marks, ...spans].some((each) => kindOf(each.kind) === kind),
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
    kind: kindOf(span.kind).name,
    label: span.label,
    from: places.get(span.from_seq),
    to: span.to_seq === null ? last : places.get(span.to_seq),
    took,
  };
}

function point(mark, places) {
  return {
    job: mark.job || NOWHERE,
    kind: kindOf(mark.kind).name,
    label: mark.label,
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
