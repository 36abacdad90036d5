"""Attacks under what has to hold them, and without it, where they have to work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from threading import Event

import jsonschema
import pytest

from statek_sim.agent.containers.bubblewrap import Bubblewrap
from statek_sim.agent.containers.docker import Docker
from statek_sim.agent.containers.program import Ended, Limits, Program
from statek_sim.agent.containment.attack import Attack, bad_calls, programs
from statek_sim.agent.containment.enforcers import LIMITS, Control, InContainer, Landlocked
from statek_sim.agent.containment.matrix import attacked, broken, called_inside, escapes, matrix, unproven
from statek_sim.agent.permissions import landlock
from statek_sim.reporting.published import schema_named
from tests.docs.page import DOCS, follow
from tools.containers import interpreter

PAGE = DOCS / "containment.md"
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


@pytest.mark.parametrize("name", FEW)
def test_an_attack_that_works_without_an_enforcer_is_held_by_bubblewrap(
    bubblewrap: Bubblewrap, name: str
) -> None:
    [attack] = [one for one in programs() if one.name == name]
    assert attacked(attack, Control()).contained is False
    held = attacked(attack, InContainer(bubblewrap))
    assert held.contained is True, held.outcome


def test_landlock_holds_files_and_not_memory() -> None:
    if landlock.version() == 0:
        pytest.skip("this kernel has no Landlock, or it is switched off")
    found = {
        name: attacked(attack, Landlocked()).contained
        for attack in programs()
        if (name := attack.name) in ("read-a-secret", "change-a-file", "read-over-a-link", "memory-bomb")
    }
    assert found == {
        "read-a-secret": True,
        "change-a-file": True,
        "read-over-a-link": True,
        "memory-bomb": False,
    }


def test_a_workspace_with_a_hard_link_is_not_given_to_a_program(bubblewrap: Bubblewrap) -> None:
    [call] = [one for one in bad_calls() if one.name == "hard-link-write"]
    row = called_inside(call, InContainer(bubblewrap))
    assert row.contained is True
    assert row.outcome.startswith("refused: /root/hard: has another name outside of the writable folder")


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
    # Without the calls, which are half a minute more; they are in the matrix of the page.
    rows = [attacked(attack, enforcer) for attack in programs()]
    assert (escapes(rows), broken(rows)) == ([], [])
    assert all(row.contained for row in rows)


def test_the_matrix_in_the_docs_has_every_attack_and_lets_none_out() -> None:
    page = PAGE.read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    head = next(line for line in page.splitlines() if line.startswith("| attack")).strip("| ").split(" | ")
    assert [line[0].strip("`") for line in lines] == NAMES
    for name in ("bubblewrap", "docker", "hardened"):
        assert "**out**" not in [line[head.index(name)] for line in lines]


def test_the_page_is_true(bubblewrap: Bubblewrap, folder: Path, tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(code, {"folder": folder})  # the page's own code, and its assertions
    assert f"{len(programs())} programs and {len(bad_calls())} calls" in text
    assert follow(PAGE, tmp_path, {}) == 1


def test_the_command_writes_rows_and_counts(
    tmp_path: Path, bubblewrap: Bubblewrap, capsys: pytest.CaptureFixture[str]
) -> None:
    from statek_sim.cli import main

    report = tmp_path / "rows.json"
    arguments = ["containment", "read-a-secret", "parent", "--json", str(report), "--enforcer", "bubblewrap"]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--enforcer", "hardened"])
    assert end.value.code == 0
    told = json.loads(report.read_text())
    jsonschema.Draft202012Validator(schema_named("containment")).validate(told)
    rows = [(row["name"], row["enforcer"], row["contained"]) for row in told["programs"]]
    assert rows == [
        ("read-a-secret", "bubblewrap", True),
        ("parent", "hardened", True),
        ("parent", "bubblewrap", True),
    ]
    assert "bubblewrap   held    2   out    0   not run    0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "attack 'nothing' is unknown"),
        (["--enforcer", "chroot"], "--enforcer 'chroot' is unknown; expected one of none, landlock"),
        (["--enforcer", "docker"], "--enforcer docker needs --docker IMAGE"),
        (
            ["--enforcer", "hardened", "read-a-secret"],
            "none of these attacks is for hardened: read-a-secret;",
        ),
        (
            ["--enforcer", "hardened", "read-a-secret", "parent"],
            "none of these attacks is for hardened: read-a-secret;",
        ),
    ],
)
def test_the_command_says_what_is_wrong(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from statek_sim.cli import main

    with pytest.raises(SystemExit) as end:
        main(["containment", *arguments])
    assert end.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--json", "."], "cannot write the report: Is a directory"),
        (["--page", "missing.md"], "missing.md: no such file"),
        (["--page", "bare.md"], "bare.md: has no lines '<!-- matrix -->'"),
        (["--page", "latin.md"], "latin.md: is not UTF-8"),
        (["--page", "page.md", "--json", "./page.md"], "--json and --page: both would be written to page.md"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_attacked(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from statek_sim.cli import main

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("statek_sim.agent.containment.matrix.matrix", never)
    (tmp_path / "bare.md").write_text("# Page\n")
    (tmp_path / "latin.md").write_bytes(b"\xe9")
    (tmp_path / "page.md").write_text("<!-- matrix -->\n<!-- end of matrix -->\n")
    with pytest.raises(SystemExit) as end:
        main(["containment", "--enforcer", "hardened", "parent", *arguments])
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_the_matrix_is_written_into_a_page(tmp_path: Path) -> None:
    from statek_sim.cli import main

    page = tmp_path / "page.md"
    page.write_text("before\n<!-- matrix -->\nold\n<!-- end of matrix -->\nafter\n")
    with pytest.raises(SystemExit) as end:
        main(["containment", "--enforcer", "hardened", "parent", "--page", str(page)])
    assert end.value.code == 0
    assert page.read_text() == (
        "before\n<!-- matrix -->\n| attack | hardened |\n|---|---|\n| `parent` | held |\n"
        "<!-- end of matrix -->\nafter\n"
    )
