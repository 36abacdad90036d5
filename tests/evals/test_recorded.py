"""A real model on evals: recorded once, replayed without it, and a profile made of what was recorded."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from statek_sim.cli.app import app
from statek_sim.cli.commands import load_commands
from statek_sim.errors import BadInput, ProviderUnreachable
from statek_sim.evals.players import replies
from statek_sim.providers.http_provider import HttpRequest, HttpResponse
from statek_sim.providers.live import LiveTransport
from statek_sim.providers.network import forbid_network
from statek_sim.providers.script import computed
from statek_sim.server.llm_server import LLMServer
from tests.evals.weak_models import eval_named

load_commands()

DOCS = Path(__file__).parents[2] / "docs"
SMALL = Path(__file__).parent / "smollm2-135m"
"""What a model of 135 million parameters said to `python -m tools.small_model`; how: docs/evals-models.md."""


def command(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["evals", *map(str, words)])
    if isinstance(done.exception, BadInput):
        return 2, str(done.exception)
    return done.exit_code, done.output


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve a model that does what is right with `weather-now`."""
    with served(monkeypatch) as url:
        yield url


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve that model as long as the context lasts, and have commands ask it."""
    instance = eval_named("weather-now").instance(0)
    with LLMServer() as running:
        running.script([computed(replies(instance.plan)).forever()])
        monkeypatch.setenv("OPENAI_API_URL", f"{running.url}/v1/chat/completions")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-kept-0123456789abcdef")
        yield running.url


def record(folder: Path, *words: str) -> tuple[int, str]:
    return command("record", "--model", "ideal", "--cassettes", folder, "--eval", "weather-now", *words)


@pytest.mark.usefixtures("endpoint")
def test_what_is_recorded_is_replayed_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    assert endpoint
    code, said = record(tmp_path / "kept")
    assert code == 0
    assert said.splitlines() == [
        "weather-now [full] seed 0: 2 recorded; right",
        "weather-now [bare] seed 0: 2 recorded; right",
    ]
    file = tmp_path / "result.json"
    monkeypatch.delenv("OPENAI_API_URL")
    with forbid_network(allow_loopback=False):
        code, _ = command("run", "--cassettes", tmp_path / "kept", "--json", file, "--executor", "serial")
    assert code == 0
    found = json.loads(file.read_text())
    assert (found["model"], found["rates"]) == ("ideal", [])
    assert [(arm["name"], arm["runs"], arm["score"]) for arm in found["arms"]] == [
        ("full", 1, 1),
        ("bare", 1, 1),
    ]
    kept = "".join(path.read_text() for path in (tmp_path / "kept").rglob("*.yaml"))
    assert "sk-not-to-be-kept" not in kept


@pytest.mark.usefixtures("endpoint")
def test_what_is_there_is_not_asked_again(tmp_path: Path) -> None:
    record(tmp_path)
    assert "weather-now [full] seed 0: 0 recorded; right" in record(tmp_path)[1]
    assert "2 recorded" in record(tmp_path, "--mode", "rewrite")[1]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of recordings, to be copied by those who change it."""
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as monkeypatch, served(monkeypatch):
        assert record(folder)[0] == 0
    return folder


@pytest.fixture
def kept(recorded: Path, tmp_path: Path) -> Path:
    """Return a copy of the recordings."""
    return shutil.copytree(recorded, tmp_path / "kept")


@pytest.mark.usefixtures("endpoint")
def test_a_harness_that_asks_something_else_is_told_where_and_what_to_do(kept: Path) -> None:
    path = kept / "weather-now" / "full.0.yaml"
    path.write_text(path.read_text().replace("What's the weather", "How is the weather"))
    code, said = command("run", "--cassettes", kept, "--executor", "serial")
    assert code == 2
    assert "no recording of POST" in said
    assert "statek-sim evals record" in said


@pytest.mark.usefixtures("endpoint")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "gemma-4-31b-it"], "recordings in --cassettes say whose they are"),
        (["--seeds", "2"], "has 1; expected no more"),
        (["--arms", "no-rescue"], "not recorded; expected every eval in every arm with 1 seeds"),
        (["--eval", "move-money"], "no recordings of evals in it"),
    ],
)
def test_what_is_not_recorded_is_said(kept: Path, words: list[str], said: str) -> None:
    code, told = command("run", "--cassettes", kept, *words)
    assert code == 2
    assert said in told


@pytest.mark.usefixtures("endpoint")
def test_only_the_seeds_that_are_asked_for_have_to_be_there(tmp_path: Path) -> None:
    record(tmp_path)
    kept = tmp_path / "weather-now" / "full.0.yaml"
    kept.with_name("full.1.yaml").write_bytes(kept.read_bytes())
    assert command("run", "--cassettes", tmp_path, "--seeds", "1", "--executor", "serial")[0] == 0
    code, said = command("run", "--cassettes", tmp_path)
    assert code == 2
    assert "bare.1.yaml: not recorded; expected every eval in every arm with 2 seeds" in said


def test_files_that_are_no_recordings_do_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "weather-now"
    folder.mkdir()
    (folder / "notes.yaml").write_text("mine")
    code, said = command("run", "--cassettes", tmp_path)
    assert (code, said) == (
        2,
        f"{tmp_path}: no recordings of evals in it; make them with statek-sim evals record",
    )
    shutil.copytree(SMALL / "weather-now", folder, dirs_exist_ok=True)
    shutil.copy(folder / "full.0.yaml", folder / "full.0.new.yaml")
    code, said = command("run", "--cassettes", tmp_path, "--executor", "serial")
    assert code == 0
    assert re.findall(r"^  (full|bare) +2 ", said, re.MULTILINE) == ["full", "bare"]


@pytest.mark.parametrize(
    "asked", ["a wrong path of the endpoint", "nobody there", "nobody in the middle of a run"]
)
def test_an_endpoint_that_does_not_answer_is_told_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str, asked: str
) -> None:
    if asked == "nobody there":
        monkeypatch.setenv("OPENAI_API_URL", "http://127.0.0.1:9/v1/chat/completions")
    elif asked == "a wrong path of the endpoint":
        monkeypatch.setenv("OPENAI_API_URL", f"{endpoint}/v1/nothing")
    else:
        dies_at_the_second(monkeypatch)
    code, said = record(tmp_path)
    assert code == 2
    assert f"{tmp_path / 'weather-now' / 'full.0.yaml'}: not recorded: " in said
    assert list(tmp_path.rglob("*.yaml")) == []


def dies_at_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every request but the first find nobody."""
    send, sent = LiveTransport.send, []

    def once(transport: LiveTransport, request: HttpRequest) -> HttpResponse:
        sent.append(request)
        if len(sent) > 1:
            raise ProviderUnreachable("the connection broke")
        return send(transport, request)

    monkeypatch.setattr(LiveTransport, "send", once)


def test_mode_none_records_nothing_and_is_refused(tmp_path: Path) -> None:
    code, said = record(tmp_path, "--mode", "none")
    assert code == 2
    assert "--mode none" in said


def test_the_small_model_is_replayed_as_the_page_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    code, said = command("run", "--cassettes", SMALL, "--json", file, "--executor", "serial")
    assert code == 0
    found = json.loads(file.read_text())
    full, bare = found["arms"]
    assert (full["name"], bare["name"]) == ("full", "bare")
    # It writes calls as text, which only rescue reads: without it nothing is ever called.
    assert full["score"] > bare["score"] == 0
    assert full["tokens"]["reported"]["prompt"] > 0
    # The page shows what the command prints.
    shown = re.search(r"Arms\n(?:  .*\n)+", (DOCS / "evals-models.md").read_text("utf-8"))
    assert shown is not None
    assert shown[0] in said
