"""Which of the things we write hold secrets: each row of the table in docs/cassettes.md, planted and looked for.

A scenario is its author's own: what it says is in its trace, its reports and its checkpoints as it stands. What comes
from outside, in a request, an environment or a file that is none of ours, is not.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from statek_sim import ScriptedLLM, text, tool_call
from statek_sim.agent.checkpoints.sessions import Keeper, SessionStore
from statek_sim.agent.harness import AgentHarness
from statek_sim.cassettes import redaction
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.redaction import redacted
from statek_sim.cassettes.secret_detection import Finding, Sought, in_body
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cassettes.store import write
from statek_sim.cli import main
from statek_sim.errors import CassetteMiss
from statek_sim.harness.preset import load_preset
from statek_sim.mcp.server import McpEntry, McpJournal
from statek_sim.providers.mismatch import shorten
from statek_sim.server.journal import Journal, JournalEntry
from statek_sim.store.database import Sqlite
from statek_sim.store.sql import SqlStore
from statek_sim.telemetry.otel import trace_spans
from statek_sim.values import JSON
from tests.tables import table_test


def key(name: str) -> str:
    """Return what looks like a key of Groq's, and can be told from others."""
    return f"gsk_{name.ljust(16, '0')}{'4f9Qm2Zr8TtYw1Lk7Xc3Vb6N4f9Qm2Zr8TtYw1Lk'[:36]}"


SCRIPT, ARGUMENT, RESULT, FAILURE, OF_PROCESS = map(
    key, ("SCRIPT", "ARGUMENT", "RESULT", "FAILURE", "PROCESS")
)
OF_SCENARIO: Final = {"SCRIPT": SCRIPT, "ARGUMENT": ARGUMENT, "RESULT": RESULT, "FAILURE": FAILURE}
SCENARIO: Final = f"""
suite: mine
defaults:
  profiles: [docs]
  agents: {{clerk: {{tools: ["keys_tools:look_up", "keys_tools:fail"]}}}}
scenarios:
  - id: plain
    title: Plain
    script:
      clerk:
        - {{code: "look_up(note='{ARGUMENT}')"}}
        - {{code: "print('{SCRIPT}')"}}
        - {{code: "fail()"}}
        - {{code: "exit('no')"}}
    expect: {{jobs: {{main: {{exit: done}}}}}}
"""
TOOLS: Final = f"""
from statek_sim import tool

@tool
def look_up(note="", **kwargs):
    return "{RESULT}"

@tool
def fail(**kwargs):
    raise ValueError("{FAILURE}")

asked = []

def never(run):
    asked.append(run)
    return "it is wrong" if len(asked) > 1 else None
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", OF_PROCESS)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "keys_tools.py").write_text(TOOLS)
    (tmp_path / "it.yaml").write_text(SCENARIO)
    return tmp_path


def planted(text: str) -> set[str]:
    """Return the names of the plants that a text has."""
    plants = {**OF_SCENARIO, "PROCESS": OF_PROCESS}
    return {name for name, secret in plants.items() if secret in text}


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit):
        main(arguments)
    told = capsys.readouterr()
    return told.out + told.err


@pytest.mark.parametrize(
    ("arguments", "written", "holds"),
    [
        (("run", "it.yaml"), None, {*OF_SCENARIO}),
        (("trace", "it.yaml"), None, {*OF_SCENARIO}),
        (("run", "it.yaml", "--report", "rep"), "rep/report.html", {*OF_SCENARIO}),
        (("run", "it.yaml", "--report", "rep"), "rep/report.md", {*OF_SCENARIO}),
        (("run", "it.yaml", "--report", "rep"), "rep/report.json", set()),
        (("run", "it.yaml", "--json", "run.json"), "run.json", set()),
        (("usage", "it.yaml", "--json", "usage.json"), "usage.json", set()),
        (("metrics", "it.yaml", "--json", "metrics.json"), "metrics.json", set()),
        (("validate", "it.yaml", "--json", "valid.json"), "valid.json", set()),
    ],
)
def test_what_a_command_writes_of_a_scenario_holds_what_the_scenario_says_or_none_of_it(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    written: str | None,
    holds: set[str],
) -> None:
    told = said(capsys, *arguments, *(("--watchdog", "off") if arguments[0] == "run" else ()))
    assert planted(told if written is None else Path(written).read_text("utf-8")) == holds


LEAKY: Final = f"""
suite: mine
scenarios:
  - id: claim
    title: A clerk claims an invoice.
    world: {{queue: {{items: [invoice-1]}}}}
    agents: {{clerk: {{prompt: You process invoices., tools: [fetch_next_item, process_item]}}}}
    jobs: {{main: {{message: "Go {SCRIPT}", locals: {{owner: {{$world: owner}}}}}}}}
    script: {{clerk: [{{code: "owner, item = fetch_next_item(owner)"}}, {{code: "exit('ok')"}}]}}
"""


def test_an_explored_file_is_the_scenario_as_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "it.yaml").write_text(LEAKY)
    told = said(
        capsys, "explore", "it.yaml", "--save", "found", "--kind", "crashes", "--invariant", "keys_tools:never",
        "--executor", "serial",
    )  # fmt: skip
    files = "".join(path.read_text("utf-8") for path in (here / "found").rglob("*.yaml"))
    assert files, told
    assert planted(files) == {"SCRIPT"}


def look(note: str) -> str:
    """Look."""
    return RESULT


def agent() -> AgentHarness:
    return AgentHarness(ScriptedLLM([tool_call("look", note=ARGUMENT), text(SCRIPT)]), tools=[look])


@pytest.mark.parametrize(("content", "holds"), [(False, set()), (True, {"ARGUMENT", "RESULT", "SCRIPT"})])
def test_spans_hold_texts_where_they_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, content: bool, holds: set[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OF_PROCESS)
    made = agent()
    made.run("Work.")
    assert planted("".join(span.to_json() for span in trace_spans(made.trace, content=content))) == holds


def test_a_checkpoint_is_the_whole_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OF_PROCESS)
    made, store = agent(), SessionStore(SqlStore(Sqlite(tmp_path / "it.db"), clock=lambda: 0.0))
    made.run("Work.", keeper=Keeper(store, "one", worker="w", plan=made.plan("Work.")))
    store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir()).decode("latin-1")
    assert planted(kept) == {"ARGUMENT", "RESULT", "SCRIPT"}


SENT: Final = "p4ssW0rd9x"
HEADERS: Final = {
    "authorization": f"Bearer {SENT}",
    "x-password": SENT,
    "jwt": SENT,
    "x-note": f"see {SCRIPT}",
    "content-type": "application/json",
}


def entry(body: object, target: str = "/v1/chat/completions", problem: str | None = None) -> JournalEntry:
    return JournalEntry(
        1, "openai", target, MappingProxyType(HEADERS), json.dumps(body).encode(), 200, problem=problem
    )


@table_test(
    "one",
    [
        entry({"messages": []}),
        entry({"messages": [{"role": "user", "content": f"it is {SCRIPT}, or {SENT} again"}]}),
        entry({"password": SENT, "deep": {"api_key": [SENT]}}),
        entry({}, f"/v1/chat?password={SENT}&sig={SENT}&key={SENT}#access_token={SENT}"),
        entry({}, f"/v1/{SCRIPT}/chat"),
        entry({}, problem=f"request 1 fits none\n  user: it is {SCRIPT}"),
        entry(f"{SCRIPT} " * 90_000),
    ],
)  # fmt: skip
def test_the_server_s_journal_holds_no_secret_of_a_request(one: JournalEntry) -> None:
    shown = json.dumps(one.record()) + one.line() + repr([one])
    assert (SENT in shown, SCRIPT in shown) == (False, False), shown[:2_000]
    journal = Journal()
    journal.add(one)
    assert SCRIPT not in "".join(journal.problems)


@pytest.mark.parametrize(
    "uri",
    [
        f"https://me:{SENT}@h.test/v1/chat",
        f"https://h.test/v1/chat?api_key={SENT}",
        f"https://h.test/v1/chat#token={SENT}",
        f"https://h.test/{SCRIPT}/chat",
    ],
)
def test_what_a_miss_tells_holds_no_secret_of_the_address(tmp_path: Path, uri: str) -> None:
    cassette = tmp_path / "it.yaml"
    asked = Request(method="POST", uri=uri, body=b"{}")
    for recorded in ([], [Exchange(request=replace(asked, body=b"[]"), response=Response(status=200))]):
        if recorded:
            write(cassette, [redacted(one) for one in recorded])
        with pytest.raises(CassetteMiss) as miss:
            CassetteSession(cassette, RecordMode.NONE).play(asked)
        assert "h.test" in str(miss.value)
        assert (SENT in str(miss.value), SCRIPT in str(miss.value)) == (False, False)


def test_a_test_is_given_a_request_as_it_was_sent() -> None:
    assert entry({"password": SENT}).json == {"password": SENT}


def test_the_journal_of_tools_holds_no_secret_of_a_call() -> None:
    lines: list[str] = []
    journal = McpJournal(lines.append)
    given: dict[str, JSON] = {
        "note": f"it is {SCRIPT}",
        "password": SENT,
        "deep": [{"token": SENT}],
        "city": "Oslo",
    }
    journal.add(McpEntry(what="request", method="tools/call", name="add", arguments=given))
    assert json.loads(lines[0])["arguments"] == {
        "note": "it is REDACTED", "password": "REDACTED", "deep": [{"token": "REDACTED"}], "city": "Oslo",
    }  # fmt: skip
    assert journal.calls == [("add", given)]


@pytest.mark.parametrize(
    ("name", "content", "arguments"),
    [
        ("a.env", f"OPENAI_API_KEY {SCRIPT}\n", ("run", "it.yaml", "--preset", "a.env")),
        ("a.env", f"export DB_PASSWORD={SENT} x='\n", ("run", "it.yaml", "--preset", "a.env")),
        ("a.env", f"DB_PASSWORD {SENT}\n", ("run", "it.yaml", "--preset", "a.env")),
        ("a.env", f"OPENAI_API_KEY={SCRIPT}\n", ("run", "it.yaml", "--preset", "a.env")),
        ("a.yaml", f"{SCRIPT}: 1\n", ("validate", "a.yaml")),
        ("a.yaml", f"scenarios: {SCRIPT}\n", ("run", "a.yaml")),
        ("a.env", f"OPENAI_API_KEY={SCRIPT}\n", ("validate", "a.env")),
        ("a.json", json.dumps({"schema": SCRIPT}), ("metrics", "a.json")),
    ],
)
def test_an_error_message_shows_no_key_of_a_file(
    here: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, arguments: tuple[str, ...]
) -> None:
    (here / name).write_text(content)
    told = said(capsys, *arguments)
    assert name in told
    assert (SENT in told, SCRIPT in told) == (False, False), told


def test_a_preset_holds_no_setting_that_is_a_key(here: Path) -> None:
    (here / "a.env").write_text("STATEK_MAX_TURNS=10\n")
    assert OF_PROCESS not in repr(load_preset(str(here / "a.env")))


def test_of_a_long_text_only_the_ends_are_read_and_they_show_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []

    def measured(text: str, sought: Sought) -> list[Finding]:
        sizes.append(len(text))
        return in_body(text, sought)

    monkeypatch.setattr(redaction, "in_body", measured)
    long = f"it is {SCRIPT} {'and so on ' * 100_000} and {SCRIPT} it was"
    clean = redaction.ends_without_secrets(long)
    for size in (80, 200, 2_000):
        line = shorten(clean, size)
        assert len(line) <= size
        assert line.startswith("it is REDACTED and so on")
        assert line.endswith("and REDACTED it was")
    assert sum(sizes) < 20_000
    assert redaction.ends_without_secrets(f"it is {SCRIPT}") == "it is REDACTED"
