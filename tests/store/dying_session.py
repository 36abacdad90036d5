"""A process that kills itself for real: `python -m tests.store.dying_session STORE FOLDER WORLD OPERATION`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.store.database import Row, Sqlite
from statek_sim.store.disk import RealDisk
from statek_sim.store.files import FileStore
from statek_sim.store.sql import SqlStore
from tools.crashes import World, lived


class DurableWorld(World):
    """A world that outlives its process: a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.done = _Ledger(path)


class _Ledger(list[str]):
    """Lines of a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.read_text().splitlines() if path.exists() else ())
        self._path = path

    def append(self, line: str) -> None:
        super().append(line)
        with self._path.open("a") as file:
            file.write(line + "\n")


class _Countdown:
    """Kills this process, so that nothing of it runs any more, when it is asked for the last time."""

    def __init__(self, left: int) -> None:
        self._left = left

    def __call__(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


class DyingDisk(RealDisk):
    """A disk whose process dies before one of its operations."""

    def __init__(self, root: Path, countdown: _Countdown) -> None:
        super().__init__(root)
        self._countdown = countdown

    def write(self, path: str, content: bytes) -> None:
        self._countdown()
        super().write(path, content)

    def append(self, path: str, content: bytes) -> None:
        self._countdown()
        super().append(path, content)

    def rename(self, path: str, to: str) -> None:
        self._countdown()
        super().rename(path, to)

    def remove(self, path: str) -> None:
        self._countdown()
        super().remove(path)


class DyingSqlite(Sqlite):
    """SQLite whose process dies before one of its statements."""

    countdown = _Countdown(-1)

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        self.countdown()
        return super().execute(statement, values)


def main(kind: str, folder: Path, world: Path, operation: int) -> None:
    """Live until the operation."""
    countdown = _Countdown(operation)

    def store() -> SessionStore:
        if kind == "files":
            return SessionStore(FileStore(DyingDisk(folder, countdown), clock=lambda: 0.0))
        database = DyingSqlite(folder / "sessions.db")
        database.countdown = countdown
        return SessionStore(SqlStore(database, clock=lambda: 0.0))

    lived(store, DurableWorld(world))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
