"""AGENTS.md and CLAUDE.md: which are found, in which order, and what they cannot do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.agent.memory import discover, instructions_block, project_of, reader_of
from statek_sim.errors import BadInput

FILES = {
    "AGENTS.md": b"root",
    "CLAUDE.md": b"not read: AGENTS.md is there",
    "src/CLAUDE.md": b"src",
    "src/api/AGENTS.md": b"not read: overridden",
    "src/api/AGENTS.override.md": b"api",
    "src/web/AGENTS.md": b"not on the way",
    "docs/AGENTS.md": b"  \n",
    "docs/CLAUDE.md": b"docs",
}


def test_from_the_root_down_one_file_per_folder_the_nearest_last() -> None:
    found = discover(FILES.get, "src/api", own="mine")
    assert [(one.path, one.text, one.trusted) for one in found] == [
        ("your own instructions", "mine", True),
        ("AGENTS.md", "root", False),
        ("src/CLAUDE.md", "src", False),
        ("src/api/AGENTS.override.md", "api", False),
    ]


def test_an_empty_file_is_passed_over_for_the_next_name() -> None:
    assert [one.text for one in discover(FILES.get, "docs")] == ["root", "docs"]


def test_all_together_have_their_bound_and_what_is_cut_is_said() -> None:
    found = discover({"AGENTS.md": "aé".encode() * 2, "b/AGENTS.md": b"bbbb"}.get, "b", most=7)
    assert [(one.text, one.cut) for one in found] == [("aéaé", 0), ("b", 3)]
    assert "[cut here: 3 bytes of b/AGENTS.md left out]" in instructions_block(found)


def test_a_file_that_there_is_no_room_for_at_all_is_said_too() -> None:
    found = discover({"AGENTS.md": b"x" * 9, "b/AGENTS.md": b"nearest"}.get, "b", most=9)
    assert [(one.text, one.cut) for one in found] == [("x" * 9, 0), ("", 7)]
    assert "[cut here: 7 bytes of b/AGENTS.md left out]" in instructions_block(found)


def test_the_bound_is_that_of_codex() -> None:
    found = discover({"AGENTS.md": b"x" * 20_000, "b/AGENTS.md": b"y" * 20_000}.get, "b")
    assert [(len(one.text), one.cut) for one in found] == [(20_000, 0), (12_768, 7_232)]


def test_a_character_is_not_cut_in_two() -> None:
    assert discover({"AGENTS.md": "éé".encode()}.get, most=3)[0].text == "é"


@pytest.mark.parametrize("folder", ["..", "a/../..", "/etc"])
def test_a_folder_outside_the_project_is_refused(folder: str) -> None:
    with pytest.raises(BadInput, match="is outside the project; expected a folder below its root"):
        discover(FILES.get, folder)


@given(st.text(min_size=1), st.text())
def test_no_project_file_ends_its_own_mark(text: str, after: str) -> None:
    once = instructions_block(discover({"AGENTS.md": text.encode("utf-8", "replace")}.get))
    forged = (once + after).encode("utf-8", "replace")
    block = instructions_block(discover({"AGENTS.md": forged}.get))
    if block:
        mark = re.match(r"<project-file (\w+) ", block)
        assert mark is not None
        assert block.count(f"</project-file {mark[1]}>") == 1
        assert block.endswith(f"</project-file {mark[1]}>")


def test_links_out_of_the_project_are_not_followed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    (tmp_path / "secret").write_text("secret")
    (project / "AGENTS.md").symlink_to(tmp_path / "secret")
    (project / "src" / "AGENTS.md").write_text("mine")
    root, folder = project_of(project / "src")
    assert (root, folder) == (project.resolve(), "src")
    assert [one.text for one in discover(reader_of(root), folder)] == ["mine"]


def test_a_link_that_leads_to_itself_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").symlink_to("AGENTS.md")
    (tmp_path / "CLAUDE.md").write_text("Be brief.")
    assert [one.path for one in discover(reader_of(tmp_path))] == ["CLAUDE.md"]
