"""What a preset allows on each side, as numbers: small jobs that go on until the harness stops them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from statek_sim.backends.record import RunRecord
from statek_sim.backends.reference import run_scenario
from statek_sim.compare.changes import LIMITS
from statek_sim.compare.sides import Side
from statek_sim.scenario.schema import Scenario, ScenarioText
from statek_sim.trace import JobStopped, UserMessage

MOST: Final = 100
"""How far a probe goes."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about a preset: a scenario, and how to read the answer off its run (None: never stopped)."""

    question: str
    scenario: Mapping[str, Any]
    answer: Callable[[RunRecord], int | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """One question with the answers of both sides; None: not within `MOST`."""

    question: str
    before: int | None
    after: int | None


def answers(before: Side, after: Side, preset: str) -> Iterator[Answer]:
    """Yield what both sides answer under a preset."""
    for number, probe in enumerate(PROBES):
        text = ScenarioText.model_validate(
            {"id": f"probe-{number}", "title": probe.question, **probe.scenario}
        )
        scenario = Scenario.placed(
            text, text.jobs, suite="compare", path=Path(__file__), line=1, file_digest=""
        )
        old, new = (run_scenario(scenario, side.rules, preset=preset) for side in (before, after))
        yield Answer(probe.question, probe.answer(old), probe.answer(new))


def _stopped(record: RunRecord) -> bool:
    return record.jobs["main"].stop in LIMITS


def _follow_ups(record: RunRecord) -> int | None:
    """Return which follow-up message, counted from 1, was the first that the harness answered."""
    messages = 0
    for event in record.events:
        if isinstance(event, UserMessage):
            messages += 1
        elif isinstance(event, JobStopped) and event.reason in LIMITS:
            return messages - 1
    return None


def _llm_calls(record: RunRecord) -> int | None:
    return record.jobs["main"].llm_calls if _stopped(record) else None


_CHAT: Final[dict[str, Any]] = {
    # Before 1.2.6 a dialog needs warmup.
    "agents": {
        "chat": {"prompt": "You answer.", "dialog": True, "chat_style": "DIRECT", "warmup": 'print("ready")'}
    },
    "jobs": {"main": {"agent": "chat", "message": "Message 1"}},
    "script": {"chat": ({"text": "Here you are.", "repeat": "forever"},)},
    "events": tuple(
        {"at": 10.0 * number, "push": "main", "message": f"Message {number + 1}"}
        for number in range(1, MOST + 1)
    ),
}


def _worker(code: str, **agent: object) -> dict[str, Any]:
    return {
        "agents": {"worker": {"prompt": "You work.", "chat_style": "MARKDOWN", **agent}},
        "jobs": {"main": {"agent": "worker"}},
        "script": {"worker": ({"code": code, "repeat": MOST}, {"code": "exit('end')"})},
    }


PROBES: Final = (
    Probe("follow-up messages until the harness stops the chat", _CHAT, _follow_ups),
    Probe("LLM calls of a job that works on and on", _worker("print('still at it')"), _llm_calls),
    Probe(
        "approximate tokens of 5 LLM calls with all of STATEK's tools offered",
        {
            **_worker("print('still at it')", tools_scope="ALL"),
            # The fifth reply ends the job; what the preset allows does not matter here.
            "script": {"worker": ({"code": "print('still at it')", "repeat": 4}, {"code": "exit('end')"})},
            "limits": {"max_turns": None, "max_token_usage": None},
        },
        lambda record: record.usage.approx_tokens,
    ),
    Probe("LLM calls of a job whose code always fails", _worker("1 / 0"), _llm_calls),
    Probe(
        "LLM calls of a job whose code is silent, and fails every third time",
        {
            **_worker("x = 1"),
            "script": {
                "worker": (
                    *({"code": "1 / 0" if number % 3 == 2 else "x = 1"} for number in range(MOST)),
                    {"code": "exit('end')"},
                )
            },
        },
        _llm_calls,
    ),
)
"""What is asked: how long chats and jobs live."""
