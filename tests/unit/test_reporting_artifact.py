"""A report's file is there as a whole or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from statek_sim.errors import BadInput
from statek_sim.reporting.artifact import check_writable, write_artifact


def test_a_file_replaces_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.md"
    write_artifact(path, "old")
    write_artifact(path, "zażółć\n")
    assert path.read_bytes() == "zażółć\n".encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["report.md"]


def test_a_text_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    write_artifact(path, "old")
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        write_artifact(path, "\ud800")
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("report.md", "old")]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_artifact(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_artifact(pipe, "text")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_folder_in_the_way_is_bad_input(tmp_path: Path) -> None:
    message = re.escape(f"{tmp_path}: cannot write the report: Is a directory")
    with pytest.raises(BadInput, match=f"^{message}$"):
        write_artifact(tmp_path, "text")


def test_a_file_in_place_of_a_folder_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"report\.md: cannot write the report: "):
        write_artifact(tmp_path / "file" / "report.md", "text")


@pytest.mark.parametrize("name", ["folder", "file/report.md", "file/deep/report.md"])
def test_what_cannot_be_written_is_known_beforehand(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=rf"{name}: cannot write the report: ") as foreseen:
        check_writable(tmp_path / name)
    with pytest.raises(BadInput, match=rf"{name}: cannot write the report: ") as happened:
        write_artifact(tmp_path / name, "text")
    if name != "file/report.md":
        # Which of two mistakes the system tells first is its own affair.
        assert str(foreseen.value) == str(happened.value)


@pytest.mark.parametrize("name", ["new", "new/deep/report.md", "old", "link"])
def test_a_look_beforehand_leaves_nothing_behind(tmp_path: Path, name: str) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    check_writable(tmp_path / name)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "old"]
    assert (tmp_path / "old").read_text() == "old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_one_may_not_write_to_is_known_beforehand(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match=r"report\.md: cannot write the report: Permission denied$"):
        check_writable(tmp_path / "report.md")
