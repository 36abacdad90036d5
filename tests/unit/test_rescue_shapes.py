"""Rescue parsing of hostile replies: twice the text takes at most twice the counted steps, whatever the shape."""

from __future__ import annotations

from statek_sim.agent.rescue.formats import OPENINGS
from statek_sim.rescue import Reason, rescue
from tests.rescue.hostile import HEADERS, SHAPES, WHITE, Shape
from tests.soon import soon
from tests.tables import table_test

ALL = SHAPES | WHITE


@table_test("name", ALL)
def test_twice_a_hostile_shape_takes_at_most_twice_the_steps(name: str) -> None:
    once = rescue(ALL[name].text(32_768))
    twice = rescue(ALL[name].text(65_536))
    assert 0 < once.steps <= 12 * 32_768
    assert twice.steps <= 2 * once.steps + 400 + len(ALL[name].piece)


@table_test("name", ALL)
def test_no_hostile_shape_takes_work_that_is_not_counted(name: str) -> None:
    # A pattern that goes through the same white space again and again takes no step: 64 KiB of it took a minute.
    with soon():
        rescue(ALL[name].text(65_536))


def test_every_opening_is_tried_with_white_space() -> None:
    assert set(OPENINGS) <= set(HEADERS)


def test_white_space_behind_a_text_that_is_kept_may_be_cut_anywhere() -> None:
    for spaces in (1, 41, 400):
        (refusal,) = rescue('<invoke name="f"><parameter name="a"><![CDATA[x]]>' + " " * spaces).refused
        assert refusal.reason is Reason.CUT


def test_a_shape_is_as_large_as_asked() -> None:
    assert Shape("ab", "<", ">").text(10) == "<ababababab>"
    assert Shape("k{n},").text(9) == "k0,k1,k2,"


def test_an_object_with_many_keys_and_one_twice_is_refused_at_once() -> None:
    # Counted by hand: looking each key up among all others took minutes for a megabyte.
    (refusal,) = rescue(SHAPES["a key that is twice, at the end"].text(1_000_000)).refused
    assert refusal.why == "the key 'z' appears twice"
