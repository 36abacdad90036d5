"""Compares two runs' fields and traces after normalizing machine-dependent text."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.trace import Event, as_dict
from statek_sim.usage.token_usage import approx_tokens
from statek_sim.values import JSON, as_json, in_common, record

_SAME_NAMES: Final = (
    "agent",
    "status",
    "stop",
    "exit",
    "error",
    "definition_errors",
    "llm_calls",
    "turns",
    "exceptions",
    "streak",
    "completions",
    "steps",
    "console",
    "locals",
    "history",
    "tool_log",
    "tool_calls",
    "delivered",
    "subtasks",
)


_OF_THE_RUN: Final = ("handlers", "items", "leaked_claims", "ledger", "idle", "settled")


def facts_of(run: RunRecord) -> dict[str, JSON]:
    """Return a run's fields to compare, without its trace; sizes are those of requests with normalized text."""
    sizes = size_corrections(run.events)
    jobs = {name: _job(job, sizes.get(name, 0)) for name, job in run.jobs.items()}
    return {**record(run, "error", "worker"), "jobs": as_json(jobs), **record(run, *_OF_THE_RUN)}


def _job(job: JobRecord, correction: int) -> dict[str, Any]:
    sent, received = job.usage.bytes_sent + correction, job.usage.bytes_received
    return {
        **{name: getattr(job, name) for name in _SAME_NAMES},
        "bytes_sent": sent,
        "bytes_received": received,
        # As STATEK counts, unless the sizes had to be corrected.
        "approx_tokens": approx_tokens(sent, received) if correction else job.usage.approx_tokens,
        "reported_tokens": job.usage.reported_tokens or 0,
    }


FIRST: Final = ("error", "worker", "jobs")
"""Fields reported first if they differ, because other differences follow from them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs, like `jobs.main.turns`, with both sides' values."""

    field: str
    reference: JSON
    installed: JSON


def differences(reference: dict[str, JSON], installed: dict[str, JSON]) -> tuple[Difference, ...]:
    """Return the differences, most important first.

    Each job property is a separate field; other data is compared as a whole.
    """
    return tuple(_differences(_fields(reference), _fields(installed)))


_MISSING: Final = "(absent)"


def _differences(reference: dict[str, JSON], installed: dict[str, JSON]) -> Iterator[Difference]:
    for field in dict.fromkeys((*reference, *installed)):
        ours, theirs = reference.get(field, _MISSING), installed.get(field, _MISSING)
        if ours != theirs:
            yield Difference(field, ours, theirs)


def _fields(facts: dict[str, JSON]) -> dict[str, JSON]:
    fields: dict[str, JSON] = {}
    for name in (*FIRST, *(name for name in facts if name not in FIRST)):
        value = facts.get(name)
        if name != "jobs" or not isinstance(value, dict):
            fields[name] = normal(value)
            continue
        fields["jobs"] = list(value)
        for job, job_facts in value.items():
            if isinstance(job_facts, dict):
                fields.update(
                    {f"jobs.{job}.{key}": normal(_job_fact(key, fact)) for key, fact in job_facts.items()}
                )
    return fields


_VALUE_FACTS: Final = ("locals", "tool_calls")
"""Fields with value representations that agents never see in this form."""


def _job_fact(key: str, fact: JSON) -> JSON:
    return normal_local(fact) if key in _VALUE_FACTS else fact


UNSEEN_FIELDS: Final = {
    (
        "LLMReplied",
        "measured_prompt",
    ): "tokenizer measurements exist only in this package; STATEK does not measure",
    ("LLMReplied", "measured_completion"): "tokenizer measurements exist only in this package",
}
"""Event fields that the real package cannot provide, each with the reason."""


@dataclass(frozen=True, slots=True)
class Parting:
    """The first event that differs: its position, and each side's event (None if that trace has ended)."""

    position: int
    reference: dict[str, JSON] | None
    installed: dict[str, JSON] | None


def parting(reference: Sequence[Event], installed: Sequence[Event]) -> Parting | None:
    """Return where two traces diverge, or None if they are equal."""
    pairs = zip_longest(comparable(reference), comparable(installed))
    for position, (ours, theirs) in enumerate(pairs):
        if ours != theirs:
            return Parting(position, ours, theirs)
    return None


def comparable(trace: Iterable[Event]) -> Iterator[dict[str, JSON]]:
    """Yield events as plain values with normalized text, without fields that only one side has."""
    requests = Requests()
    usage: dict[str, _Usage] = defaultdict(_Usage)
    for event in trace:
        if isinstance(event, events.StoreRemark):
            # A description of a loss; the loss itself shows in the state of both sides.
            continue
        kind = type(event).__name__
        fields: dict[str, JSON] = json.loads(json.dumps(as_dict(event), default=dict))
        if isinstance(event, events.LLMRequested):
            correction = requests.correction(event)
            usage[event.job].asked(event.bytes_sent, correction)
            fields["bytes_sent"] = event.bytes_sent + correction
            # A text with an id of the store may differ although nothing else does: count in normalized text.
            fields["kept"], fields["new"] = requests.kept(event.job)
        elif isinstance(event, events.LLMReplied):
            usage[event.job].answered(event.bytes_received)
        elif isinstance(event, events.DifficultyRaised) and usage[event.job].correction:
            fields["tokens"] = usage[event.job].tokens
        yield {
            name: _normal(name, value) for name, value in fields.items() if (kind, name) not in UNSEEN_FIELDS
        }


@dataclass(slots=True)
class _Usage:
    """The bytes of a job's answered requests; `correction` is how many bytes normalized text would add."""

    sent: int = 0
    received: int = 0
    correction: int = 0
    _latest: tuple[int, int] = (0, 0)

    def asked(self, size: int, correction: int) -> None:
        self._latest = size, correction

    def answered(self, size: int) -> None:
        sent, correction = self._latest
        self.sent += sent
        self.correction += correction
        self.received += size

    @property
    def tokens(self) -> int:
        return approx_tokens(self.sent + self.correction, self.received)


_VALUE_FIELDS: Final = ("arguments", "context", "detail", "result")
"""Event fields with value representations that agents never see in this form."""


def _normal(name: str, value: JSON) -> JSON:
    return normal_local(normal(value)) if name in _VALUE_FIELDS else normal(value)


class Requests:
    """The messages that jobs have sent, assembled from each request's new messages."""

    def __init__(self) -> None:
        self._messages: dict[str, list[JSON]] = {}
        self._usual: dict[str, list[JSON]] = {}
        self._before: dict[str, list[JSON]] = {}

    def correction(self, request: events.LLMRequested) -> int:
        """Return the number of bytes that normalized text would add to a request."""
        kept = self._messages.get(request.job, [])[: request.kept]
        messages: list[JSON] = [*kept, *map(dict, request.new)]
        self._messages[request.job] = messages
        usual = normal(messages)
        self._before[request.job] = self._usual.get(request.job, [])
        self._usual[request.job] = usual if isinstance(usual, list) else messages
        return 0 if usual == messages else len(json.dumps(usual)) - len(json.dumps(messages))

    def kept(self, job: str) -> tuple[int, list[JSON]]:
        """Return how many messages a job's latest request shares with the previous one, and the normalized rest."""
        before, now = self._before[job], self._usual[job]
        kept = in_common(before, now)
        return kept, now[kept:]


def size_corrections(trace: Iterable[Event]) -> dict[str, int]:
    """Return the number of bytes that normalized text would add to each job's answered requests."""
    requests = Requests()
    usage: dict[str, _Usage] = defaultdict(_Usage)
    for event in trace:
        if isinstance(event, events.LLMRequested):
            usage[event.job].asked(event.bytes_sent, requests.correction(event))
        elif isinstance(event, events.LLMReplied):
            usage[event.job].answered(event.bytes_received)
    return {job: used.correction for job, used in usage.items()}


_CRASHED_JOB: Final = re.compile(r"\bJob \S+ failed with error: ")
# An object of the store, as Python displays it. Its id has a fixed length.
_STORED: Final = re.compile(r" instance uuid=[A-Z2-7]{24}>")
_ADDRESS: Final = re.compile(r" at 0x(?:[0-9a-f]+|\.\.\.)")
# In prompts, console lines may begin with `> `.
_QUOTE: Final = r"(?:> )?"
_HEAD: Final = r"Traceback \(most recent call last\):\n"
# The frames of a traceback are indented by at least two spaces; the exception follows them.
_FRAMES: Final = re.compile(rf"({_HEAD})(?:{_QUOTE}  .*\n|{_QUOTE}\n)*({_QUOTE})(?:\w+\.)*")
# A chain of exceptions starts with the oldest; only the last one matters.
_CHAIN: Final = re.compile(
    rf"{_HEAD}(?:(?!{_QUOTE}Traceback \().*\n)*?{_QUOTE}\n{_QUOTE}"
    r"(?:During handling of the above exception, another exception occurred|"
    r"The above exception was the direct cause of the following exception)"
    rf":\n{_QUOTE}\n{_QUOTE}(?=Traceback \()"
)
# A future displays its private fields. No agent ever sees this text: printing a future waits for it.
_FUTURE: Final = re.compile(r"^(\w+)\(deps=.*\)$", re.DOTALL)
# An agent displays its private fields too, including its prompt and its warmup.
_AGENT: Final = re.compile(
    r'\b((?:Dialog)?Agent)\((?:send_message=[^,]*,reminder=[^,]*,)?(role="[^"]*"),.*\)(?=$|, parent_job=)',
    re.DOTALL,
)
# A notification of a subtask shows its wall-clock time.
_CAME: Final = re.compile(r'(SubTaskLogItem\([^\n]*?timestamp=)datetime\(\\?"[\d :-]*\\?"\)')
# Where Python's stack overflowed: in a call, in a comparison, while printing a value.
_STACK_ENDED: Final = re.compile(
    r"(RecursionError: maximum recursion depth exceeded)(?: (?:while|in) [\w ]+)"
)
# Python's errors name a class of the store with its module, which differs for the built-in world.
_OWN_CLASS: Final = re.compile(r"\bstatek_sim\.(?:\w+\.)+(?=[A-Z])")
_MADE: Final = re.compile(r'\bJob\(created_at=datetime\("[^"]*"\)')
# A job displays its private fields and its creation time.
_JOB: Final = re.compile(r"^Job\(created_at=.*\)$", re.DOTALL)


def normal_text(text: str) -> str:
    """Return `text` without machine-dependent parts."""
    if "Job " in text:
        text = _CRASHED_JOB.sub("Job (id) failed with error: ", text)
    if "Traceback (" in text:
        text = _FRAMES.sub(r"\1\2", _CHAIN.sub("", text))
    if " instance uuid=" in text:
        text = _STORED.sub(" instance uuid=(id)>", text)
    if "SubTaskLogItem(" in text:
        text = _CAME.sub(r"\1(moment)", text)
    if "Job(created_at=" in text:
        text = _MADE.sub("Job(created_at=(moment)", text)
    if "RecursionError: " in text:
        text = _STACK_ENDED.sub(r"\1", text)
    if "statek_sim" in text:
        text = _OWN_CLASS.sub("", text).replace("'statek_sim_published'", "'statek_sim'")
    return _ADDRESS.sub("", text) if " at 0x" in text else text


def normal_local(value: JSON) -> JSON:
    """Return a variable's, argument's or result's value, without objects' private fields."""
    if isinstance(value, list):
        return [normal_local(item) for item in value]
    if isinstance(value, dict):
        return {key: normal_local(item) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    return _AGENT.sub(r"\1(\2)", _JOB.sub("<Object>", _FUTURE.sub(r"\1(a future)", value)))


def normal(value: JSON) -> JSON:
    """Return a value with all its strings normalized."""
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, list):
        return [normal(item) for item in value]
    return {key: normal(item) for key, item in value.items()} if isinstance(value, dict) else value
