"""Rescue parsing and loop protection as parts of the loop: what the loop's own values become, and back."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from statek_sim.agent.effects import ToolCall, ToolOutcome, ToolStatus, TurnFacts, WrittenCall
from statek_sim.agent.protection import BreakerSettings, Loop, LoopSettings
from statek_sim.agent.reliability import BreakerGate, loop_watcher, reader_of, rescued
from statek_sim.rescue import DIALECTS, rescue
from statek_sim.values import JSON

FIND: dict[str, dict[str, JSON]] = {"find": {"type": "object", "properties": {"what": {"type": "string"}}}}


def test_a_reply_is_read_into_written_calls_text_and_stages() -> None:
    reading = rescued('Now.\n[TOOL_CALLS]find[ARGS]{"what": "é",}', FIND, dialect="mistral")
    assert reading.calls == (WrittenCall("", "find", json.dumps({"what": "é"}, ensure_ascii=False)),)
    assert (reading.text, reading.stages, reading.refused) == ("Now.", ("mistral", "trailing_commas"), None)


def test_a_refusal_is_the_first_reason_and_an_answer_stays_an_answer() -> None:
    refused = rescued('<tool_call>{"name": "find", "arguments": {"what": "ke', FIND)
    assert (refused.refused, refused.stages) == ("the reply ends inside a string", ("cut",))
    assert rescued("Done.", FIND).text == "Done."


def test_a_call_beside_text_is_refused_with_its_tool() -> None:
    reading = rescued('For example: {"name": "find", "arguments": {}}', FIND)
    assert (reading.calls, reading.stages, reading.shown) == ((), ("not_alone",), "find")
    assert reading.refused == "a call to 'find' is next to other text"
    data = rescued('For example: {"name": "Ada", "arguments": {}}', FIND)
    assert (data.calls, data.refused, data.shown) == ((), None, None)


def _turn(number: int, tool: str = "find") -> TurnFacts:
    call = (ToolCall("1", tool, {}), ToolOutcome(ToolStatus.RETURNED, "nothing"))
    return TurnFacts(turn=number, at=float(number), text="", calls=[call])


def test_a_watcher_answers_each_loop_differently_and_tells_who_asked_for_it() -> None:
    told: list[Loop] = []
    watch = loop_watcher(LoopSettings(repeats=2, periods=1), escalate=told.append)
    advice = [watch(_turn(number)) for number in range(8)]
    assert [None if one is None else (one.kind, one.tools) for one in advice] == [
        None,
        ("nudge", ()),
        None,
        ("fewer_tools", ("find",)),
        None,
        ("nudge", ()),
        None,
        ("stop", ()),
    ]
    assert [loop.response for loop in told] == ["escalate"]


def test_a_gate_keeps_a_breaker_per_tool() -> None:
    gate = BreakerGate(BreakerSettings(failures=1, cooldown=10.0))
    call = ToolCall("1", "web", {})
    assert gate.admit(call, at=0.0) is None
    gate.ended(call, ToolOutcome(ToolStatus.TIMED_OUT, "no answer"), at=5.0)
    assert gate.admit(call, at=6.0) == "'web' failed 1 times in a row and will not be called for another 9 s"
    assert gate.admit(ToolCall("2", "disk", {}), at=6.0) is None
    assert gate.admit(call, at=15.0) is None


def test_a_gate_tells_calls_of_one_id_apart() -> None:
    gate = BreakerGate(BreakerSettings(failures=1, cooldown=10.0, lease=5.0))
    first = ToolCall("1", "web", {})
    gate.admit(first, at=0.0)
    gate.ended(first, ToolOutcome(ToolStatus.RAISED, "down"), at=0.0)
    lost, probe, late = ToolCall("1", "web", {}), ToolCall("1", "web", {}), ToolCall("1", "disk", {})
    assert [gate.admit(lost, at=10.0), gate.admit(late, at=11.0), gate.admit(probe, at=15.0)] == [None] * 3
    gate.ended(probe, ToolOutcome(ToolStatus.RETURNED, "up"), at=16.0)
    gate.ended(lost, ToolOutcome(ToolStatus.TIMED_OUT, "down"), at=17.0)
    assert gate.admit(first, at=18.0) is None
    gate.ended(late, ToolOutcome(ToolStatus.RAISED, "down"), at=18.0)
    assert gate.admit(late, at=19.0) is not None


def test_a_gate_knows_its_permits_after_a_restart() -> None:
    before, after = BreakerGate(BreakerSettings(failures=1)), BreakerGate(BreakerSettings(failures=1))
    before.admit(ToolCall("1", "web", {}), at=0.0)
    after.restore(json.loads(json.dumps(before.saved())))
    after.ended(ToolCall("1", "web", {}), ToolOutcome(ToolStatus.RAISED, "down"), at=1.0)
    assert after.admit(ToolCall("2", "web", {}), at=2.0) is not None


def test_an_agents_model_says_the_dialect_of_its_reader() -> None:
    text = 'Now.\n[TOOL_CALLS]find[ARGS]{"what": "é"}'
    assert reader_of("ministral-8b")(text, FIND).calls != ()
    assert reader_of("gpt-4o", "mistral")(text, FIND).calls != ()
    assert reader_of("gpt-4o")(text, FIND).calls == ()


_WORDS = 'find functions . tool_calls Action ```json ``` | ▁ } ] ) > "what" = , 1 call end [TOOL_CALLS] { < :'
_PIECES = st.sampled_from([*_WORDS.split(), "Action Input", " ", "\n"])


@given(st.lists(_PIECES, max_size=12).map("".join), st.sampled_from([None, *DIALECTS]))
def test_a_text_that_is_taken_as_it_is_holds_nothing_that_rescue_would_see(
    text: str, dialect: str | None
) -> None:
    found = rescue(text, FIND, dialect=dialect, coerce=True)
    seen = bool(found.calls or found.refused)
    reading = rescued(text, FIND, dialect=dialect)
    assert seen == bool(reading.calls or reading.refused)
