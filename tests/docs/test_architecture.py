"""The page on how it is built says what stands: layers as import-linter holds them, files that are there."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

import pytest

from tests.docs.page import DOCS

PAGE: Final = (DOCS / "architecture.md").read_text("utf-8")
ROOT: Final = DOCS.parent


def contract(name: str) -> dict[str, Any]:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts: list[dict[str, Any]] = configured["tool"]["importlinter"]["contracts"]
    return next(found for found in contracts if found["id"] == name)


def pictured(name: str) -> list[str]:
    """Return the first column of a picture: what stands on each floor."""
    picture = PAGE.partition(f"<!-- {name} -->\n```text\n")[2].partition("\n```")[0]
    return [re.split(r"\s{2,}", line)[0] for line in picture.splitlines()]


@pytest.mark.parametrize("name", ["layers", "runtime"])
def test_the_picture_is_what_import_linter_holds(name: str) -> None:
    assert pictured(name) == contract(name)["layers"]


def test_every_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`((?:statek_sim|pytest_statek|tests|docs|tools)/[\w./]*)`", PAGE))
    assert len(named) > 60
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_name_beside_a_file_is_in_it() -> None:
    rows = re.findall(r"\| ((?:`\w+`(?:, )?)+) in `([\w./]+)`", PAGE)
    found = [(name, path) for names, path in rows for name in re.findall(r"`(\w+)`", names)]
    assert len(found) >= 3
    assert [pair for pair in found if pair[0] not in (ROOT / pair[1]).read_text("utf-8")] == []


def test_every_question_has_one_answer() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \|$", PAGE.partition("## Which module decides a rule")[2], re.MULTILINE
    )
    questions = [question for question, _ in rows[1:]]
    assert len(questions) == len(set(questions)) >= 30
    assert all("`statek_sim/" in answer for _, answer in rows[1:] if not set(answer) <= set("-"))


def test_every_part_of_the_house_has_a_question_that_leads_to_it() -> None:
    answers = PAGE.partition("## Which module decides a rule")[2]
    parts = sorted(
        folder.relative_to(ROOT).as_posix()
        for house in ("statek_sim", "statek_sim/agent")
        for folder in (ROOT / house).iterdir()
        if (folder / "__init__.py").is_file()
    )
    assert len(parts) > 30
    # The command line decides nothing: its commands call what does.
    assert [part for part in parts if f"`{part}/" not in answers] == ["statek_sim/cli"]
