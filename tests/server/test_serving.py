"""Script files, and the command that serves them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from statek_sim.backends.serving import load_playable
from statek_sim.cli import main
from statek_sim.errors import BadInput, BadScenario
from statek_sim.providers.condition import Condition, TextMatch
from statek_sim.providers.script import refusal, text
from statek_sim.server.fault import FaultRule, HttpError, NullUsage, Reset, SlowTokens
from tests.says import line_with, says
from tests.tables import table_test

SCRIPT = """\
script:
  - text: Hello there.
    when: {last_message: {equals: "Hello?"}, headers: {X-Tenant: {equals: blue}}}
  - tools: [{name: look, args: {where: here}}]
faults:
  - {http: 429, retry_after: 1, requests: [1]}
  - {reset: 3, rate: 0.5, seed: 7}
  - {null_usage: true, when: {model: {equals: o3}}, times: 2}
models: [gpt-4o, o3]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "greeting.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_script_file_says_replies_faults_and_models(tmp_path: Path) -> None:
    playable = load_playable(written(tmp_path, SCRIPT))
    assert isinstance(playable.script, list)
    first = playable.script[0]
    assert first.condition == Condition(
        last_message=TextMatch(equals="Hello?"), headers=(("x-tenant", TextMatch(equals="blue")),)
    )
    assert playable.faults == (
        FaultRule(fault=HttpError(429, 1.0), positions=(1,)),
        FaultRule(fault=Reset(3), rate=0.5, seed=7),
        FaultRule(fault=NullUsage(), when=Condition(model=TextMatch(equals="o3")), times=2),
    )
    assert playable.models == ("gpt-4o", "o3")


def test_a_script_file_says_thoughts_refusals_citations_and_log_probabilities(tmp_path: Path) -> None:
    replies = (
        "script:\n"
        "  - {text: Rain., thinking: Look., citations: [{url: https://met.example, span: Rain}],\n"
        "     logprobs: [{token: Rain, logprob: -0.5, others: {Snow: -2}}, {token: ., logprob: 0}]}\n"
        "  - {text: No., refuses: true}\n"
    )
    playable = load_playable(written(tmp_path, replies))
    assert playable.script == [
        text("Rain.")
        .thinking("Look.")
        .citing("https://met.example", span="Rain")
        .logprobs(("Rain", -0.5, {"Snow": -2}), (".", 0.0)),
        refusal("No."),
    ]
    wrong = "script:\n  - {text: Rain., citations: [{url: x, span: Snow}]}\n"
    with pytest.raises(BadScenario, match=line_with("span='Snow'", "part", "'Rain.'")):
        load_playable(written(tmp_path, wrong))


def test_scripts_can_go_by_model(tmp_path: Path) -> None:
    playable = load_playable(written(tmp_path, "script: {gpt-4o: [{text: a}], o3: [{text: b}]}\n"))
    assert isinstance(playable.script, dict)
    assert list(playable.script) == ["gpt-4o", "o3"]


@table_test(
    ("text", "line", "facts"),
    [
        ("script: 3\n", 1, "script: ; list; mapping; got 3"),
        ("faults: []\n", 1, "missing; 'script'"),
        ("", 1, "expected a mapping; 'script'; got an empty file"),
        (
            "script: []\nfaults:\n  - {reset: 3}\n",
            3,
            "faults[0]: ; at least one of requests, rate, when, times",
        ),
        ("script: []\nfaults:\n  - {http: 200, times: 1}\n", 3, "faults[0].http: ; at least 400; got 200"),
        ("script: []\nfaults:\n  - {silence: true, http: 500, times: 1}\n", 3, "silence; http"),
        ("script:\n  - {txt: a}\n", 2, "key; 'txt'; script[0]"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, line: int, facts: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadScenario, match=line_with(f"{path}:{line}", *facts.split("; "))):
        load_playable(path)


def test_faults_that_exclude_each_other_are_refused_when_the_file_is_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "script: []\nfaults:\n  - {http: 500, requests: [1, 2]}\n  - {silence: true, requests: [2]}\n",
    )
    with pytest.raises(BadInput, match=line_with(f"{path}: ", "exclude each other", "request 2")):
        load_playable(path)


def test_a_scenario_of_one_agent_is_served_to_whoever_asks(tmp_path: Path) -> None:
    text = """\
suite: s
scenarios:
  - id: one
    title: one
    agents: {worker: {model: o3, chat_style: MARKDOWN}}
    script: {worker: [{code: "exit(1)"}]}
  - id: two
    title: two
    agents: {worker: {}}
    script: {worker: [{code: "exit(2)"}]}
"""
    path = written(tmp_path, text)
    playable = load_playable(path, "one")
    assert (len(playable.script), playable.models, playable.styles) == (1, ("o3",), "MARKDOWN")
    with pytest.raises(BadInput, match=line_with(f"{path}: ", "several scenarios", "one, two")):
        load_playable(path)
    with pytest.raises(BadInput, match=line_with(f"{path}: ", "'three'", "one, two")):
        load_playable(path, "three")


def test_slow_tokens_are_seconds(tmp_path: Path) -> None:
    text = "script: []\nfaults:\n  - {slow_tokens: 0.5, rate: 1.0}\n"
    assert load_playable(written(tmp_path, text)).faults[0].fault == SlowTokens(0.5)


@contextmanager
def served(*arguments: str | Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `statek-sim serve llm` and give its URL."""
    command = [sys.executable, "-m", "statek_sim", "serve", "llm", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"at (http://127\.0\.0\.1:\d+)", line)
            assert found, line + (
                process.stderr.read() if process.stderr and process.poll() is not None else ""
            )
            yield found.group(1), process
        finally:
            process.kill()


def post(url: str, message: str) -> Any:
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": message}]}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=120) as response:
        return json.load(response)


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 0)])
def test_the_command_serves_until_it_is_told_to_end(
    tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    path = written(tmp_path, "script: [{text: Hello.}]\n")
    with served(path, "--check") as (url, process):
        assert post(f"{url}/v1/chat/completions", "Hi.")["choices"][0]["message"]["content"] == "Hello."
        process.send_signal(ending)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (code, "1 request answered\n", "")


def test_a_parameter_is_ignored_on_the_command_line(tmp_path: Path) -> None:
    path = written(tmp_path, "script: [{text: Hello.}]\n")
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi."}], "logprobs": True}
    with served(path, "--check", "--ignore", "logprobs") as (url, process):
        asked = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(asked, timeout=120) as response:
            assert response.status == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 0


def test_with_check_what_was_left_over_is_a_failure(tmp_path: Path) -> None:
    path = written(tmp_path, "script: [{text: Hello.}, {text: Bye.}]\n")
    with served(path, "--check") as (url, process):
        post(f"{url}/v1/chat/completions", "Hi.")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err.startswith("1 ")
    assert "\n  reply 2: text 'Bye.'" in err


def test_other_machines_are_kept_out_unless_let_in(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "statek_sim",
        "serve",
        "llm",
        str(written(tmp_path, SCRIPT)),
        "--host",
        "0.0.0.0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("'0.0.0.0' is not a loopback address; ")


def test_a_port_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "script: [{text: Hello.}]\n")
    with pytest.raises(SystemExit) as ended:
        main(["serve", "llm", str(path), "--port", "70000"])
    assert ended.value.code == 2
    assert says(capsys.readouterr().err, "--port 70000", "0 to 65535")
