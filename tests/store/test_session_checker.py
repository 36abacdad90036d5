"""The public checker passes our stores and finds what is wrong with others."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from statek_sim.agent.checkpoints.contract import StoreFinding, check_checkpoint_store, store_findings
from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.errors import ContractViolation
from statek_sim.store.database import Sqlite
from statek_sim.store.sql import SqlStore
from tests.store.adapters import OfOurs, PlainFiles, files_sealed, sqlite_sealed


def fresh(make: object) -> object:
    """Each probe begins with an empty folder, so its anchor is new too."""
    made: dict[Path, object] = {}

    def opened(folder: Path) -> object:
        if folder not in made:
            made[folder] = make()  # type: ignore[operator]
        return made[folder](folder)  # type: ignore[operator]

    return opened


@pytest.mark.parametrize("make", [files_sealed, sqlite_sealed], ids=["files", "sqlite"])
def test_our_stores_pass_with_a_key_and_an_anchor(make: object) -> None:
    check_checkpoint_store(fresh(make))  # type: ignore[arg-type]


def test_without_an_anchor_an_older_copy_passes_for_the_newest() -> None:
    def make(folder: Path) -> OfOurs:
        return OfOurs(SessionStore(SqlStore(Sqlite(folder / "x.db"), clock=lambda: 0.0)))

    assert set(store_findings(make)) == {StoreFinding.ROLLED_BACK}
    with pytest.raises(
        ContractViolation, match=r"^an older copy of the store is loaded as current: save 1, "
    ):
        check_checkpoint_store(make)
    check_checkpoint_store(make, allow=frozenset({StoreFinding.ROLLED_BACK}))


def test_files_without_a_seal_have_most_of_what_can_be_wrong() -> None:
    found = store_findings(PlainFiles)
    assert set(found) == {
        StoreFinding.MIXED,
        StoreFinding.OVERWRITTEN,
        StoreFinding.EDITED,
        StoreFinding.ROLLED_BACK,
    }


class Forgetful:
    """Keeps states in this process."""

    def __init__(self) -> None:
        self._states: dict[str, object] = {}

    def save(self, session: str, state: object) -> None:
        self._states[session] = state

    def load(self, session: str) -> object:
        return self._states.get(session)

    def close(self) -> None:
        pass


def test_a_store_that_forgets_is_found_with_the_smallest_example() -> None:
    with pytest.raises(
        ContractViolation,
        match=r"^the next process does not find the saved state: save\('s', \{'n': 1\}\), then in another process "
        r"load\('s'\) returned None$",
    ):
        check_checkpoint_store(lambda folder: Forgetful())  # type: ignore[arg-type,return-value]


def test_the_checker_leaves_nothing_behind() -> None:
    before = set(Path(tempfile.gettempdir()).glob("statek-store-*"))
    store_findings(PlainFiles)
    assert set(Path(tempfile.gettempdir()).glob("statek-store-*")) <= before
