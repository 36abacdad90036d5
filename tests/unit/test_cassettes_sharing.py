"""Runs that write one cassette at the same time add to one another, and none loses its recordings without a word."""

from __future__ import annotations

import os
from pathlib import Path
from string import ascii_letters

import pytest

from statek_sim.cassettes.document import read
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.sharing import Asked, Run, existed_before, merged
from statek_sim.errors import BadInput

MATCHING = Matching()


@pytest.fixture
def cassette(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path / "it.yaml"


def exchange(question: str) -> Exchange:
    return Exchange(
        request=Request(method="POST", uri=f"https://llm.test/{question}"), response=Response(status=200)
    )


def record(
    path: Path, run: str, *questions: str, mode: str = "rewrite", sharers: tuple[int, ...] = ()
) -> None:
    """Record questions in a test of a run; the number at the end of the first is the test's place."""
    asked = [Asked(MATCHING.fingerprint(one.request), 0, one) for one in map(exchange, questions)]
    order = int(questions[0].lstrip(ascii_letters))
    merged(
        path,
        asked,
        MATCHING,
        rewrites=mode == "rewrite",
        replaces=mode == "all",
        run=Run(run, order, frozenset(sharers)),
    )


def held(path: Path) -> list[str]:
    return [one.request.uri.rpartition("/")[2] for one in read(path)]


def test_a_run_whose_recordings_another_has_rewritten_is_told(cassette: Path) -> None:
    record(cassette, "A", "a1")
    record(cassette, "B", "b1")
    with pytest.raises(
        BadInput, match=r"another run has rewritten it meanwhile, and 1 of this run's recordings"
    ):
        record(cassette, "A", "a2")
    assert held(cassette) == ["b1"]
    record(cassette, "B", "b2")
    assert held(cassette) == ["b1", "b2"]


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_what_another_run_adds_meanwhile_stays(cassette: Path, mode: str) -> None:
    record(cassette, "A", "a1")
    record(cassette, "B", "b1", mode=mode)
    record(cassette, "A", "a2")
    assert held(cassette) == ["a1", "b1", "a2"]


def test_a_later_run_that_rewrites_starts_from_nothing(cassette: Path) -> None:
    record(cassette, "A", "a1")
    record(cassette, "A", "a2")
    record(cassette, "B", "b1")
    assert held(cassette) == ["b1"]


def test_a_look_of_another_run_changes_nothing_for_this_one(cassette: Path) -> None:
    record(cassette, "old", "o1")
    assert existed_before(cassette, Run("A", 0))
    record(cassette, "A", "a1")
    assert existed_before(cassette, Run("B", 0))
    record(cassette, "A", "a2")
    assert held(cassette) == ["a1", "a2"]


@pytest.mark.parametrize("others", ["rewrite", "once", "new_episodes", "all"])
def test_what_was_there_goes_when_all_who_share_it_have_rewritten_their_part(
    cassette: Path, others: str
) -> None:
    record(cassette, "old", "o1", "a2")
    record(cassette, "A", "a3", sharers=(1, 2, 3))
    record(cassette, "A", "a2", sharers=(1, 2, 3))
    assert held(cassette) == ["o1", "a2", "a3"]
    record(cassette, "A", "a1", sharers=(1, 2, 3), mode=others)
    # One that does not rewrite plays what is there.
    assert held(cassette) == ["a1", "a2", "a3"] if others == "rewrite" else ["o1", "a1", "a2", "a3"]


def test_a_cassette_that_was_not_there_is_not_there_for_the_whole_run(cassette: Path) -> None:
    assert not existed_before(cassette, Run("A", 0))
    record(cassette, "A", "a1", mode="once")
    assert existed_before(cassette, Run("B", 0))
    assert not existed_before(cassette, Run("A", 0))


def test_notes_of_many_runs_do_not_pile_up(cassette: Path) -> None:
    for number in range(40):
        existed_before(cassette, Run(f"run {number}", 0))
    assert len([*(cassette.parent / "temporary").rglob("*.notes")]) == 16


def test_a_folder_of_locks_is_ones_own(cassette: Path, tmp_path: Path) -> None:
    folder = tmp_path / "temporary" / f"statek-cassettes-{os.getuid()}"
    folder.mkdir(parents=True, mode=0o777)
    folder.chmod(0o777)
    record(cassette, "A", "a1")
    assert folder.stat().st_mode & 0o777 == 0o700
    others = tmp_path / "others"
    folder.rename(others)
    folder.symlink_to(others)
    with pytest.raises(
        BadInput, match=rf"{folder} is where its lock belongs, and it is no folder of yours; remove it"
    ):
        record(cassette, "A", "a2")
    assert held(cassette) == ["a1"]
