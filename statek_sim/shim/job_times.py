"""STATEK's methods for the times and sizes of a job's model calls. Sizes are in tokens of four characters each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeAlias

from statek_sim.runtime.agents.dialog import faces_user
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.chat_log import CodeBlock, LLM_LogItem, ToolError, UserLogItem

Times: TypeAlias = list[tuple[datetime, float | None]]
"""Pairs of a request's or message's time and the seconds until the reply, if there is one."""


def get_response_times(self: Job) -> Times:
    """Return each user message's time, and the seconds until the next text for the user."""
    times: Times = []
    waiting: list[int] = []
    for item in self.chat_log:
        if isinstance(item, str | UserLogItem):
            if item if isinstance(item, str) else item.message:
                waiting.append(len(times))
                times.append((self.created_at if isinstance(item, str) else item.timestamp, None))
        elif isinstance(item, LLM_LogItem) and waiting and faces_user(self, item):
            for index in waiting:
                times[index] = _measured(times[index][0], item)
            waiting = []
    return times


def get_llm_response_times(self: Job) -> Times:
    """Return each request's time, and the seconds to its reply.

    A request is taken to start when the job was activated again, else at the previous reply.
    """
    times: Times = []
    start: datetime | None = None
    previous = self.created_at
    for item in self.chat_log:
        if not isinstance(item, LLM_LogItem):
            continue
        if item.llm_resp is None:
            start = item.timestamp
            continue
        times.append(_measured(previous if start is None else start, item))
        start, previous = None, item.timestamp
    return times if start is None else [*times, (start, None)]


def _measured(start: datetime, item: LLM_LogItem) -> tuple[datetime, float]:
    return start, (item.timestamp - start).total_seconds()


def get_llm_initial_step_size(self: Job) -> tuple[int, int]:
    """Return the size of the system prompt and the visible warmup code, and 0 for the output."""
    warmup = "".join(block.code or "" for block in self.job_def.blocks if not block.hidden)
    return (len(self.system_prompt()) + len(warmup)) // 4, 0


def get_llm_step_sizes(self: Job) -> Iterator[tuple[int, int]]:
    """Yield the sizes of what is new in each request, and of its reply; 0 for a reply that is still awaited."""
    awaited: int | None = None
    text, position, results, initial = "", 0, "", get_llm_initial_step_size(self)[0]
    for item in self.chat_log:
        if isinstance(item, str | UserLogItem):
            text += item if isinstance(item, str) else item.message or ""
        if not isinstance(item, LLM_LogItem):
            continue
        console = "\n".join(self.py_env.lines[position : item.console_pos])
        awaited = (len(console) + len(results) + len(text)) // 4 + initial
        if item.llm_resp is not None:
            yield awaited, _output_size(item.llm_resp)
            awaited, initial, text, position = None, 0, "", item.console_pos
            log = item.tool_log or ()
            results = "\n".join(entry.err_message if isinstance(entry, ToolError) else entry for entry in log)
    if awaited is not None:
        yield awaited, 0


def _output_size(response: str | CodeBlock) -> int:
    if isinstance(response, str):
        return len(response) // 4
    calls: list[dict[str, Any]] = [
        {"name": call.func_name, "arguments": dict(call.kwargs)} for call in response.tool_calls
    ]
    return (len(response.code or "") + len(json.dumps(calls) if calls else "")) // 4


def tokens_per_sec(self: Job) -> float:
    """Return the total size of answered requests and their replies, divided by the seconds that the replies took."""
    tokens, total = 0, 0.0
    for (_, seconds), sizes in zip(get_llm_response_times(self), get_llm_step_sizes(self), strict=False):
        if seconds is not None:
            tokens, total = tokens + sum(sizes), total + seconds
    return tokens / total if total else 0.0
