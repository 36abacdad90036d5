"""Checks checkpoint stores, built-in or your own, through a small adapter.

def test_my_store_keeps_what_it_was_given() -> None:
        check_checkpoint_store(lambda folder: MyAdapter(folder / "my.db"))

The adapter is opened several times on one folder, as if by several processes that share nothing else. The checker also
edits the folder, truncates files and restores older copies; a store must detect all of these.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol

from statek_sim.errors import ContractViolation


class StoreFinding(StrEnum):
    """The faults that a store can have, from most to least severe."""

    LOST = "the next process does not find the saved state"
    CHANGED = "a loaded value differs from the saved one"
    MIXED = "sessions are not isolated from each other"
    OVERWRITTEN = "a worker with outdated state overwrites what another worker saved"
    TORN = "a truncated file is treated as a missing session"
    EDITED = "an edited state is loaded as genuine"
    ROLLED_BACK = "an older copy of the store is loaded as current"


class StoreAdapter(Protocol):
    """The checker's interface to a store; each adapter represents one process that has the store open."""

    def save(self, session: str, state: Mapping[str, Any]) -> None:
        """Save a state as a session's newest; may raise if saving is not allowed."""

    def load(self, session: str) -> Mapping[str, Any] | None:
        """Return the newest state, or None for an unknown session; may raise if the store is damaged."""

    def close(self) -> None:
        """Release any files."""


MakeStore = Callable[[Path], StoreAdapter]
"""Opens the store in a folder; each call with the same folder opens the same store."""

VALUES: Final[tuple[Any, ...]] = ("", "a\0§", 0, 1.0, True, None, [], 2**70, 1e300, -0.0, {"b": 1, "a": 2})
"""Values that must be loaded unchanged, including types and key order."""

_SESSIONS: Final = ("a", "b", "A", "a/b", "a.b")
_GENUINE, _FORGED = b"genuine-state", b"altered-state"


def check_checkpoint_store(make_store: MakeStore, *, allow: frozenset[StoreFinding] = frozenset()) -> None:
    """Check a store; raise `ContractViolation` with the most severe `StoreFinding`.

    `allow` lists findings to ignore, because the store does not promise to prevent them.
    """
    for finding, wrong in store_findings(make_store).items():
        if finding not in allow:
            raise ContractViolation(f"{finding}: {wrong}")


def store_findings(make_store: MakeStore) -> dict[StoreFinding, str]:
    """Return all faults found in a store, each with an example."""
    found: dict[StoreFinding, str] = {}
    for finding, probe in _PROBES.items():
        with tempfile.TemporaryDirectory(prefix="statek-store-") as folder:
            place = _Place(make_store, Path(folder) / "store")
            try:
                wrong = probe(place)
            finally:
                place.close()
        if wrong is not None:
            found[finding] = wrong
    return found


class _Place:
    """A store's folder, and the store's open adapters."""

    def __init__(self, make_store: MakeStore, folder: Path) -> None:
        self._make, self.folder = make_store, folder
        folder.mkdir()
        self._open: list[StoreAdapter] = []

    def process(self) -> StoreAdapter:
        """Return a new adapter, as another process would open it."""
        self._open.append(self._make(self.folder))
        return self._open[-1]

    def close(self) -> None:
        """Close all open adapters."""
        while self._open:
            self._open.pop().close()

    def saved(self, *states: Mapping[str, Any]) -> None:
        """Open an adapter, save states in the session `s`, and close the adapter."""
        store = self.process()
        for state in states:
            store.save("s", state)
        self.close()

    def loaded(self) -> Mapping[str, Any] | Exception | None:
        """Load the session `s` with a new adapter; return its state, or the exception."""
        try:
            return self.process().load("s")
        except Exception as error:  # noqa: BLE001  # a foreign store's
            return error
        finally:
            self.close()


def _lost(place: _Place) -> str | None:
    if (got := place.loaded()) is not None:
        return f"load('s') from an empty store returned {got!r}, expected None"
    for count in (1, 11):
        place.saved(*({"n": number} for number in range(1, count + 1)))
        if (got := place.loaded()) != {"n": count}:
            return f"save('s', {{'n': {count}}}), then in another process load('s') returned {got!r}"
    return None


def _changed(place: _Place) -> str | None:
    for value in VALUES:
        try:
            place.saved({"v": value})
        except Exception as refused:  # noqa: BLE001  # a foreign store's
            return f"save('s', {{'v': {value!r}}}) raised {type(refused).__name__}: {refused}"
        got = place.loaded()
        if repr(got) != repr({"v": value}):
            return f"save('s', {{'v': {value!r}}}), then load('s') returned {got!r}"
    return None


def _mixed(place: _Place) -> str | None:
    store = place.process()
    for name in _SESSIONS:
        store.save(name, {"of": name})
    for name in _SESSIONS:
        got = store.load(name)
        if got != {"of": name}:
            return f"after saves of {', '.join(map(repr, _SESSIONS))}, load({name!r}) returned {got!r}"
    return None


def _overwritten(place: _Place) -> str | None:
    late, other = place.process(), place.process()
    late.save("s", {"n": 1})
    try:
        other.load("s")
        other.save("s", {"n": 2})
        late.save("s", {"n": 1, "late": True})
    except Exception:  # noqa: BLE001  # the store must reject one of the two
        return None
    return (
        "worker A saved 1, worker B loaded it and saved 2, then A saved over 1 and was not rejected: "
        f"load('s') returns {other.load('s')!r}"
    )


def _holding(place: _Place) -> list[Path]:
    """Return the files that contain the original state as readable text."""
    every = sorted(path for path in place.folder.rglob("*") if path.is_file())
    return [path for path in every if _GENUINE in path.read_bytes()]


def _torn(place: _Place) -> str | None:
    place.saved({"v": _GENUINE.decode() * 100})
    for path in _holding(place):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        if place.loaded() is None:
            return f"{path.name} was truncated to half its size, and load('s') returned None: the work would start over"
        path.write_bytes(content)
    return None


def _edited(place: _Place) -> str | None:
    place.saved({"v": _GENUINE.decode()})
    for path in _holding(place):
        path.write_bytes(path.read_bytes().replace(_GENUINE, _FORGED))
    got = place.loaded()
    if got == {"v": _FORGED.decode()}:
        return f"{_GENUINE.decode()!r} was replaced with {_FORGED.decode()!r} on disk, and load('s') returned {got!r}"
    return None


def _rolled_back(place: _Place) -> str | None:
    place.saved({"n": 1})
    copy = place.folder.with_name("copy")
    shutil.copytree(place.folder, copy)
    place.saved({"n": 2})
    shutil.rmtree(place.folder)
    shutil.copytree(copy, place.folder)
    if place.loaded() == {"n": 1}:
        return "save 1, copy of the folder, save 2, copy restored: load('s') returned 1 as the newest"
    return None


_PROBES: Final[Mapping[StoreFinding, Callable[[_Place], str | None]]] = {
    StoreFinding.LOST: _lost,
    StoreFinding.CHANGED: _changed,
    StoreFinding.MIXED: _mixed,
    StoreFinding.OVERWRITTEN: _overwritten,
    StoreFinding.TORN: _torn,
    StoreFinding.EDITED: _edited,
    StoreFinding.ROLLED_BACK: _rolled_back,
}
