"""One built distribution and two environments, for all packaging tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, Environment, output_of


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel that was built from the source distribution, as installers without a wheel would."""
    folder = tmp_path_factory.mktemp("dist")
    output_of(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """Return an environment that holds the wheel and what it asks for."""
    environment = Environment.create(tmp_path_factory.mktemp("empty"))
    environment.install(wheel)
    return environment


@pytest.fixture(scope="session")
def beside_statek(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """Return an environment that holds the real STATEK too."""
    environment = Environment.create(tmp_path_factory.mktemp("beside"))
    environment.add("statek[dbzero]==1.4.2", "pytest-xdist", wheel)
    return environment
