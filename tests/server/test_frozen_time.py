"""A test that freezes time with freezegun: the server's waits stay real, and tools keep their dates."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Annotated, Any, Literal, cast

import httpx
from freezegun import freeze_time

from statek_sim import text
from statek_sim.agents import tool_from
from statek_sim.server import FaultRule, LLMServer, SlowFirstByte
from tests.server.asking import openai


@freeze_time("2026-01-01")
def test_a_wait_of_the_server_ends_while_time_is_frozen() -> None:
    with LLMServer() as server:
        server.script([text("x")], faults=[FaultRule(fault=SlowFirstByte(0.05), positions=(1,))])
        answer = httpx.post(f"{server.openai_url}/chat/completions", json=openai(), timeout=20)
    assert answer.json()["choices"][0]["message"]["content"] == "x"


def test_a_tool_with_dates_is_the_same_while_time_is_frozen() -> None:
    usual = tool_from(_booking()).parameters
    with freeze_time("2026-01-01"):
        assert tool_from(_booking()).parameters == usual


def _booking() -> Callable[..., str]:
    """Return a function whose hints are read now."""
    namespace = {
        "date": datetime.date,
        "datetime": datetime.datetime,
        "Annotated": Annotated,
        "Literal": Literal,
    }
    exec(_SOURCE, namespace)
    book: Any = namespace["book"]
    return cast("Callable[..., str]", book)


_SOURCE = """
def book(
    day: date, at: datetime | None, days: list[date], by: dict[str, date | None], last: Annotated[date, "the latest"],
    how: Literal["quick"],
) -> str:
    return ""
"""
