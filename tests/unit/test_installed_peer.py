"""Starting the interpreter that has the real package; what a scenario needs there; which scenarios it cannot run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from statek_sim.backends.installed.messages import Line
from statek_sim.backends.installed.peer import Lost, Peer, Ran, installed_record
from statek_sim.errors import BadInput
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.installed import answerable
from statek_sim.trace import HandlerRan, JobStopped, LLMRequested, ToolCalled
from tests.says import line_with


def scenario_of(folder: Path) -> Scenario:
    path = folder / "one.yaml"
    path.write_text(
        "scenarios:\n"
        "  - id: one\n"
        "    title: One.\n"
        "    agents: {clerk: {tools: [note]}}\n"
        "    script: {clerk: [{code: exit(1)}]}\n"
    )
    (scenario,) = load_or_fail([path])
    return scenario


def test_an_interpreter_without_statek_is_told_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=line_with("cannot run statek", "-m pip install 'statek[dbzero]'")):
        Peer(str(_without_statek(tmp_path)))


def test_something_that_is_no_interpreter_is_told() -> None:
    with pytest.raises(BadInput, match=line_with("/bin/echo: ", "not a Python interpreter")):
        Peer("/bin/echo")
    with pytest.raises(
        BadInput, match=line_with("/nowhere/python: ", "started", "No such file or directory")
    ):
        Peer("/nowhere/python")


def test_something_that_never_says_a_word_is_told(tmp_path: Path) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    with pytest.raises(BadInput, match=line_with("cannot run statek", "not answer", "0.3 s")):
        Peer(str(silent), deadline=0.3)


def _without_statek(folder: Path) -> Path:
    """An environment of its own has no packages at all."""
    home = folder / "empty"
    (home / "bin").mkdir(parents=True)
    (home / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    python = home / "bin" / "python"
    python.symlink_to(Path(sys.executable).resolve())
    return python


def test_messages_arrive_whole_and_in_order() -> None:
    source, sink = os.pipe()
    with os.fdopen(source, "rb", buffering=0) as near, os.fdopen(sink, "wb", buffering=0) as far:
        line = Line(near, far)
        line.send({"text": "a\nb", "many": "x" * 3000})
        line.send({"second": 2})
        far.close()

        assert line.receive() == {"text": "a\nb", "many": "x" * 3000}
        assert line.receive() == {"second": 2}
        assert line.receive() is None


def test_a_run_that_was_lost_is_a_record_with_an_error(tmp_path: Path) -> None:
    record = installed_record(scenario_of(tmp_path), "1.4", Lost("hangs: killed after 60 s"), seed=0)

    assert record.error is not None
    assert (record.error.type, record.error.message) == ("Lost", "hangs: killed after 60 s")
    assert record.jobs == {}


def test_facts_become_a_record(tmp_path: Path) -> None:
    nothing: dict[str, Any] = {
        **dict.fromkeys(("error", "exit", "completions")),
        **dict.fromkeys(("turns", "exceptions", "streak", "steps"), 0),
        **dict.fromkeys(("definition_errors", "history"), ()),
    }
    job: dict[str, Any] = {
        **nothing,
        "name": "main",
        "agent": "clerk",
        "status": "DONE",
        "console": ["a"],
        "locals": {},
        "subtasks": {},
        "tool_log": [["x", {"error": "y"}]],
        "usage": {"bytes_sent": 10, "bytes_received": 4, "approx_tokens": 0, "reported_tokens": None},
    }
    seen = (
        LLMRequested(0.0, "main", 1, 1, "gpt-4o", 10, 0, ()),
        LLMRequested(0.0, "main", 2, 1, "gpt-4o", 10, 0, ()),
        HandlerRan(0.0, "main", "_h", "c", None, None),
        ToolCalled(0.0, "main", "note", "'x'", "code"),
        JobStopped(0.0, "main", "exit", "ok"),
    )

    record = installed_record(
        scenario_of(tmp_path),
        "1.4",
        Ran({"jobs": {"main": job}, "error": None}, seen),
        seed=3,
    )

    assert (record.backend, record.seed, record.llm_calls, record.error) == ("installed", 3, 2, None)
    assert record.jobs["main"].tool_log == (("x", {"error": "y"}),)
    assert [call.name for call in record.jobs["main"].handlers] == ["_h"]
    assert record.jobs["main"].tool_calls == ({"name": "note", "arguments": "'x'", "via": "code"},)
    assert record.jobs["main"].stop == "exit"
    assert (record.usage.bytes_sent, record.usage.reported_tokens) == (10, None)


def test_what_only_a_tokenizer_can_answer_is_not_asked() -> None:
    said = {
        "digest": "0" * 64,
        "usage": {"tokenizer": "none", "bytes_sent": 1},
        "jobs": {"main": {"stop": "exit", "turns": 1}},
    }

    left = answerable(Expect.model_validate(said)).model_dump(exclude_unset=True)

    assert left == {"usage": {"bytes_sent": 1}, "jobs": {"main": {"stop": "exit", "turns": 1}}}
