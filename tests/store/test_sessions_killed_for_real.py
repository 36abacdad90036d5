"""SIGKILL, in a process of its own, at moments spread over a run; another process goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.store.database import Sqlite
from statek_sim.store.disk import RealDisk
from statek_sim.store.files import FileStore
from statek_sim.store.sql import SqlStore
from tests.store.dying_session import DurableWorld
from tests.store.simulated_disk import SimulatedDisk
from tools.crashes import World, files, lived

ROOT = Path(__file__).resolve().parents[2]
STORES: dict[str, Callable[[Path], SessionStore]] = {
    "files": lambda folder: SessionStore(FileStore(RealDisk(folder), clock=lambda: 0.0)),
    "sqlite": lambda folder: SessionStore(SqlStore(Sqlite(folder / "sessions.db"), clock=lambda: 0.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("operation", range(3, 120, 19))
@pytest.mark.parametrize("kind", STORES)
def test_what_was_killed_for_real_goes_on_as_if_it_had_not_been(
    kind: str, operation: int, tmp_path: Path
) -> None:
    expected = lived(lambda: files(SimulatedDisk()), World())
    folder, world = tmp_path / "store", tmp_path / "world"
    folder.mkdir()
    command = (
        sys.executable,
        "-m",
        "tests.store.dying_session",
        kind,
        str(folder),
        str(world),
        str(operation),
    )
    died = subprocess.run(command, cwd=ROOT, check=False).returncode
    assert died == -signal.SIGKILL
    store = STORES[kind](folder)
    assert lived(lambda: store, DurableWorld(world)) == expected
    store.close()
