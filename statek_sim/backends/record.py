"""What a scenario run left behind: facts that expectations, reports and diffs read. Frozen values.

Some of them a trace alone can tell, whichever runtime it comes from; these are read off it here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.backends.call_log import AnsweredCall
from statek_sim.fast_dataclass import quick
from statek_sim.trace import Event
from statek_sim.values import JSON, Message

FUTURE: Final = "<future>"
"""How a future is shown, ready or not: what it is made of differs from backend to backend."""
FUTURE_TEXT: Final = re.compile(r"\w+\((deps=.*\bstate_num=|a future\)$)", re.DOTALL)
"""How the text of a future begins on either backend: agents' code and applications have classes of their own."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerCall:
    """One call of an error handler: texts as agents would see them."""

    job: str
    name: str
    context: str
    error: str | None
    failed: str | None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """Usage in three columns: bytes and STATEK's estimate, the tokenizer's count, the provider's report."""

    bytes_sent: int = 0
    bytes_received: int = 0
    approx_tokens: int = 0
    measured_tokens: int = 0
    measured_prompt: int = 0
    measured_completion: int = 0
    reported_tokens: int | None = None
    tokenizer: str = "none"


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job at the end of a run.

    `locals` and `exit` hold plain YAML values where possible, else the text an agent would see. `tool_log` has one
    list per LLM turn that called tools: result texts, or `{"error": text}`. `history` is what the last request
    carried. What follows `usage` only the tool-calling agent has.
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
    handlers: tuple[HandlerCall, ...] = ()
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


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """Why the run itself failed: a script that does not fit, a forbidden connection, a runaway job."""

    type: str
    message: str

    def in_run(self, *, settled: bool, until: float) -> RunError:
        """Return the error of a run; that its end came before all was done explains replies that are left over."""
        if settled or self.type not in _LEFT_OVER:
            return self
        return RunError(
            type=self.type,
            message=f"{self.message}\nthe run ended at virtual second {until:g}, as `until` says, and more was to come",
        )


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One scenario under one profile.

    `idle`: the run ended with jobs still waiting. `settled`: nothing was left to do before time ran out.
    `worker`: why the worker process is dead, or None. `items` maps work items to status, owner and error.
    `calls`: the LLM calls that were answered, job by job; only the reference backend keeps them.
    """

    scenario: str
    profile: str
    seed: int
    backend: str
    jobs: Mapping[str, JobRecord]
    handlers: tuple[HandlerCall, ...] = ()
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


def handler_calls(trace: Iterable[events.Event]) -> tuple[HandlerCall, ...]:
    """Return the calls of error handlers, in order."""
    return tuple(
        HandlerCall(
            job=event.job, name=event.name, context=event.context, error=event.error, failed=event.failed
        )
        for event in trace
        if isinstance(event, events.HandlerRan)
    )


def tool_calls(trace: Iterable[events.Event]) -> tuple[dict[str, JSON], ...]:
    """Return one job's tool calls with how each ended; a call that never returned has neither."""
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
    """Return those fields of a job's record that its trace tells, on any runtime."""
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
    """Return why one job's last unit ended; None while it goes on."""
    reason: str | None = None
    for event in trace:
        if isinstance(event, events.JobStopped):
            reason = event.reason
        elif isinstance(event, events.Reactivated):
            reason = None
    return reason
