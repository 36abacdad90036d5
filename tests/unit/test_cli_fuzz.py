"""Files that were damaged in every way: a command ends with 0, 1 or 2, and never with a traceback of ours."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from statek_sim.cli import main
from tests.unit.gate_samples import POLICY, ROOMY, WORKLOADS

COUNT: Final = 10
"""Damaged files of each kind in an ordinary test run."""

LONG: Final = 215
"""And in a thorough one."""

ODD: Final = (
    "", "null", "~", "-1", "0", "1e999", ".nan", "9" * 30, "true", "[", "]", "{", "}", "[]", "{}", "'", '"', ": ", "- ",
    "#", "&a b", "*a", "!!python/name:os.system", "|", ">", "%", "\t", "\x00", "\u2028", "é", "🙂", "a.b:c", "..", "/",
    "main", "worker", "docs", "{$world: owner}", "{$job: main}", "= 1", '"""', "x" * 3000, "[" * 60, "2026-01-01",
    "9" * 5000, "0x" + "f" * 4000, "[" * 2000 + "]" * 2000, '{"a":' * 1000, " " * 100_000 + "x", "= {}", "= {x = 1}",
    "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]" for n in range(9)), "code: *a8", "*a8",
)  # fmt: skip
FILES: Final = {
    "workloads.yaml": WORKLOADS,
    "policy.toml": POLICY,
    "own.env": ROOMY,
    "baseline.json": (
        '{\n  "format": "statek-sim/baseline@1",\n  "preset": "own.env",\n  "profile": "docs",\n  "scenarios": {\n'
        '    "sample/short": {"needs": {"max_turns": [2, 10], "max_token_usage": [268, 15000]}},\n'
        '    "sample/loop": {"stopped_by": "max_turns", "bad_turns": 4, "bad_tokens": 272}\n  }\n}\n'
    ),
    "prices/openai.csv": "model,input,output\ngpt-4o,1,2\n",
    "served.yaml": (
        "script:\n  - text: Hello\n  - {code: print(1), when: {last_message: {contains: x}}}\n"
        "faults:\n  - {slow_tokens: 0.5}\n"
    ),
}
GATE: Final = ("gate", "own.env", "workloads.yaml", "--policy", "policy.toml")
COMMANDS: Final[dict[str, Sequence[Sequence[str]]]] = {
    "workloads.yaml": [("validate", "workloads.yaml"), ("run", "workloads.yaml", "--quiet", "--profile", "docs")],
    "policy.toml": [GATE],
    "own.env": [
        (*GATE, "--allow-defaults"),
        ("run", "workloads.yaml", "--quiet", "--preset", "own.env", "--select", "short"),
    ],
    "baseline.json": [(*GATE, "--baseline", "baseline.json")],
    "prices/openai.csv": [("usage", "workloads.yaml", "--select", "short", "--prices", "prices")],
    "served.yaml": [("validate", "served.yaml")],
}  # fmt: skip


def damaged(text: str, rng: random.Random) -> bytes:
    """Return a file's bytes with one to four things wrong."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(lines)) if lines else 0
        match rng.randrange(6):
            case 0 if lines:
                lines.pop(place)
            case 1 if lines:
                lines.insert(place, rng.choice(lines))
            case 2:
                lines.insert(place, rng.choice(ODD) + "\n")
            case _:
                _replaced(lines, place, rng)
    made = "".join(lines).encode()
    if rng.random() < 0.1:
        at = rng.randrange(len(made) + 1)
        made = made[:at] + rng.choice((b"\xff", b"\xc3", b"\x00", b"\r", b"")) + made[at + 1 :]
    return made[: rng.randrange(len(made) + 1)] if rng.random() < 0.1 else made


def _replaced(lines: list[str], place: int, rng: random.Random) -> None:
    """Put something odd in the place of a word."""
    if lines:
        words = lines[place].split(" ")
        words[rng.randrange(len(words))] = rng.choice(ODD)
        lines[place] = " ".join(words)


def ended_well(capsys: pytest.CaptureFixture[str], command: Sequence[str]) -> None:
    """Run a command; it says why where it refuses."""
    with pytest.raises(SystemExit) as exit_:
        main(command)
    captured = capsys.readouterr()
    assert exit_.value.code in (None, 0, 1, 2)
    assert "Traceback" not in captured.err
    if exit_.value.code == 2:
        assert captured.err.strip()


def fuzz(folder: Path, capsys: pytest.CaptureFixture[str], name: str, seeds: range) -> None:
    for file, text in FILES.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text, "utf-8")
    for seed in seeds:
        made = damaged(FILES[name], random.Random(f"{name} {seed}"))
        (folder / name).write_bytes(made)
        for command in COMMANDS[name]:
            try:
                ended_well(capsys, command)
            except BaseException as problem:
                raise AssertionError(f"seed {seed}, {' '.join(command)}, on:\n{made!r}") from problem


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_end_no_command_with_a_traceback(
    here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    fuzz(here, capsys, name, range(COUNT))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_damaged_files_end_no_command_with_a_traceback(
    here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    fuzz(here, capsys, name, range(COUNT, COUNT + LONG))
