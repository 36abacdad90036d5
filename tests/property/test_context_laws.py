"""Laws of the context manager over random histories: what the checker asks of small ones, asked of large ones."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statek_sim.agent.context.contract import PINNED, history_of
from statek_sim.agent.context.history import texts_of
from statek_sim.agent.context.manager import ContextSettings, compacted
from statek_sim.agent.context.wire_check import wire_faults
from statek_sim.agent.effects import SideModel
from statek_sim.agent.option_names import CompactionStepName
from statek_sim.errors import ContextOverflow
from statek_sim.providers.wire.format import FAKE_URLS, FORMATS
from statek_sim.providers.wire.request import FormatName, WireRequest, text_in
from statek_sim.values import Message
from tests.context.histories import count, tokens
from tests.examples import examples

WIRES: tuple[FormatName, ...] = ("openai", "responses", "anthropic", "gemini")
WORDS = st.lists(st.sampled_from(("text", "call", "batch", "large", "nudge", "user", "pinned")), max_size=24)
STEPS: tuple[CompactionStepName, ...] = ("clear", "summarise", "drop", "cut")
SUMMARIES = st.sampled_from((None, "", "Short.", "word " * 900))

quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(150))


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[Message], ContextSettings, FormatName]:
    """Return a history that its provider takes, settings, and the format."""
    words, wire = draw(WORDS), draw(st.sampled_from(WIRES))
    history = history_of(words)
    while len(history) > 2 and wire_faults(history, wire):
        words = words[:-1]
        history = history_of(words)
    whole = tokens(history)
    chosen = ContextSettings(
        budget=draw(st.integers(1, whole + 50)),
        reserve=0,
        keep=draw(st.integers(0, 5)),
        pinned=(PINNED,),
        steps=draw(st.permutations(STEPS).map(tuple) | st.just(("drop",))),
        summary=draw(st.sampled_from((None, SideModel(model="m")))),
        max_summary=draw(st.integers(1, 300)),
    )
    return history, chosen, wire


@quick
@given(asked(), SUMMARIES)
def test_what_comes_out_fits_is_taken_and_has_what_must_stay(
    given_: tuple[list[Message], ContextSettings, FormatName], summary: str | None
) -> None:
    history, chosen, wire = given_
    before = copy.deepcopy(history)
    try:
        made = compacted(history, chosen, count, summary=lambda wanted: summary, wire=wire)
    except ContextOverflow:
        return
    finally:
        assert history == before
    if made is None:
        assert tokens(history) <= chosen.budget
        return
    assert tokens(made.messages) <= chosen.budget
    assert not wire_faults(made.messages, wire)
    assert list(made.messages[:2]) == history[:2]
    pinned = [one for one in history if any(PINNED in text for text in texts_of(one))]
    assert all(one in made.messages for one in pinned)
    places = [history.index(one) for one in made.messages if one in history]
    assert places == sorted(places)
    if history[-1].get("role") == "user":
        assert made.messages[-1] == history[-1]
    assert compacted(made.messages, chosen, count, summary=lambda wanted: summary, wire=wire) is None
    again = compacted(history, chosen, count, summary=lambda wanted: summary, wire=wire)
    assert again == made


@quick
@given(asked())
def test_what_is_taken_reaches_the_provider_whole(
    given_: tuple[list[Message], ContextSettings, FormatName],
) -> None:
    """Nothing that the wire check passes is left out by the client of its format."""
    history, chosen, wire = given_
    try:
        made = compacted(history, chosen, count, wire=wire)
    except ContextOverflow:
        return
    messages = tuple(history if made is None else made.messages)
    body = FORMATS[wire].request_body(WireRequest(model="m", messages=messages))
    read = FORMATS[wire].read_request(
        {"max_tokens": 1, **body}, f"{FAKE_URLS[wire]}/models/m:generateContent"
    )
    said = "\n".join(text_in(one.get("content")) for one in read.messages)
    for message in messages:
        assert text_in(message.get("content")) in said


def test_the_examples_reach_both_ends() -> None:
    history = history_of(["call"] * 6)
    with pytest.raises(ContextOverflow):
        compacted(history, ContextSettings(budget=20, reserve=0), count)
    assert compacted(history, ContextSettings(budget=tokens(history), reserve=0), count) is None
