from __future__ import annotations

from pathlib import Path

import pytest

from tools import browser
from tools.browser import ensure_browser
from tools.npm import Broken, NotHere


def fake_npm(folder: Path, words: str, code: int) -> None:
    """Put commands named node and npm into a folder; npm says something and ends with a code."""
    for name, text in (("npm", f"echo '{words}' >&2; exit {code}"), ("node", "exit 1")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)


@pytest.fixture
def nothing_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for browsers, and a search path with nothing but a folder for commands, which is returned."""
    monkeypatch.setattr(browser, "ROOT", tmp_path)
    monkeypatch.setattr(browser, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(browser, "READY", tmp_path / "cache" / "ready")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    commands = tmp_path / "bin"
    commands.mkdir()
    monkeypatch.setenv("PATH", f"{commands}:/usr/bin:/bin")
    return commands


def test_a_registry_that_does_not_answer_is_no_fault_of_the_repository(nothing_made: Path) -> None:
    fake_npm(nothing_made, "npm error request to https://registry.example failed, reason: no route", 1)
    with pytest.raises(NotHere, match=r"^npm's registry cannot be reached: npm error request to"):
        ensure_browser()


def test_any_other_error_of_npm_is_one(nothing_made: Path) -> None:
    fake_npm(nothing_made, "npm error code E404", 1)
    with pytest.raises(Broken, match="npm could not install @sparticuz/chromium"):
        ensure_browser()


def test_nothing_half_made_stays(nothing_made: Path) -> None:
    fake_npm(nothing_made, "npm error code E404", 1)
    with pytest.raises(Broken):
        ensure_browser()
    assert list((nothing_made.parent / "cache").iterdir()) == []


def test_other_machines_are_told_to_name_a_browser(
    nothing_made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(NotHere, match="set STATEK_BROWSER to a browser"):
        ensure_browser()
