"""Bubblewrap and a Docker daemon of our own; where one cannot be had its tests are skipped, and say why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from statek_sim.agent.containers.bubblewrap import Bubblewrap
from statek_sim.agent.containers.docker import Docker
from statek_sim.errors import ContainerFailed
from tools.containers import daemon, ensure
from tools.npm import NotHere


@pytest.fixture(scope="session")
def bubblewrap() -> Bubblewrap:
    """Return bubblewrap, and see that it can make a sandbox here at all."""
    from statek_sim.agent.containers.program import Program

    try:
        ensure("bwrap")
        found = Bubblewrap()
        found.run(Program(argv=("/bin/true",)))
    except (NotHere, ContainerFailed) as why:
        pytest.skip(f"no bubblewrap to test containers in: {why}")
    return found


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    try:
        pytest.importorskip("docker")
        with daemon() as started:
            found = Docker(started.image, address=started.address, oldest=20)
            yield found
            found.close()
    except (NotHere, ContainerFailed) as why:
        pytest.skip(f"no Docker daemon to test containers in: {why}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that programs may write in, whoever they are; the folders above stay closed to them."""
    place = tmp_path / "workspace"
    place.mkdir()
    place.chmod(0o777)
    return place
