from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from statek_sim.backends.installed.peer import module_paths


def test_folders_of_the_search_path_come_in_their_order_and_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["src", str(tmp_path / "lib"), "", "src"])
    assert module_paths() == (str(tmp_path / "src"), str(tmp_path / "lib"), str(tmp_path))


def test_the_current_folder_comes_last_where_the_search_path_does_not_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["/somewhere"])
    assert module_paths() == ("/somewhere", str(tmp_path))


def test_the_standard_library_and_installed_packages_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend("/somewhere")
    assert {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")} <= set(sys.path)
    found = module_paths()
    assert found[0] == "/somewhere"
    assert not [folder for folder in found if "site-packages" in folder or "lib-dynload" in folder]
    assert not [folder for folder in found if folder.endswith(".zip")]
