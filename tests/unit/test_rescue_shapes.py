"""Rescue parsing of hostile replies: twice the text takes at most twice the counted steps, whatever the shape."""

from __future__ import annotations

import pytest

from statek_sim.agent.rescue import rescue
from tests.rescue.hostile import SHAPES, Shape


@pytest.mark.parametrize("name", SHAPES)
def test_twice_a_hostile_shape_takes_at_most_twice_the_steps(name: str) -> None:
    once = rescue(SHAPES[name].text(32_768))
    twice = rescue(SHAPES[name].text(65_536))
    assert 0 < once.steps <= 12 * 32_768
    assert twice.steps <= 2 * once.steps + 400


def test_a_shape_is_as_large_as_asked() -> None:
    assert Shape("ab", "<", ">").text(10) == "<ababababab>"
    assert Shape("k{n},").text(9) == "k0,k1,k2,"


def test_an_object_with_many_keys_and_one_twice_is_refused_at_once() -> None:
    # Counted by hand: looking each key up among all others took minutes for a megabyte.
    (refusal,) = rescue(SHAPES["a key that is twice, at the end"].text(1_000_000)).refused
    assert refusal.why == "the key 'z' is there twice"
