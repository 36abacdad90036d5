"""A public checker that every store of checkpoints passes, ours or a user's, through a small adapter.

    def test_my_store_keeps_what_it_was_given() -> None:
        check_checkpoint_store(lambda folder: MyAdapter(folder / "my.db"))

The adapter is opened on a folder, again and again, as processes would: what is stored is what is in it. The checker
also edits the folder, cuts files and puts older copies back, which a store has to notice.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from statek_sim.adapters import Trial, checked, findings


class StoreFinding(StrEnum):
    """What can be wrong with a store, the gravest first."""

    LOST = "what was saved is not there for the next process"
    CHANGED = "a value comes back as another one"
    MIXED = "sessions see each other"
    NOT_NEWEST = "an older checkpoint is given for the newest"
    OVERWRITTEN = "a worker whose state is out of date overwrites what another one saved"
    TORN = "a file that was cut is taken for no session at all"
    EDITED = "an edited state is served as genuine"
    ROLLED_BACK = "an older copy of the whole store is served as current"


class StoreAdapter(Protocol):
    """One store as one process has it open."""

    def save(self, session: str, state: Mapping[str, Any]) -> None:
        """Make a state durable as the newest of a session; may raise when it must not be."""

    def load(self, session: str) -> Mapping[str, Any] | None:
        """Return the newest state, None for a session that is not there; may raise for damage."""

    def close(self) -> None:
        """Let go of files."""


MakeStore = Callable[[Path], StoreAdapter]
"""Opens the store in a folder; the same folder is the same store."""

VALUES: Final[tuple[Any, ...]] = (
    "",
    "a",
    0,
    1,
    1.0,
    True,
    None,
    [],
    {},
    "\0",
    "§",
    2**70,
    1e300,
    -0.0,
    {"b": 1, "a": 2},
)
"""Values that come back as they are, types and order of keys too."""

_GENUINE, _FORGED = "genuine-state", "altered-state"


def check_checkpoint_store(make_store: MakeStore, *, allow: frozenset[StoreFinding] = frozenset()) -> int:
    """Play every probe on a fresh store; return how many were played.

    Raises `ContractViolation` with the first that shows a `StoreFinding`, which is the smallest of its kind. `allow`
    are findings that a store does not promise against.
    """
    return checked(
        (None if finding in allow else finding, f"{finding}: {wrong}")
        for finding, wrong in _every(make_store)
    )


def store_findings(make_store: MakeStore) -> dict[StoreFinding, str]:
    """Return everything that is wrong with a store, each with the smallest example."""
    return findings(_every(make_store))


_Probe = Callable[["_Place"], str | None]


def _every(make_store: MakeStore) -> Iterator[Trial[StoreFinding]]:
    for finding, probe in _probes():
        with tempfile.TemporaryDirectory(prefix="statek-store-") as folder:
            place = _Place(make_store, Path(folder) / "store")
            try:
                wrong = probe(place)
                yield (None, "") if wrong is None else (finding, wrong)
            finally:
                place.close()


def _probes() -> Iterator[tuple[StoreFinding, _Probe]]:
    yield StoreFinding.LOST, _lost
    for value in VALUES:
        yield StoreFinding.CHANGED, partial(_changed, value)
    yield StoreFinding.MIXED, _mixed
    for count in (2, 11):
        yield StoreFinding.NOT_NEWEST, partial(_not_newest, count)
    yield StoreFinding.OVERWRITTEN, _overwritten
    yield StoreFinding.TORN, _torn
    yield StoreFinding.EDITED, _edited
    yield StoreFinding.ROLLED_BACK, _rolled_back


class _Place:
    """A folder, and the processes that have it open."""

    def __init__(self, make_store: MakeStore, folder: Path) -> None:
        self._make = make_store
        self.folder = folder
        folder.mkdir()
        self._open: list[StoreAdapter] = []

    def process(self) -> StoreAdapter:
        """Return the store as another process opens it."""
        store = self._make(self.folder)
        self._open.append(store)
        return store

    def close(self) -> None:
        """End all processes."""
        while self._open:
            self._open.pop().close()

    def saved(self, *states: Mapping[str, Any]) -> None:
        """Let one process save states of the session `s`, and end."""
        store = self.process()
        for state in states:
            store.save("s", state)
        self.close()

    def loaded(self) -> tuple[Mapping[str, Any] | None, Exception | None]:
        """Let another process load `s`; return what it got, or what it raised."""
        try:
            return self.process().load("s"), None
        except Exception as error:  # noqa: BLE001  # a foreign store's
            return None, error
        finally:
            self.close()


def _lost(place: _Place) -> str | None:
    if place.loaded() != (None, None):
        return f"load('s') of an empty store gave {place.loaded()!r}, expected None"
    place.saved({"n": 1})
    got, error = place.loaded()
    return (
        None
        if got == {"n": 1}
        else f"save('s', {{'n': 1}}), then in another process load('s') gave {error or got!r}"
    )


def _changed(value: Any, place: _Place) -> str | None:
    try:
        place.saved({"v": value})
    except Exception as refused:  # noqa: BLE001  # a foreign store's
        return f"save('s', {{'v': {value!r}}}) raised {type(refused).__name__}: {refused}"
    got, error = place.loaded()
    back = None if got is None else got.get("v")
    same = type(back) is type(value) and repr(back) == repr(value)
    return None if same else f"save('s', {{'v': {value!r}}}), then load('s') gave {error or got!r}"


def _mixed(place: _Place) -> str | None:
    store = place.process()
    for name in ("a", "b", "A", "a/b", "a.b"):
        store.save(name, {"of": name})
    for name in ("a", "b", "A", "a/b", "a.b"):
        got = store.load(name)
        if got != {"of": name}:
            return f"after saves of 'a', 'b', 'A', 'a/b' and 'a.b', load({name!r}) gave {got!r}"
    return None


def _not_newest(count: int, place: _Place) -> str | None:
    place.saved(*({"n": number} for number in range(1, count + 1)))
    got, error = place.loaded()
    return None if got == {"n": count} else f"after {count} saves load('s') gave {error or got!r}"


def _overwritten(place: _Place) -> str | None:
    late, other = place.process(), place.process()
    late.save("s", {"n": 1})
    try:
        other.load("s")
        other.save("s", {"n": 2})
        late.save("s", {"n": 1, "late": True})
    except Exception:  # noqa: BLE001  # one of the two is refused, whichever it is
        return None
    return (
        "worker A saved 1, worker B loaded it and saved 2, then A saved from its 1 and nobody was refused: "
        f"load('s') gives {other.load('s')!r}"
    )


def _files(place: _Place) -> list[Path]:
    return sorted(
        (path for path in place.folder.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_size
    )


def _torn(place: _Place) -> str | None:
    place.saved({"v": _GENUINE * 100})
    for path in _files(place):
        content = path.read_bytes()
        if _GENUINE.encode() not in content:
            continue
        path.write_bytes(content[: len(content) // 2])
        got, error = place.loaded()
        if error is None and got is None:
            return f"{path.name} was cut to half, and load('s') gave None: the work would begin anew"
        path.write_bytes(content)
    return None


def _edited(place: _Place) -> str | None:
    place.saved({"v": _GENUINE})
    edits = 0
    for path in _files(place):
        content = path.read_bytes()
        if _GENUINE.encode() in content:
            edits += 1
            path.write_bytes(content.replace(_GENUINE.encode(), _FORGED.encode()))
    got, _ = place.loaded()
    if edits and got == {"v": _FORGED}:
        return f"{_GENUINE!r} was overwritten with {_FORGED!r} on disk, and load('s') gave {got!r}"
    return None


def _rolled_back(place: _Place) -> str | None:
    place.saved({"n": 1})
    copy = place.folder.with_name("copy")
    shutil.copytree(place.folder, copy)
    place.saved({"n": 2})
    shutil.rmtree(place.folder)
    shutil.copytree(copy, place.folder)
    got, error = place.loaded()
    if error is None and got == {"n": 1}:
        return "save 1, copy of the folder, save 2, the copy put back: load('s') gave 1 as the newest"
    return None
