"""A lane finds the reply for a request: the first in script order that accepts it, however many there are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from statek_sim.providers.condition import accepts, contains, equals
from statek_sim.providers.contract import example_requests
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, text
from statek_sim.providers.scripted import Lane


def request(message: str) -> ChatRequest:
    return replace(example_requests()[0], messages=({"role": "user", "content": message},))


def taken(lane: Lane, message: str) -> int | None:
    entry = lane.take(request(message))
    return None if entry is None else entry.position


def test_a_reply_for_a_whole_message_waits_for_it_and_lets_others_pass() -> None:
    lane = Lane("", [text("1").on("a"), text("2").on("b"), text("3")])
    assert [taken(lane, message) for message in ("b", "z", "a", "a")] == [2, 3, 1, None]


def test_of_several_that_accept_the_first_in_the_script_is_taken() -> None:
    lane = Lane("", [text("1").on(contains("a")), text("2").on("a"), text("3").on("a").forever()])
    assert [taken(lane, "a") for _ in range(4)] == [1, 2, 3, 3]


def test_what_is_left_is_listed_in_script_order() -> None:
    lane = Lane("worker", [text("1").on("a"), text("2").on("c"), text("3").on("b").forever()])
    lane.take(request("b"))
    assert [reply.position for reply in lane.pending()] == [1, 2, 3]
    assert [reply.position for reply in lane.unused()] == [1, 2]


_MESSAGES = st.sampled_from(["a", "b", "ab", ""])
_REPLIES = st.builds(
    lambda match, repeat: (
        Reply(answer=text("x").answer, repeat=repeat)
        if match is None
        else Reply(answer=text("x").answer, repeat=repeat).on(match)
    ),
    st.none() | st.builds(contains, _MESSAGES) | st.builds(equals, _MESSAGES),
    st.none() | st.integers(1, 3),
)


@given(st.lists(_REPLIES, max_size=8), st.lists(_MESSAGES, max_size=12))
def test_the_index_takes_what_a_walk_through_the_script_takes(
    replies: list[Reply], messages: list[str]
) -> None:
    lane = Lane("", replies)
    left = {number: reply.repeat for number, reply in enumerate(replies, 1)}
    for message in messages:
        asked = request(message)
        expected = None
        for number, reply in enumerate(replies, 1):
            if left[number] != 0 and (reply.condition is None or accepts(reply.condition, asked)):
                expected, budget = number, left[number]
                left[number] = None if budget is None else budget - 1
                break
        assert taken(lane, message) == expected
