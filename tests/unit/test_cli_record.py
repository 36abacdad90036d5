"""`statek-sim cassette record` and `statek-sim run --cassettes`, against a fake provider on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from statek_sim.providers.http_provider import KEY, URL
from statek_sim.server.llm_server import LLMServer
from tests.recorded_samples import SCENARIO, conversation, environment_for, provider_with
from tests.unit.test_cli import Shell

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    for variable in ("GROQ" + URL, "GROQ" + KEY):
        monkeypatch.delenv(variable, raising=False)
    shell = Shell(tmp_path, capsys)
    shell.write("books.yaml", SCENARIO)
    return shell


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[LLMServer]:
    with provider_with(*conversation()) as server:
        for variable, value in environment_for(server, "GROQ").items():
            monkeypatch.setenv(variable, value)
        yield server


def test_a_scenario_is_recorded_and_then_runs_without_the_provider(
    shell: Shell, provider: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = shell("cassette", "record", "books.yaml", "--provider", "groq")
    provider.stop()
    monkeypatch.delenv("GROQ_API_URL")
    monkeypatch.delenv("GROQ_API_KEY")
    played = shell("run", "books.yaml", "--cassettes", "cassettes", "-q")

    assert (recorded.code, recorded.out) == (
        0,
        "books/invoice[1.4] passed: 3 exchanges recorded in cassettes/books/invoice.groq.yaml\n",
    )
    assert (played.code, played.out) == (0, "1 passed\n")


def test_secrets_of_your_own_are_named_when_recording_and_when_replaying(
    shell: Shell, provider: LLMServer
) -> None:
    own = ("--secret-name", "x-none", "--secret-pattern", "keep the [b]ooks")
    recorded = shell("cassette", "record", "books.yaml", "--provider", "groq", *own)
    text = Path("cassettes/books/invoice.groq.yaml").read_text("utf-8")
    played = shell("run", "books.yaml", "--cassettes", "cassettes", "-q", *own)
    without = shell("run", "books.yaml", "--cassettes", "cassettes", "-q")

    assert (recorded.code, played.code, played.out) == (0, 0, "1 passed\n")
    assert "keep the books" not in text
    assert "REDACTED" in text
    assert without.code == 1
    assert "CassetteMiss" in without.out
    provider.stop()


def test_secrets_of_your_own_are_about_recordings(shell: Shell) -> None:
    refused = shell("run", "books.yaml", "--secret-name", "x")
    assert (refused.code, refused.err) == (
        2,
        "--secret-name and --secret-pattern require --cassettes DIR\n",
    )


def test_the_commands_of_the_page_on_providers_work_as_printed(shell: Shell, provider: LLMServer) -> None:
    page = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")
    commands = [line.split()[2:] for line in page.splitlines() if line.startswith("$ statek-sim")]

    assert [command[0] for command in commands] == ["cassette", "run"]
    assert [shell(*command).code for command in commands] == [0, 0]


def test_the_code_of_the_page_on_providers_works_as_printed() -> None:
    page = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(example, {})


def test_the_report_of_a_replay_has_what_the_provider_reported(shell: Shell, provider: LLMServer) -> None:
    shell("cassette", "record", "books.yaml", "--provider", "groq")

    shell("run", "books.yaml", "--cassettes", "cassettes", "--report", "out")
    assert " 66 " in (shell.folder / "out" / "report.md").read_text(encoding="utf-8")


def test_a_scenario_that_fails_is_recorded_and_told(shell: Shell, provider: LLMServer) -> None:
    shell.write("books.yaml", SCENARIO.replace("exit: noted", "exit: paid"))

    ran = shell("cassette", "record", "books.yaml", "--provider", "groq")

    assert ran.code == 1
    assert ran.out.startswith("books/invoice[1.4] failed: 3 exchanges recorded in cassettes/books/")
    assert "jobs.main.exit: expected paid, got noted" in ran.out


def test_without_an_address_and_a_key_nothing_is_recorded(shell: Shell) -> None:
    ran = shell("cassette", "record", "books.yaml", "--provider", "groq")

    assert ran.code == 2
    assert "cannot send a request to GROQ: set GROQ_API_URL and GROQ_API_KEY" in ran.err
    assert not (shell.folder / "cassettes").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["cassette", "record", "books.yaml", "--provider", "groq", "--mode", "none"],
            "--mode none: records nothing",
        ),
        (
            ["cassette", "record", "books.yaml", "--provider", "groq", "--mode", "some"],
            "record mode 'some': expected",
        ),
        (
            ["cassette", "record", "books.yaml", "--provider", "groq", "--select", "x"],
            "no scenario to run: none of 1 matches",
        ),
        (["run", "books.yaml", "--provider", "groq"], "--provider and --model require --cassettes"),
        (
            ["run", "books.yaml", "--cassettes", "c", "--accept"],
            "--accept: remove --cassettes",
        ),
        (
            ["run", "books.yaml", "--cassettes", "c"],
            "c: no cassette for books/invoice; record it: statek-sim",
        ),
    ],
)
def test_what_cannot_be_done_is_told(shell: Shell, arguments: list[str], message: str) -> None:
    ran = shell(*arguments)
    assert ran.code == 2
    assert message in ran.err


def test_a_recording_in_which_nothing_was_answered_names_no_file_that_is_not_there(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_URL", "http://127.0.0.1:9/chat/completions")
    monkeypatch.setenv("GROQ_API_KEY", "x")
    ran = shell("cassette", "record", "books.yaml", "--provider", "GROQ")
    assert ran.code == 1
    assert ran.out.splitlines()[0] == "books/invoice[1.4] failed: nothing was recorded"
