"""Tests of one run that record one cassette add to one another; a second run is told, and takes nothing away."""

from __future__ import annotations

from pathlib import Path
from string import ascii_letters

import pytest

from statek_sim.cassettes.document import read
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.store import CassetteState, Recorded, Run, merged
from statek_sim.errors import BadInput

MATCHING = Matching()
States = dict[str, CassetteState]


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    return tmp_path / "it.yaml"


def exchange(question: str) -> Exchange:
    return Exchange(
        request=Request(method="POST", uri=f"https://llm.test/{question}"), response=Response(status=200)
    )


def record(
    path: Path, run: States, *questions: str, mode: str = "rewrite", sharers: tuple[int, ...] = ()
) -> None:
    """Record questions in a test of a run; the number at the end of the first is the test's place."""
    recorded = [Recorded(MATCHING.fingerprint(one.request), 0, one) for one in map(exchange, questions)]
    order = int(questions[0].lstrip(ascii_letters))
    merged(
        path,
        recorded,
        MATCHING,
        rewrites=mode == "rewrite",
        replaces=mode == "all",
        run=Run(order, frozenset(sharers), run),
    )


def held(path: Path) -> list[str]:
    return [one.request.uri.rpartition("/")[2] for one in read(path)]


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all", "rewrite"])
def test_a_run_whose_cassette_another_has_changed_is_told(cassette: Path, mode: str) -> None:
    run: States = {}
    record(cassette, run, "a1")
    record(cassette, {}, "b1", mode=mode)
    after = held(cassette)
    with pytest.raises(
        BadInput,
        match=r"^\S+/it\.yaml: changed by another process after it was opened",
    ):
        record(cassette, run, "a2")
    assert held(cassette) == after


def test_a_later_run_that_rewrites_starts_from_nothing(cassette: Path) -> None:
    run: States = {}
    record(cassette, run, "a1")
    record(cassette, run, "a2")
    assert held(cassette) == ["a1", "a2"]
    record(cassette, {}, "b1")
    assert held(cassette) == ["b1"]


@pytest.mark.parametrize("others", ["rewrite", "once", "new_episodes", "all"])
def test_what_was_there_goes_when_all_who_share_it_have_rewritten_their_part(
    cassette: Path, others: str
) -> None:
    record(cassette, {}, "o1", "a2")
    run: States = {}
    record(cassette, run, "a3", sharers=(1, 2, 3))
    record(cassette, run, "a2", sharers=(1, 2, 3))
    assert held(cassette) == ["o1", "a3", "a2"]
    record(cassette, run, "a1", sharers=(1, 2, 3), mode=others)
    # One that does not rewrite plays what is there.
    assert held(cassette) == ["a3", "a2", "a1"] if others == "rewrite" else ["o1", "a3", "a2", "a1"]


def test_a_cassette_that_was_not_there_is_not_there_for_the_whole_run(cassette: Path) -> None:
    run = Run()
    assert not run.state(cassette).existed
    record(cassette, run.states, "a1", mode="once")
    assert Run().state(cassette).existed
    assert not run.state(cassette).existed
