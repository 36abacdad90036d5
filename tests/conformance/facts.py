"""What is compared: one plain, JSON-like value per case, read the same way from both runtimes.

Text that differs from machine to machine is replaced by rule, in `same_everywhere`; sizes of requests are those of
the replaced text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.conformance.api import FutureResult, text_seen_by_agents
from tests.conformance.job import AgentPlan, Refusal, Reply, Turn
from tests.conformance.world import WORLD

Facts = dict[str, Any]

_TRACEBACK: Final = "Traceback (most recent call last):"
_JOB_FAILED: Final = re.compile(r"\bJob \S+ failed with error")
_ERROR_TYPE: Final = re.compile(r"^(> )?[A-Za-z_][\w.]*")
_ADDRESS: Final = re.compile(r" (?:object at 0x[0-9a-f.]+|instance uuid=\w+)(?=>)")
_OWN_NAMES: Final = frozenset({"_STATEK_CTX", "_PERM_CTX"})
_LIMITS: Final = {
    "Maximum number of turns": "max_turns",
    "Maximum number of exceptions": "max_exceptions",
    "Maximum consecutive exceptions": "max_consecutive_exceptions",
    "Maximum token usage": "max_token_usage",
}


def same_everywhere(text: str) -> str:
    """Return `text` without ids, memory addresses and the frames of tracebacks.

    Of a chain of exceptions the last is kept, without its type: what a failing HTTP client raises has other names
    here and there.
    """
    text = _ADDRESS.sub(" object", _JOB_FAILED.sub("Job <id> failed with error", text))
    if _TRACEBACK not in text:
        return text
    head, *_, last = text.split(_TRACEBACK)
    lines = last.split("\n")
    kept = next(n for n, line in enumerate(lines) if n and not line.removeprefix("> ").startswith(" "))
    lines[kept] = _ERROR_TYPE.sub(r"\1<type>", lines[kept])
    return head + _TRACEBACK + "\n" + "\n".join(lines[kept:])


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return same_everywhere(value)
    if isinstance(value, Mapping):
        return {key: _replaced(item) for key, item in value.items()}
    return [_replaced(item) for item in value] if isinstance(value, list | tuple) else value


def reply_body(turn: Reply | str) -> bytes:
    """Return the HTTP body of an answer, in the OpenAI shape."""
    reply = Reply(text=turn) if isinstance(turn, str) else turn
    if reply.body is not None:
        return reply.body.encode()
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call-{number}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.arguments
                    if isinstance(call.arguments, str)
                    else json.dumps(call.arguments),
                },
            }
            for number, call in enumerate(reply.calls, 1)
        ]
    body: dict[str, Any] = {"id": "reply", "choices": [{"index": 0, "message": message}]}
    if reply.usage is not None:
        body["usage"] = reply.usage
    return json.dumps(body, ensure_ascii=False).encode()


class ScriptOver(AssertionError):
    """A case asks for more replies than it has."""


@dataclass(slots=True)
class Script:
    """The replies of every agent, given out in order, and a record of each request."""

    plans: Mapping[str, AgentPlan]
    requests: list[Facts] = field(default_factory=list)
    problem: str | None = None
    raw_sizes: dict[str, int] = field(default_factory=dict)
    _used: dict[str, int] = field(default_factory=dict)
    _last: dict[str, list[Any]] = field(default_factory=dict)

    def next(self, role: str, job: str, body: Mapping[str, Any]) -> Turn:
        """Record a request of `job` and return what answers it."""
        number = self._used.get(role, 0)
        self._used[role] = number + 1
        replies = self.plans[role].replies
        turn = replies[number] if number < len(replies) else None
        self._record(job, body, counts=turn is not None and not isinstance(turn, Refusal))
        if turn is None:
            self.problem = f"{role} has no reply {number + 1}"
            raise ScriptOver(self.problem)
        return turn

    def _record(self, job: str, body: Mapping[str, Any], *, counts: bool) -> None:
        raw = json.dumps(body)
        if counts:
            self.raw_sizes[job] = self.raw_sizes.get(job, 0) + len(raw)
        shown: dict[str, Any] = _replaced(json.loads(raw))
        messages = shown.pop("messages")
        before = self._last.get(job, [])
        kept = next(
            (n for n, (a, b) in enumerate(zip(before, messages, strict=False)) if a != b),
            min(len(before), len(messages)),
        )
        self._last[job] = messages
        tools = shown.pop("tools", None)
        fact: Facts = {"job": job, **shown, "bytes": len(json.dumps(_replaced(json.loads(raw))))}
        if tools is not None:
            fact["tools"] = [tool["function"]["name"] for tool in tools]
            fact["tools_sha256"] = hashlib.sha256(json.dumps(tools).encode()).hexdigest()[:16]
        self.requests.append({**fact, "kept": kept, "new": messages[kept:]})

    def unused(self) -> dict[str, int]:
        """Return how many replies nobody asked for, by role."""
        left = {role: len(plan.replies) - self._used.get(role, 0) for role, plan in self.plans.items()}
        return {role: count for role, count in left.items() if count}


def job_facts(job: Any, definition_errors: Iterable[str], stop: str | None) -> Facts:
    """Return what one job left behind; `stop` says why its last unit ended."""
    env = job.py_env
    # The real package keeps `None` or its own containers where nothing was written.
    console = [same_everywhere(str(line)) for line in env.console or ()]
    error = None if job.error is None else same_everywhere(job.error.error_message)
    return {
        "status": str(job.status),
        "stop": stop,
        "exit": _text(env.exit_status),
        "error": error,
        "definition_errors": [same_everywhere(text) for text in definition_errors],
        "console": console,
        "locals": {
            name: _text(value)
            for name, value in sorted(dict(env.local_state or {}).items())
            if name not in _OWN_NAMES
        },
        "turns": job.num_turns,
        "exceptions": job.exception_count,
        "streak": job.max_consecutive_exceptions,
        "completions": job.num_completions,
        "tool_logs": [_tool_log(item.tool_log) for item in job.chat_log if _is_turn(item) and item.tool_log],
        "usage": _usage(job),
    }


def _is_turn(item: Any) -> bool:
    return type(item).__name__ in ("LLM_LogItem", "WarmupLogItem")


def _tool_log(log: Any) -> list[Any]:
    return [
        {"error": same_everywhere(result.err_message)}
        if hasattr(result, "err_message")
        else same_everywhere(str(result))
        for result in log
    ]


def _text(value: object) -> str | None:
    """Return what an agent sees of a value; the text of an unfinished subtask, for one, is an error."""
    if value is None:
        return None
    if isinstance(value, FutureResult):
        # Agents see the value it brings, never the future itself.
        return "<future>"
    try:
        return same_everywhere(text_seen_by_agents(value))
    except Exception as error:  # noqa: BLE001  # the value's own code
        return same_everywhere(f"<{type(error).__name__}: {error}>")


def _usage(job: Any) -> Facts:
    usage = job.usage
    cost = usage.total_reported_cost
    return {
        "received": usage.total_bytes_received,
        "input": usage.total_input_tokens,
        "output": usage.total_output_tokens,
        "cached": usage.total_cached_tokens,
        "cost": None if cost is None else round(cost, 9),
    }


def limit_named(exit_status: str) -> str | None:
    """Return the limit that an exit status of the harness names."""
    return next(
        (limit for start, limit in _LIMITS.items() if exit_status.startswith(f"Error: {start}")), None
    )


def case_facts(script: Script, jobs: Mapping[str, Facts], refused: list[str], loop_died: str | None) -> Facts:
    """Return everything that is compared about one case."""
    return {
        "jobs": dict(jobs),
        "requests": script.requests,
        "unused_replies": script.unused(),
        "delivered": [list(entry) for entry in WORLD.sent],
        "ledger": list(WORLD.ledger),
        "handlers": [same_everywhere(line) for line in WORLD.handled],
        "refused": [same_everywhere(line) for line in refused],
        "loop_died": None if loop_died is None else same_everywhere(loop_died),
    }
