"""Kills resuming processes: `python -m tools.recoveries [KILLS]` prints what survives that many kills in a row.

From every state that a kill can leave, a new process resumes and is itself killed between any two of its file
operations, with every possible power loss, and so on. From each state, one process also continues to the end, which
must equal an uninterrupted run's. States that differ only in data that no process reads are tried once.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from typing import Final

from tests.store.simulated_disk import SimulatedDisk
from tools.crashes import BRIEF, KEEP, SESSION, Errand, Tally, World, files, lived, row

_SEAL: Final = re.compile(rb"sha256:[0-9a-f]+")
_FENCE: Final = re.compile(rb'"fence":\d+')
_PLACES: Final = re.compile(rb'"first":(\d+),"newest":(\d+)')
_NUMBER: Final = re.compile(r"cp-(\d+)")

Files = Mapping[str, bytes]
Key = tuple[object, ...]


@dataclass(frozen=True)
class State:
    """What a kill left: the files and the effects on the world."""

    files: Files
    done: tuple[str, ...]


def key(state: State) -> Key:
    """Return the part of a state that a process may read: run.json and the files it names.

    Seals are numbered as they are found, and checkpoints from the oldest one, up to what pruning sees of their
    numbers. It omits fences and revisions, which are only compared with the newest one, and which of two files a row
    is in.
    """
    content = state.files.get(f"{SESSION}/run.json", b"")
    try:
        record = json.loads(content)["of"]
    except ValueError:
        return (*state.done, content)
    rows = {
        name: (state.files.get(f"{SESSION}/{file}", b""), digest)
        for name, (file, digest) in record["rows"].items()
    }
    found = _PLACES.search(rows["head.json"][0]) if "head.json" in rows else None
    base = 0 if found is None else (int(found[1]) - 1) // KEEP * KEEP
    seals: dict[bytes, int] = {}
    parts: list[object] = [*state.done, record["status"], record["worker"]]
    for name, (content, digest) in sorted(rows.items()):
        text, named = _told(content)
        parts.append(_NUMBER.sub(lambda found: f"cp-{int(found[1]) - base}", name))
        parts += [sha256(content).hexdigest() == digest, _numbered(text, base)]
        parts += [seals.setdefault(seal, len(seals)) for seal in named]
    return tuple(parts)


def _numbered(text: bytes, base: int) -> bytes:
    return _PLACES.sub(lambda found: b"%d %d" % (int(found[1]) - base, int(found[2]) - base), text)


@lru_cache(50_000)
def _told(content: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    return _FENCE.sub(b"", _SEAL.sub(b"@", content)), tuple(_SEAL.findall(content))


class Watched(SimulatedDisk):
    """A disk that records before each operation what a kill at that moment can leave."""

    def __init__(self, state: State, world: World) -> None:
        super().__init__(state.files)
        self._world = world
        self.left: dict[Key, State] = {}
        self.moments = 0

    def _operation(self) -> None:
        self.moments += 1
        for after in self.files_after_crash():
            state = State(after, tuple(self._world.done))
            self.left.setdefault(key(state), state)
        super()._operation()


def kill_again(kills: int, *, errand: Errand = BRIEF, every: int = 1) -> Iterator[Tally]:
    """Yield what survives 1 kill, 2, and so on up to `kills`; `every` tries only every n-th state."""
    begin = State({}, ())
    expected = lived(lambda: files(SimulatedDisk()), World(), errand)
    known, states = {key(begin)}, [begin]
    for number in range(1, kills + 1):
        tally, found = Tally(f"files, kill {number}"), dict[Key, State]()
        for state in states:
            world = World([*state.done])
            disk = Watched(state, world)
            lived(lambda disk=disk: files(disk), world, errand)  # type: ignore[misc]
            tally.points += disk.moments
            found |= {state_key: left for state_key, left in disk.left.items() if state_key not in known}
        known |= found.keys()
        tried = [*found.values()][::every]
        states = [
            state for state in tried if tally.count("a state", expected, partial(_ended, state, errand))
        ]
        yield tally


def _ended(state: State, errand: Errand) -> dict[str, object]:
    disk = SimulatedDisk(state.files)
    return lived(lambda: files(disk), World([*state.done]), errand)


def main() -> int:
    """Print a table; return 1 if something was lost."""
    lost = 0
    for tally in kill_again(int(sys.argv[1]) if len(sys.argv) > 1 else 2):
        print(row(tally), flush=True)
        for loss in tally.lost[:10]:
            print(loss, file=sys.stderr)
        lost += len(tally.lost)
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
