"""The record of an agent's calls, read from a run's trace."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from statek_sim.observed_calls import Call, Request, Trajectory
from statek_sim.trace import (
    CallRefused,
    JobStopped,
    LLMReplied,
    LLMRequested,
    RequestFailed,
    ToolCalled,
    ToolReturned,
    Trace,
)
from statek_sim.values import Message


def _traced_calls(trace: Trace) -> tuple[list[Call], list[Call]]:
    """Return the calls that were executed, and those that were rejected."""
    turns: dict[str, int] = {}
    calls: list[Call] = []
    refused: list[Call] = []
    running: defaultdict[tuple[str, str, str | None], deque[int]] = defaultdict(deque)
    for event in trace.events:
        if isinstance(event, LLMReplied):
            turns[event.job] = event.turn
        elif isinstance(event, ToolCalled):
            running[event.job, event.name, event.call_id].append(len(calls))
            arguments = written_arguments(event.arguments)
            calls.append(Call(event.name, arguments, None, None, turns.get(event.job, 0)))
        elif isinstance(event, ToolReturned):
            if places := running[event.job, event.name, event.call_id]:
                place = places.popleft()
                calls[place] = replace(calls[place], result=event.result, error=event.error)
        elif isinstance(event, CallRefused):
            arguments = written_arguments(event.arguments)
            turn = turns.get(event.job, 0)
            refused.append(Call(event.name, arguments, event.reason, event.failure, turn))
    return calls, refused


def traced(trace: Trace) -> Trajectory:
    """Return the record of the agents in a trace."""
    calls, refused = _traced_calls(trace)
    requests = tuple(_traced_requests(trace))
    ended = next((event.reason for event in reversed(trace.events) if isinstance(event, JobStopped)), None)
    stop = ended or what_came_last(requests, calls)
    answer = next((event.text for event in reversed(trace.events) if isinstance(event, LLMReplied)), None)
    return Trajectory(tuple(calls), requests, answer, stop, tuple(refused))


def _traced_requests(trace: Trace) -> Iterator[Request]:
    """Yield the requests in the order in which they finished."""
    messages: dict[str, tuple[Message, ...]] = {}
    models: dict[str, str] = {}
    for event in trace.events:
        if isinstance(event, LLMRequested):
            messages[event.job] = (*messages.get(event.job, ())[: event.kept], *event.new)
            models[event.job] = event.model
        elif isinstance(event, RequestFailed) and event.job in messages:
            yield Request(0, models[event.job], messages[event.job], event.error, 0, 0)
        elif isinstance(event, LLMReplied) and event.job in messages:
            prompt = event.measured_prompt if event.reported_prompt is None else event.reported_prompt
            completion = (
                event.measured_completion if event.reported_completion is None else event.reported_completion
            )
            yield Request(event.turn, models[event.job], messages[event.job], None, prompt, completion)


def written_arguments(text: str) -> Mapping[str, Any] | str:
    """Return the values of arguments in Python notation, as in traces, or the string if it cannot be parsed."""
    try:
        parsed = ast.parse(f"_({text})", mode="eval").body
        if not isinstance(parsed, ast.Call) or parsed.args or any(one.arg is None for one in parsed.keywords):
            return text
        return {str(one.arg): ast.literal_eval(one.value) for one in parsed.keywords}
    except (SyntaxError, ValueError):
        return text


def what_came_last(requests: Sequence[Request], calls: Sequence[Call]) -> str | None:
    """Return how a run ended, based on its last request: `error`, `calls` or `answer`; None if it has no requests."""
    if not requests:
        return None
    last = requests[-1]
    if last.error is not None:
        return "error"
    return "calls" if any(made.turn == last.turn and made.result is None for made in calls) else "answer"
