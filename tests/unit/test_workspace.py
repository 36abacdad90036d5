from __future__ import annotations

import socket

import pytest

from statek_sim import Runtime, ScriptedLLM, code, text, tool, tool_call
from statek_sim.errors import NetworkForbidden
from statek_sim.providers import forbid_network
from statek_sim.providers.script import Reply
from statek_sim.runtime.agents.agent import Agent, DialogAgent
from statek_sim.runtime.state.status import JobStatus
from statek_sim.trace import CodeExecuted
from tests.tables import table_test
from tests.unit.runtime_samples import UNLIMITED, Gate, idle_runtime, run_one


def test_names_of_plain_values_outlive_the_block() -> None:
    job = run_one("x = 1\ny = [x, 'two']", "exit(x + len(y))")
    assert job.py_env.local_state == {"x": 1, "y": [1, "two"]}
    assert job.py_env.exit_status == 3


@table_test(
    "source",
    [
        "import math",
        "import math as m",
        "import json\nkept = json",
        "from math import sqrt",
        "from math import pi",
        "from datetime import datetime",
        "from functools import reduce\nkept = reduce",
        "def f(): return 1",
        "f = lambda: 1",
    ],
)
def test_modules_what_they_export_and_functions_are_not_kept(source: str) -> None:
    job = run_one(f"{source}\nx = 1", "exit(1)")
    assert job.py_env.local_state == {"x": 1}


def test_a_function_is_there_until_the_end_of_its_block_and_not_in_the_next() -> None:
    job = run_one("def f(): return 2\nx = f()", "print(x)\nprint(f())", "exit(1)")
    assert job.py_env.console[:2] == ["2", "NameError: name 'f' is not defined"]


def test_a_function_does_not_replace_what_had_its_name() -> None:
    job = run_one("f = 1", "def f(): return 2", "exit(f)")
    assert job.py_env.exit_status == 1


def test_names_before_a_failing_statement_are_kept_and_those_after_it_not() -> None:
    job = run_one("x = 1\ny = 1/0\nz = 3", "exit(1)")
    assert job.py_env.local_state == {"x": 1}
    assert job.py_env.console[0] == "ZeroDivisionError: division by zero"


def test_what_a_failing_compound_statement_bound_is_lost() -> None:
    job = run_one("for n in [1, 0]:\n    x = 1 / n", "exit(1)")
    assert job.py_env.local_state == {}


def test_a_deletion_lasts_for_its_block_only() -> None:
    job = run_one("x = 1", "del x\nprint(x)", "exit(x)")
    assert job.py_env.console[0] == "NameError: name 'x' is not defined"
    assert job.py_env.exit_status == 1


def test_every_expression_statement_is_echoed_except_a_bare_print() -> None:
    job = run_one("1 + 1\n'a'\nNone\nprint('b')\n[1, 'c']", "exit(1)")
    assert job.py_env.console[:5] == ["2", "a", "None", "b", '[1,"c"]']


def test_one_print_is_one_entry_whatever_its_end() -> None:
    job = run_one("print('a', end='')\nprint('b', 'c', sep='-')\nprint('d\\ne')\nprint()", "exit(1)")
    assert job.py_env.console[:4] == ["a", "b-c", "d\ne", ""]


def test_statements_after_an_exit_are_not_executed() -> None:
    job = run_one("exit('ok')\nx = 1")
    assert (job.py_env.exit_status, job.py_env.local_state) == ("ok", {})


def test_exit_without_a_value_ends_nothing() -> None:
    job = run_one("exit()\nx = 1", "exit(0)")
    assert (job.py_env.exit_status, job.py_env.local_state) == (0, {"x": 1})


def test_a_wait_continues_at_its_statement_and_repeats_only_that_one() -> None:
    gate = Gate()
    runtime = idle_runtime(
        script=[code("print('before')\nx = [gate(), print('again')]\nprint(x[0])\nexit(1)")]
    )
    job = runtime.create_job(Agent("worker", tools=[gate.tool]))
    runtime.at(1, gate.open)
    runtime.run()
    assert job.py_env.console[0] == "before"
    assert job.py_env.console.count("before") == 1


def test_an_awaited_expression_statement_shows_its_value_and_is_not_repeated() -> None:
    gate = Gate()
    runtime = idle_runtime(script=[code("gate()\nexit('after')")])
    job = runtime.create_job(Agent("worker", tools=[gate.tool]))
    runtime.at(1, lambda: gate.open("pass"))
    runtime.run()
    assert job.py_env.console == ["pass", "None"]
    assert len(job.trace.tool_calls("gate")) == 1


@table_test(
    ("source", "outcome"),
    [
        ("x = 1", "done"),
        ("1/0", "raised"),
        ("x = (", "raised"),
        ("exit(1)", "exited"),
        ("while True: pass", "contained"),
    ],
)
def test_the_trace_says_how_a_block_ended(source: str, outcome: str) -> None:
    job = run_one(source, code("exit(1)").forever())
    assert job.trace.of_type(CodeExecuted)[0].outcome == outcome


def test_code_that_never_ends_is_contained_and_ends_the_job() -> None:
    job = run_one("x = 1\nwhile True: pass")
    assert job.stop_reason == "contained"
    assert job.error is not None
    assert job.error.error_message.startswith("the code ran more than 1,000,000 loop iterations in one step")


@tool
def fetch(**kwargs: object) -> None:
    """Try a real connection."""
    socket.create_connection(("192.0.2.1", 80), timeout=0.1)


@pytest.mark.parametrize("reply", [code("fetch()"), tool_call("fetch"), code("x = 1\nprint(fetch())")])
def test_a_refused_connection_fails_the_run_not_the_job(reply: Reply) -> None:
    runtime = Runtime(ScriptedLLM([reply]))
    runtime.create_job(Agent("worker", tools=[fetch]))
    with (
        forbid_network(),
        pytest.raises(NetworkForbidden, match=r"^a real network connection to '192\.0\.2\.1' port"),
    ):
        runtime.run()


def test_a_refused_connection_in_warmup_fails_the_run() -> None:
    runtime = idle_runtime()
    runtime.create_job(Agent("worker", tools=[fetch]), warmup_code="fetch()")
    with forbid_network(), pytest.raises(NetworkForbidden, match=r"'192\.0\.2\.1' port 80 is forbidden here"):
        runtime.run()


def test_a_refused_connection_of_a_dialog_agent_fails_the_run() -> None:
    def send_message(body: str, media: str | None = None) -> None:
        fetch()

    runtime = idle_runtime(script=[text("hello")])
    runtime.create_job(DialogAgent(send_message), message="hi")
    with forbid_network(), pytest.raises(NetworkForbidden, match=r"'192\.0\.2\.1' port 80 is forbidden here"):
        runtime.run()


def test_two_jobs_share_no_names() -> None:
    runtime = Runtime(
        ScriptedLLM({"job:a": ["x = 1", "exit(x)"], "job:b": ["x = 2", "exit(x)"]}), harness=UNLIMITED
    )
    jobs = [runtime.create_job(Agent("worker"), name=name) for name in ("a", "b")]
    runtime.run()
    assert [job.py_env.exit_status for job in jobs] == [1, 2]
    assert all(job.status is JobStatus.DONE for job in jobs)
