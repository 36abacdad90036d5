"""The same as `test_cli_fuzz`, for commands that read texts, conversations, models and recordings."""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Final

import pytest

from statek_sim.cassettes import store
from statek_sim.cassettes.document import read
from statek_sim.cassettes.session import RecordMode
from statek_sim.cli import main
from statek_sim.suite.recorded import Cassettes, recorded
from statek_sim.suite.run import run_one
from tests.examples import EVERYTHING
from tests.recorded_samples import (
    FORMAT_OF,
    SCENARIO,
    Redirected,
    conversation,
    environment_for,
    provider_with,
    scenario_in,
)
from tests.unit.test_cli_fuzz import damaged, ended_well

COUNT: Final = 100 if EVERYTHING else 4
"""Damaged files of each kind."""

FILES: Final = {
    "reply.txt": 'Let me see.\n<tool_call>{"name": "weather",\n "arguments": {"city": "Oslo"}}</tool_call>\nDone.\n',
    "tools.json": '[\n{"name": "weather", "parameters":\n {"type": "object", "properties": {"city": {}}}},\n"time"]\n',
    "replies.jsonl": '{"id": "a", "text": "weather(city=1)", "tools": ["weather"]}\n{"id": "b", "text": "no"}\n',
    "texts.jsonl": '{"id": "a", "text": "mail a@b.example", "bad": true, "point": "input"}\n{"id": "b", "text": "x"}\n',
    "guards.toml": (
        '[[guards]]\nguard = "personal-data"\nkinds = ["email"]\n\n[[guards]]\nguard = "length"\nmost = 40\n'
        'tiers = ["free"]\naction = "warn"\n'
    ),
    "evals-policy.toml": (
        'version = 1\n\n[[rule]]\nname = "easy"\narm = "full"\nselect = {tiers = ["easy"]}\nright_percent = 1\n\n'
        '[[rule]]\nname = "hopeless"\narm = "full"\neach_right_percent = 0\nmeasured_tokens = 20000\n'
    ),
    "journal.jsonl": '{"method": "tools/list", "id": 1}\n{"method": "tools/call", "params": {"name": "note"}}\n',
    "served.yaml": SCENARIO,
    "recorded/books/invoice.groq.yaml": "",
}
"""What is damaged; the last is recorded."""

SERVING: Final = (
    "serve",
    "mcp",
    "served.yaml",
    "--scenario",
    "invoice",
    "--journal",
    "journal.jsonl",
    "--fault",
    "fails:note@1",
)
EVALS: Final = (
    "evals",
    "run",
    "--arms",
    "full",
    "--eval",
    "weather-now",
    "--seeds",
    "1",
    "--executor",
    "serial",
)
REPLAY: Final = ("run", "books.yaml", "--quiet", "--cassettes", "recorded", "--provider")
COMMANDS: Final[dict[str, list[tuple[str, ...]]]] = {
    "reply.txt": [("rescue", "reply.txt", "--tools", "tools.json")],
    "tools.json": [("rescue", "reply.txt", "--tools", "tools.json")],
    "replies.jsonl": [("rescue", "replies.jsonl", "--jsonl")],
    "texts.jsonl": [("guards", "texts.jsonl", "--guard", "secrets"), ("guards", "--check", "texts.jsonl")],
    "config.json": [("limits", "--card", "config.json", "--free", "8000")],
    "guards.toml": [("guards", "--check", "texts.jsonl", "--file", "guards.toml")],
    "evals-policy.toml": [(*EVALS, "--policy", "evals-policy.toml")],
    "journal.jsonl": [SERVING],
    "served.yaml": [SERVING],
    "recorded/books/invoice.groq.yaml": [
        (*REPLAY, "GROQ", "--profile", "1.4"),
        ("cassette", "scan", "recorded"),
        ("cassette", "diff", "whole.yaml", "recorded/books/invoice.groq.yaml"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of a cassette for each provider."""
    folder = tmp_path_factory.mktemp("recorded")
    scenario = scenario_in(folder)
    texts: dict[str, str] = {}
    for provider in FORMAT_OF:
        with provider_with(*conversation()) as server:
            found = recorded(
                scenario,
                "1.4",
                Cassettes(folder, provider),
                run_one,
                mode=RecordMode("rewrite"),
                environment=environment_for(server, provider),
                live=Redirected(server),
            )
        texts[provider] = found.path.read_text("utf-8")
    return texts


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recordings: dict[str, str]) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, text in {**FILES, "books.yaml": SCENARIO, "whole.yaml": recordings["GROQ"]}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text or recordings["GROQ"], "utf-8")
    return tmp_path


@contextmanager
def nobody_asks() -> Iterator[None]:
    """Let standard input be a pipe that has ended, as a server on stdio finds it whose client is gone."""
    ours, theirs = os.pipe()
    os.close(theirs)
    with os.fdopen(ours) as ended, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", ended)
        yield


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_end_no_newer_command_with_a_traceback(
    here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    if SERVING in COMMANDS[name]:
        pytest.importorskip("mcp")
    whole = (here / name).read_text("utf-8")
    for seed in range(-1, COUNT):
        made = whole.encode() if seed < 0 else damaged(whole, random.Random(f"{name} {seed}"))
        for command in COMMANDS[name]:
            (here / name).write_bytes(made)
            try:
                with nobody_asks():
                    ended_well(capsys, command)
            except BaseException as problem:
                raise AssertionError(f"seed {seed}, {' '.join(command)}, on:\n{made!r}") from problem


@pytest.mark.parametrize(("of", "body"), list(permutations(FORMAT_OF, 2)))
def test_a_recording_with_the_bodies_of_another_provider_is_told_in_words(
    here: Path, capsys: pytest.CaptureFixture[str], recordings: dict[str, str], of: str, body: str
) -> None:
    own, foreign = (folder_of(here, name, recordings[name]) for name in (of, body))
    pairs = list(zip(read(own), read(foreign), strict=True))
    foreign.unlink()
    store.write(own, [replace(mine, response=other.response) for mine, other in pairs])
    ended_well(capsys, (*REPLAY, of, "--profile", "1.4"))


@pytest.mark.parametrize("command", [(*REPLAY, "GROQ")])
def test_a_recording_with_a_relative_address_is_a_line(
    here: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    path = here / "recorded/books/invoice.groq.yaml"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text(
        "".join("      uri: /v1/chat/completions\n" if " uri: " in line else line for line in lines), "utf-8"
    )
    assert "uri: /v1" in path.read_text("utf-8")
    ended_well(capsys, command)


def folder_of(here: Path, provider: str, text: str) -> Path:
    path = here / f"recorded/books/invoice.{provider.lower()}.yaml"
    path.write_text(text, "utf-8")
    return path


LAUGHS: Final = "".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}' if number else 'x'] * 9)}]\n"
    for number in range(9)
)


@pytest.mark.parametrize(
    ("name", "change", "command", "told"),
    [
        (
            "evals-policy.toml",
            ("right_percent = 1", "right_percent = {}"),
            (*EVALS, "--policy", "evals-policy.toml"),
            "evals-policy.toml:7: rule[0].right_percent: expected a whole number, got a mapping",
        ),
        (
            "recorded/books/invoice.groq.yaml",
            ("interactions:", f"{LAUGHS}interactions:\n- response: {{status: {{code: *a8}}}}"),
            ("cassette", "diff", "recorded/books/invoice.groq.yaml", "whole.yaml"),
            "recorded/books/invoice.groq.yaml:",
        ),
    ],
    ids=["a table for a number", "a billion laughs"],
)
def test_what_is_larger_than_it_looks_is_a_line(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    change: tuple[str, str],
    command: tuple[str, ...],
    told: str,
) -> None:
    text = (here / name).read_text("utf-8")
    assert change[0] in text
    (here / name).write_text(text.replace(*change, 1), "utf-8")
    with pytest.raises(SystemExit) as exit_:
        main(command)
    assert exit_.value.code == 2
    told_here = capsys.readouterr().err
    assert told in told_here
    assert len(told_here) < 2_000


@pytest.mark.parametrize("count", ["1e999", "-1e999", ".nan", "1e308"])
def test_a_count_that_is_no_number_is_no_answer(
    here: Path, capsys: pytest.CaptureFixture[str], count: str
) -> None:
    place = here / "recorded/books/invoice.groq.yaml"
    text = place.read_text("utf-8")
    changed = re.sub(r'"prompt_tokens": ?\d+', f'"prompt_tokens": {count}', text)
    assert changed != text
    place.write_text(changed, "utf-8")
    for command in COMMANDS["recorded/books/invoice.groq.yaml"]:
        ended_well(capsys, command)
