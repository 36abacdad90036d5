"""Attacks under what has to hold them, and without it, where they have to work."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event

import pytest

from statek_sim.agent.containers.bubblewrap import Bubblewrap
from statek_sim.agent.containers.docker import Docker
from statek_sim.agent.containers.program import Ended, Limits, Program
from tests.containers.attacks.attack import Attack, bad_calls, programs
from tests.containers.attacks.enforcers import LIMITS, Control, InContainer
from tests.containers.attacks.matrix import (
    PASSES_OLD_DOCKER,
    attacked,
    broken,
    called_inside,
    escapes,
    matrix,
    unproven,
)
from tests.docs.page import DOCS
from tests.tables import table_test
from tools.containers import interpreter

PAGE = DOCS / "containment.md"
MATRIX = Path(__file__).parent / "attacks" / "matrix.md"
NAMES = [*(one.name for one in programs()), *(one.name for one in bad_calls())]
FEW = (
    "read-a-secret",
    "change-a-file-over-a-hard-link",
    "plant-a-git-hook",
    "mount-a-file-system",
    "namespaces-by-clone3",
    "kill-a-victim",
    "environment-of-a-victim",
    "secret-in-the-environment",
    "inherited-files",
    "live-on-as-a-daemon",
    "connect",
    "socket-without-a-name",
    "shared-memory-segment",
    "fork-bomb",
    "memory-bomb",
    "flood-the-output",
    "ignore-the-end",
)
"""A few of each kind, for the tests of every day; all of them are slow."""


def test_the_corpus_has_what_it_says() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 60
    assert set(FEW) <= set(NAMES)
    assert {one.control.partition(":")[0] for one in programs()} == {"plain", "namespace", "no"}


@table_test("name", FEW)
def test_an_attack_that_works_without_an_enforcer_is_held_by_bubblewrap(
    bubblewrap: Bubblewrap, name: str
) -> None:
    [attack] = [one for one in programs() if one.name == name]
    assert attacked(attack, Control()).contained is False
    held = attacked(attack, InContainer(bubblewrap))
    assert held.contained is True, held.outcome


def test_a_workspace_with_a_hard_link_is_not_given_to_a_program(bubblewrap: Bubblewrap) -> None:
    [call] = [one for one in bad_calls() if one.name == "hard-link-write"]
    row = called_inside(call, InContainer(bubblewrap))
    assert row.contained is True
    assert row.outcome.startswith("refused: /root/hard: is hard-linked from outside the writable folder")


def test_a_program_that_does_not_begin_was_held_by_nothing() -> None:
    class Lame:
        name = "lame"

        def run(self, program: Program, limits: Limits = LIMITS, *, stop: Event | None = None) -> Ended:
            return Ended(exit=1, stderr="no such thing\n")

    row = attacked(programs()[0], InContainer(Lame(), interpreter()))
    assert (row.contained, row.outcome) == (None, "did not begin: exit code 1: no such thing")
    assert broken([row]) == [row]


def test_what_does_not_work_without_an_enforcer_either_is_named() -> None:
    harmless = Attack(name="harmless", source="pass")
    assert unproven([attacked(harmless, Control())]) == ["harmless"]


@pytest.mark.slow
def test_nothing_gets_out_of_bubblewrap(bubblewrap: Bubblewrap) -> None:
    rows = list(matrix([InContainer(bubblewrap)], []))
    assert (escapes(rows), broken(rows)) == ([], [])
    assert sum(row.contained is True for row in rows) > 120


@pytest.mark.slow
def test_nothing_gets_out_of_docker(docker: Docker) -> None:
    enforcer = InContainer(docker, "/usr/bin/python3")
    # Without the calls, which are half a minute more; they are in the matrix.
    rows = [attacked(attack, enforcer) for attack in programs() if attack.name not in PASSES_OLD_DOCKER]
    assert (escapes(rows), broken(rows)) == ([], [])
    assert all(row.contained for row in rows)


def test_the_matrix_has_every_attack_and_lets_none_out() -> None:
    page = MATRIX.read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    head = next(line for line in page.splitlines() if line.startswith("| attack")).strip("| ").split(" | ")
    assert [line[0].strip("`") for line in lines] == NAMES
    for name in ("bubblewrap", "docker", "permissions"):
        assert "**out**" not in [line[head.index(name)] for line in lines]


def test_the_page_is_true(bubblewrap: Bubblewrap, folder: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(code, {"folder": folder})  # the page's own code, and its assertions
    assert f"{len(programs())} programs and {len(bad_calls())} calls" in text
