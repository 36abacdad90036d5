"""The results of a scenario run as frozen values, for expectations, reports and comparisons.

This module also derives everything that can be read from the trace alone, on any runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.backends.call_log import AnsweredCall
from statek_sim.trace import Event, Trace
from statek_sim.values import JSON, Message

FUTURE: Final = "<future>"
"""Replaces a future, ready or not, because a future's text differs between backends."""
FUTURE_TEXT: Final = re.compile(r"\w+\((deps=.*\bstate_num=|a future\)$)", re.DOTALL)
"""Matches a future's text on either backend, whatever its class; agent code and applications may define their
own classes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """Usage in three units: bytes with STATEK's token estimate, the tokenizer's counts, and the provider's counts."""

    bytes_sent: int = 0
    bytes_received: int = 0
    approx_tokens: int = 0
    measured_tokens: int = 0
    measured_prompt: int = 0
    measured_completion: int = 0
    reported_tokens: int | None = None
    tokenizer: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job's state at the end of a run.

    `locals` and `exit` hold plain YAML values if possible, otherwise the text that an agent would see.
    `tool_log` has one list per LLM turn with tool calls: result strings, or `{"error": text}`. `history` is
    the conversation sent in the last request. The fields after `usage` are only set on engine two.
    """

    name: str
    agent: str
    status: str
    stop: str | None
    exit: JSON = None
    error: str | None
    definition_errors: tuple[str, ...] = ()
    llm_calls: int
    turns: int
    exceptions: int
    streak: int
    completions: int | None
    steps: int
    console: tuple[str, ...] = ()
    locals: Mapping[str, JSON]
    history: tuple[Message, ...]
    tool_log: tuple[tuple[JSON, ...], ...] = ()
    tool_calls: tuple[Mapping[str, JSON], ...]
    handlers: tuple[events.HandlerRan, ...] = ()
    delivered: tuple[Mapping[str, JSON], ...] = ()
    subtasks: Mapping[str, str]
    usage: UsageRecord
    answer: str | None = None
    offered: tuple[str, ...] = ()
    lint: tuple[str, ...] = ()
    refused: tuple[Mapping[str, JSON], ...] = ()
    nudges: tuple[str, ...] = ()
    steps_done: tuple[str, ...] = ()
    steps_open: tuple[str, ...] = ()
    cached_share: float | None = None


_LEFT_OVER: Final = ("UnusedEvents", "UnusedReplies", "UnplayedRecordings")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """Why a run as a whole failed: a script mismatch, a forbidden connection, or a job that never ends."""

    type: str
    message: str

    def in_run(self, *, settled: bool, until: float) -> RunError:
        """Return the error, with an explanation if something was left unused because the run ended early."""
        if settled or self.type not in _LEFT_OVER:
            return self
        return RunError(
            type=self.type,
            message=f"{self.message}\nthe run ended at virtual second {until:g} (`until`) before its work was done",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The record of a scenario run under one profile.

    `idle` is whether jobs were still waiting at the end, `settled` whether no work was left. `worker` is why
    the worker process is dead, or None. `items` maps work item ids to status, owner and error. `calls` are
    the answered LLM calls, grouped by job; only runs on our own engines record them.
    """

    scenario: str
    profile: str
    seed: int
    backend: str
    jobs: Mapping[str, JobRecord]
    handlers: tuple[events.HandlerRan, ...] = ()
    items: Mapping[str, Mapping[str, JSON]]
    leaked_claims: tuple[str, ...] = ()
    ledger: tuple[str, ...] = ()
    llm_calls: int
    idle: bool
    settled: bool
    worker: str | None = None
    usage: UsageRecord
    digest: str
    events: Sequence[Event] = field(repr=False)
    error: RunError | None = None
    calls: Sequence[AnsweredCall] = field(default=(), repr=False, compare=False)


def seen_of_run(trace: Trace) -> dict[str, Any]:
    """Return the `RunRecord` fields that can be read from the run's trace, on any runtime."""
    return {
        "profile": trace.header["profile"],
        "seed": trace.header["seed"],
        "handlers": handler_calls(trace.events),
        "llm_calls": sum(isinstance(event, events.LLMRequested) for event in trace.events),
        "digest": trace.digest(),
        "events": trace.events,
    }


def handler_calls(trace: Iterable[events.Event]) -> tuple[events.HandlerRan, ...]:
    """Return the error handler calls, in order."""
    return tuple(event for event in trace if isinstance(event, events.HandlerRan))


def tool_calls(trace: Iterable[events.Event]) -> tuple[dict[str, JSON], ...]:
    """Return a job's tool calls, each with `result` or `error`; a call that never returned has neither."""
    calls: list[dict[str, JSON]] = []
    open_calls: list[dict[str, JSON]] = []
    for event in trace:
        if isinstance(event, events.ToolCalled):
            call: dict[str, JSON] = {"name": event.name, "arguments": event.arguments, "via": event.via}
            calls.append(call)
            open_calls.append(call)
        elif isinstance(event, events.ToolReturned) and open_calls:
            open_calls.pop()["error" if event.error is not None else "result"] = event.error or event.result
    return tuple(calls)


def seen_of_job(trace: Sequence[events.Event]) -> dict[str, Any]:
    """Return the `JobRecord` fields that can be read from the job's events, on any runtime."""
    return {
        "llm_calls": sum(isinstance(event, events.LLMRequested) for event in trace),
        "tool_calls": tool_calls(trace),
        "handlers": handler_calls(trace),
        "delivered": tuple(
            {"body": event.body, "media": event.media}
            for event in trace
            if isinstance(event, events.Delivered)
        ),
    }


def stop_reason(trace: Iterable[events.Event]) -> str | None:
    """Return why a job's last unit of work ended, based on the job's events, or None while the job continues."""
    reason: str | None = None
    for event in trace:
        if isinstance(event, events.JobStopped):
            reason = event.reason
        elif isinstance(event, events.Reactivated):
            reason = None
    return reason
