from __future__ import annotations

from statek_sim.runtime.state.futures import Signal


def test_listeners_are_told_in_the_order_they_came_with_their_own_key() -> None:
    signal, told = Signal(), list[str]()
    for key in ("b", "a", "c"):
        signal.listen(key, told.append)
    signal.fire()
    assert told == ["b", "a", "c"]


def test_a_listener_hears_every_fire_until_it_is_forgotten() -> None:
    signal, told = Signal(), list[str]()
    signal.listen("a", told.append)
    signal.fire()
    signal.fire()
    signal.forget("a")
    signal.fire()
    assert told == ["a", "a"]


def test_forgetting_an_unknown_key_is_no_error() -> None:
    Signal().forget("nobody")


def test_a_key_that_listens_twice_is_told_once() -> None:
    signal, told = Signal(), list[str]()
    signal.listen("a", told.append)
    signal.listen("a", told.append)
    signal.fire()
    assert told == ["a"]


def test_a_listener_may_forget_itself_while_it_is_told() -> None:
    signal, told = Signal(), list[str]()
    signal.listen("a", signal.forget)
    signal.listen("b", told.append)
    signal.fire()
    signal.fire()
    assert told == ["b", "b"]
