"""What containers are tested with: where it comes from, and what is said where it cannot."""

from __future__ import annotations

import io
import os
import tarfile

import pytest

from tools import containers
from tools.npm import NotHere


def test_a_program_that_is_there_is_not_installed() -> None:
    assert containers.ensure("sh").endswith("/sh")


def test_what_nobody_can_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotHere, match=r"^bwrap is not installed, and only root on Debian can: bubblewrap$"):
        containers.ensure("bwrap")
    with pytest.raises(NotHere, match=r"^a Docker daemon of our own needs root$"), containers.daemon():
        pass


def test_that_nothing_can_be_had_is_a_line_and_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    assert containers.main([]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()] == [
        "NOT TESTED IN BUBBLEWRAP",
        "NOT TESTED IN DOCKER.IO",
    ]


def test_the_image_is_a_small_root_with_python_and_a_shell() -> None:
    with tarfile.open(fileobj=io.BytesIO(containers.image())) as tar:
        names = set(tar.getnames())
        assert tar.getmember("tmp").mode == 0o1777
    assert {"tmp", "proc", "usr/bin/python3", "bin/sh"} <= names
    assert not any("site-packages" in name or "/root/" in f"/{name}" for name in names)
