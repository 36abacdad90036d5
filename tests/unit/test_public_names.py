"""The package's front door."""

from __future__ import annotations

import subprocess
import sys

import pytest

import statek_sim
from tests.tables import table_test


@table_test("name", statek_sim.__all__)
def test_every_public_name_can_be_imported_and_is_called_so(name: str) -> None:
    value = getattr(statek_sim, name)
    # Python's errors name stored classes with the module that they have in STATEK.
    assert getattr(value, "__name__", name).rpartition(".")[2] == name
    assert value is getattr(statek_sim, name)


def test_all_public_names_are_listed_in_order() -> None:
    assert statek_sim.__all__ == sorted(set(statek_sim.__all__))
    assert set(statek_sim.__all__) <= set(dir(statek_sim))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'statek_sim' has no attribute 'Jobs'$"):
        statek_sim.Jobs  # noqa: B018


def test_a_star_import_brings_exactly_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from statek_sim import *", names)
    assert set(names) - {"__builtins__"} == set(statek_sim.__all__)


def test_importing_the_package_loads_no_engine() -> None:
    script = "import sys, statek_sim; print(sorted(m for m in sys.modules if m.startswith('statek_sim')))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['statek_sim', 'statek_sim.exports']"
