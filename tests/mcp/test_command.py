"""`statek-sim serve mcp` as a program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from statek_sim.backends.serving import served_tools, tools_as_served
from statek_sim.cli import main
from statek_sim.errors import BadInput
from statek_sim.mcp.transports import DIED
from tests.mcp.serving import ROOT
from tests.says import line_with, says
from tests.tables import table_test

SCENARIOS = """
defaults:
  engine: agent
  tools:
    wiki__search: {server: wiki, description: Search., results: [{result: a page}, {error: "OSError: down"}]}
    look: {description: Look., parameters: {type: object, properties: {at: {type: string}}}, result: {$argument: at}}
  agents: {assistant: {prompt: You look.}}
  jobs: {main: {message: Look.}}
  script: {assistant: [{text: done}]}
scenarios:
  - {id: one, title: One.}
  - {id: other, title: Other., servers: {wiki: {}}}
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "statek_sim", "serve", "mcp", *arguments]


def ran(folder: Path, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        input=said,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def call(name: str, id_: int = 1, **arguments: object) -> str:
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}) + "\n"


@pytest.fixture
def scenarios(tmp_path: Path) -> Path:
    (tmp_path / "wiki.yaml").write_text(SCENARIOS, "utf-8")
    return tmp_path


def test_a_scenarios_tools_are_served_with_their_scripted_results(scenarios: Path) -> None:
    said = '{"jsonrpc": "2.0", "id": 0, "method": "tools/list"}\n'
    done = ran(scenarios, "wiki.yaml", "--scenario", "other", said=said)
    listed = json.loads(done.stdout)["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["look", "search"]
    called = call("look", at="the sky") + call("wiki__search", id_=2)
    done = ran(scenarios, "wiki.yaml", "--scenario", "one", said=called)
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())}
    assert {id_: answer["content"][0]["text"] for id_, answer in answers.items()} == {
        1: "the sky",
        2: "a page",
    }


def test_resources_and_prompts_are_named_beside_the_tools(tmp_path: Path) -> None:
    options = ["--resources", "tests.mcp.conformance_tools:RESOURCES", "--prompts"]
    read = (
        '{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "test://static-text"}}\n'
    )
    got = '{"jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": {"name": "test_simple_prompt"}}\n'
    source = "tests.mcp.conformance_tools:TOOLS"
    done = ran(tmp_path, source, *options, "tests.mcp.conformance_tools:PROMPTS", said=read + got)
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())}
    assert answers[1]["contents"][0]["text"] == "This is the content of the static text resource."
    assert answers[2]["messages"][0]["content"]["text"] == "This is a simple prompt for testing."
    done = ran(tmp_path, source, *options, "tests.mcp.conformance_tools:PROMTS")
    assert (done.returncode, "--prompts: module" in done.stderr) == (2, True)


def test_a_server_that_dies_ends_with_a_status_of_its_own(tmp_path: Path) -> None:
    done = ran(tmp_path, "tests.mcp.serving:TOOLS", "--fault", "dies:edit", said=call("edit"))
    assert (done.returncode, done.stdout) == (DIED, "")


def test_what_a_tool_prints_does_not_get_among_the_messages(tmp_path: Path) -> None:
    done = ran(tmp_path, "tests.mcp.serving:TOOLS", said=call("search", q="rain"))
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert "a line on standard output that is no message" in done.stderr


def test_over_http_it_says_where_it_is_and_ends_when_it_is_told(tmp_path: Path) -> None:
    http = command("tests.mcp.serving:TOOLS", "--transport", "streamable-http")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(http, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("serving 3 tools at http://127.0.0.1:")
        url = first.split()[-1]
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        body = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}'
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as answer:
            assert answer.headers["mcp-session-id"] == "session-1"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "0 calls\n"
    assert process.returncode == 0


@table_test(
    ("arguments", "facts"),
    [
        (["wiki.yaml"], "wiki.yaml: ; several scenarios; one of one, other"),
        (["wiki.yaml", "--scenario", "othr"], "scenario 'othr'; 'other'?"),
        (["wiki"], "'wiki': ; module:attribute or a scenario file"),
        (["json:nothing"], "module 'json' has no 'nothing'"),
        (["nowhere:TOOLS"], "'nowhere:TOOLS'; imported"),
        (["sys:path"], "'sys:path' contains '"),
        (["tests.mcp.serving:TOOLS", "--page", "0"], "page size; 1 or more; got 0"),
        (["tests.mcp.serving:TOOLS", "--listed", "edti"], "no tool 'edti'; has: search, edit, wait; 'edit'?"),
        (["tests.mcp.serving:TOOLS", "--fault", "dies:edti"], "fault dies:edti: ; unknown tool 'edti'"),
        (["tests.mcp.serving:TOOLS", "--journal", "wiki.yaml"], "wiki.yaml: ; not a journal"),
        (
            ["tests.mcp.serving:TOOLS", "--transport", "streamable-http", "--host", "0.0.0.0"],
            "'0.0.0.0'; not a loopback",
        ),
    ],
)
def test_what_cannot_be_served_is_one_line_and_exit_code_2(
    scenarios: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    facts: str,
) -> None:
    monkeypatch.chdir(scenarios)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(SystemExit) as done:
        main(("serve", "mcp", *arguments))
    captured = capfd.readouterr()
    assert (done.value.code, captured.out) == (2, "")
    assert says(captured.err, *facts.split("; "))
    assert captured.err.count("\n") == 1


def test_a_function_that_returns_tools_is_called() -> None:
    assert [tool.name for tool in served_tools("tests.mcp.serving:made")] == ["search"]


def test_a_scenario_of_the_other_engine_has_no_tools_to_serve(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(
        "scenarios:\n  - {id: a, title: A., agents: {w: {prompt: W}}, script: {w: [{code: exit()}]}}\n",
        "utf-8",
    )
    with pytest.raises(BadInput, match=line_with("jobs.yaml:2", "'a'", "statek engine", "agent engine")):
        served_tools(str(file))


def test_a_list_may_mix_functions_tools_and_served_tools() -> None:
    from tests.mcp.serving import search

    (one,) = tools_as_served([search])
    assert [tool.name for tool in tools_as_served([one])] == ["search"]


def test_standard_input_may_be_a_file_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text(SCENARIOS, "utf-8")
    (tmp_path / "asked.json").write_text('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n', "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = []
    for source in ("/dev/null", str(tmp_path / "asked.json")):
        with open(source, "rb") as given:
            ended = subprocess.run(
                command("tools.yaml", "--scenario", "one"), cwd=tmp_path, stdin=given, env=environment,
                capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
        assert (ended.returncode, "Traceback" in ended.stderr) == (0, False)
        said.append(ended.stdout)
    assert said[0] == ""
    assert json.loads(said[1]) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_journal_may_be_standard_error_whatever_that_is(scenarios: Path) -> None:
    done = ran(
        scenarios, "wiki.yaml", "--scenario", "one", "--journal", "/dev/stderr",
        said='{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n',
    )  # fmt: skip
    assert [json.loads(line)["what"] for line in done.stderr.splitlines()] == ["started", "request"]


def test_a_function_that_returns_no_tools_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def look(at): ...\n")
    done = ran(tmp_path, "mine:look")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert says(line, "'mine:look'", "function", "TypeError", "look()")
