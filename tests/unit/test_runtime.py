from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from statek_sim import Agent, DialogAgent, LLM_Harness, Runtime, ScriptedLLM, code, text, tool
from statek_sim.errors import BadInput, RunawayJob
from statek_sim.jobs import StatekSettings
from statek_sim.runtime.execution.runtime import policy_of
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus
from statek_sim.semantics import V1_4
from statek_sim.trace import JobCreated, ToolReturned, WorldChanged
from tests.says import line_with
from tests.tables import table_test
from tests.unit.runtime_samples import UNLIMITED, Gate, idle_runtime


def test_jobs_are_numbered_and_found_by_name() -> None:
    runtime = idle_runtime()
    jobs = [runtime.create_job(Agent("worker")), runtime.create_job(Agent("worker"), name="mine")]
    assert [job.id for job in runtime.jobs] == ["job-1", "mine"]
    assert runtime.job("mine") is jobs[1]


def test_a_name_is_given_once() -> None:
    runtime = idle_runtime()
    runtime.create_job(Agent("worker"), name="mine")
    with pytest.raises(BadInput, match=line_with("job 'mine'", "already exists")):
        runtime.create_job(Agent("worker"), name="mine")
    assert len(runtime.jobs) == 1


def test_a_number_that_is_a_name_already_is_not_given_again() -> None:
    runtime = idle_runtime()
    runtime.create_job(Agent("worker"), name="job-1")
    assert runtime.create_job(Agent("worker")).id == "job-2"


def test_an_unknown_job_is_refused_with_the_known_ones() -> None:
    runtime = idle_runtime()
    with pytest.raises(BadInput, match=line_with("no job 'x'", "none")):
        runtime.job("x")
    runtime.create_job(Agent("worker"), name="a")
    with pytest.raises(BadInput, match=line_with("no job 'x'", "jobs: a")):
        runtime.job("x")


def test_a_new_job_is_ready_and_traced_with_its_parent() -> None:
    runtime = idle_runtime()
    parent = runtime.create_job(Agent("boss", model="gpt-4o-mini"))
    child = runtime.create_job(Agent("worker"), parent_job=parent, shared_vars={"x": 1})
    assert (child.status, child.py_env.local_state) == (JobStatus.READY, {"x": 1})
    assert runtime.trace.events == [
        JobCreated(0.0, "job-1", "boss", "gpt-4o-mini", None),
        JobCreated(0.0, "job-2", "worker", "gpt-4o", "job-1"),
    ]


@pytest.mark.parametrize(("source", "kind"), [("x = (", SyntaxError), ("#STATEK: what is this", ValueError)])
def test_warmup_that_cannot_be_read_means_no_job(source: str, kind: type[Exception]) -> None:
    runtime = idle_runtime()
    with pytest.raises(kind):
        runtime.create_job(Agent("worker"), warmup_code=source)
    assert runtime.jobs == []


def test_own_warmup_comes_before_that_of_the_agent() -> None:
    runtime = idle_runtime(script=["exit(order)"])
    job = runtime.create_job(Agent("worker", warmup="order.append('agent')"), warmup_code="order = ['own']")
    runtime.run()
    assert job.py_env.exit_status == ["own", "agent"]


@pytest.mark.parametrize(("own", "inherited"), [(None, "pl"), ("de", "de")])
def test_a_child_speaks_its_parents_language_unless_told_otherwise(own: str | None, inherited: str) -> None:
    runtime = idle_runtime()
    parent = runtime.create_job(Agent("boss"), locale="pl")
    assert runtime.create_job(Agent("worker"), parent_job=parent, locale=own).job_def.locale == inherited


def test_placeholders_of_the_prompt_are_filled_from_the_parameters_of_the_job() -> None:
    job = idle_runtime().create_job(Agent("worker", "Work on {topic}."), topic="bees")
    assert job.get_chat_history() == [{"role": "system", "content": "Work on bees."}]


def send(body: str, media: str | None = None) -> None:
    """Deliver nowhere."""


@table_test(
    ("agent", "chosen", "style"),
    [
        (Agent("a"), None, None),
        (Agent("a"), "markdown", "MARKDOWN"),
        (Agent("a", metadata={"CHAT_STYLE": "CONSOLE"}), None, None),
        (Agent("a", chat_style="console"), None, "CONSOLE"),
        (Agent("a", chat_style="console"), "MARKDOWN", "MARKDOWN"),
        (DialogAgent(send), None, "MD_DIALOG"),
        (DialogAgent(send, metadata={"CHAT_STYLE": "DIRECT"}), None, "DIRECT"),
        (DialogAgent(send, metadata={"CHAT_STYLE": "DIRECT"}), "CONSOLE", "CONSOLE"),
    ],
)
def test_the_chat_style_is_the_jobs_else_the_agents(
    agent: Agent, chosen: str | None, style: str | None
) -> None:
    job = idle_runtime().create_job(agent, chat_style=chosen)
    assert (None if job.chat_style is None else job.chat_style.value) == style


def test_the_environment_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = Runtime(ScriptedLLM([])).settings
    for name in ("STATEK_MAX_TURNS", "MAX_TURNS", "STATEK_MAX_TOKEN_USAGE", "STATEK_CHAT_STYLE"):
        monkeypatch.setenv(name, "DIRECT" if name.endswith("STYLE") else "77")
    (tmp_path / ".env").write_text("MAX_TURNS=78\nSTATEK_MAX_TURNS=79\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runtime = Runtime(ScriptedLLM([]))
    assert runtime.settings == plain
    assert (runtime.settings.max_turns, runtime.host.default_chat_style) == (5, None)


def test_settings_make_harness_and_policy() -> None:
    settings = StatekSettings(max_turns=7, python_sandbox_mode="off", python_sandbox_allowed_tools=" a, b ,")
    assert Runtime(ScriptedLLM([]), settings=settings).limits.max_turns == 7
    policy = policy_of(settings)
    assert (policy.restricted, policy.allowed_tools) == (False, frozenset({"a", "b"}))


@pytest.mark.parametrize("profile", ["1.4", V1_4])
def test_a_profile_is_given_by_name_or_by_value(profile: object) -> None:
    assert Runtime(ScriptedLLM([]), profile=profile).profile is V1_4  # type: ignore[arg-type]


def test_a_runtime_runs_inside_a_running_event_loop_and_leaves_it_running() -> None:
    @tool
    async def nap(seconds: float, **kwargs: object) -> str:
        """Sleep."""
        await asyncio.sleep(seconds)
        return "rested"

    async def test() -> tuple[object, float]:
        loop = asyncio.get_running_loop()
        runtime = Runtime(ScriptedLLM([code("exit(nap(3600))")]))
        job = runtime.create_job(Agent("worker", tools=[nap]))
        at = runtime.run().at
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        return job.py_env.exit_status, at

    assert asyncio.run(test()) == ("rested", 3600.0)


def test_a_loop_starts_as_many_jobs_as_the_queue_has_items() -> None:
    items = ["a", "b", "c"]
    agent = Agent("worker", context={"take": lambda: items.pop(0)})
    runtime = idle_runtime()
    runtime.add_loop(agent, lambda: len(items), warmup_code="exit(take())")
    runtime.run()
    assert [job.py_env.exit_status for job in runtime.jobs] == ["a", "b", "c"]


def test_a_loop_starts_no_more_jobs_than_may_run_at_once() -> None:
    items = ["a", "b", "c"]
    agent = Agent("worker", context={"take": lambda: items.pop(0)})
    runtime = Runtime(ScriptedLLM([code("exit(1)").after(1).times(3)]), max_concurrency=2)
    runtime.add_loop(agent, lambda: len(items), warmup_code="item = take()")
    runtime.run(until=0.5)
    assert len(runtime.jobs) == 2


def test_a_loop_dies_of_a_broken_warmup_and_a_restart_forgives() -> None:
    items = ["bad", "good"]

    def take() -> str:
        item = items.pop(0)
        if item == "bad":
            raise RuntimeError("bad item")
        return item

    runtime = Runtime(ScriptedLLM([]), max_concurrency=1)
    runtime.add_loop(Agent("worker", context={"take": take}), lambda: len(items), warmup_code="exit(take())")
    assert not runtime.run().worker_alive
    assert [event.change for event in runtime.trace.events if isinstance(event, WorldChanged)] == [
        "the worker loop died of RuntimeError: "
        "Job definition for agent 'worker' has errors — aborting agentic loop"
    ]
    runtime.restart_worker()
    assert runtime.run().worker_alive
    assert runtime.jobs[-1].py_env.exit_status == "good"


def test_a_loop_whose_queue_never_gets_shorter_fails_the_run() -> None:
    runtime = Runtime(ScriptedLLM([]), max_steps=100)
    runtime.add_loop(Agent("worker"), lambda: 1, warmup_code="exit(1)")
    with pytest.raises(RunawayJob, match=line_with("100 jobs", "0 s", "queue", "fewer than 1")):
        runtime.run()


def test_a_loop_that_puts_back_what_it_takes_fails_the_run_although_its_queue_gets_shorter() -> None:
    items = ["a", "b", "c"]

    def turn() -> str:
        items.append(items.pop(0))
        return items[0]

    runtime = Runtime(ScriptedLLM([]), max_steps=100)
    runtime.add_loop(Agent("worker", context={"turn": turn}), lambda: len(items), warmup_code="exit(turn())")
    with pytest.raises(RunawayJob, match="never had fewer than 3"):
        runtime.run()


def test_a_loop_with_more_items_than_any_bound_ends_when_its_queue_is_empty() -> None:
    items = list(range(1_000))
    agent = Agent("worker", context={"take": items.pop})
    runtime = Runtime(ScriptedLLM([]), max_steps=100)
    runtime.add_loop(agent, lambda: len(items), warmup_code="exit(take())")
    runtime.run()
    assert len(runtime.jobs) == 1_000


def test_an_action_follows_the_call_of_a_tool_it_was_tied_to() -> None:
    @tool
    def ping(**kwargs: object) -> None:
        """Do nothing."""

    runtime = idle_runtime(script=["ping()\nping()", "exit(1)"])
    runtime.create_job(Agent("worker", tools=[ping]))
    calls: list[int] = []
    runtime.after_tool(
        "ping",
        2,
        lambda: calls.append(sum(isinstance(event, ToolReturned) for event in runtime.trace.events)),
    )
    runtime.run()
    assert calls == [2]


def test_calls_may_be_counted_in_one_job_only() -> None:
    @tool
    def ping(**kwargs: object) -> None:
        """Do nothing."""

    runtime = idle_runtime(script=[code("ping()\nexit(1)").times(3)])
    for name in ("a", "b", "c"):
        runtime.create_job(Agent("worker", tools=[ping]), name=name)
    seen: list[str] = []
    runtime.after_tool("ping", 1, lambda: seen.append("first of b"), job="b")
    runtime.after_tool("ping", 2, lambda: seen.append("second of b"), job="b")
    runtime.run()
    assert seen == ["first of b"]


def test_everything_that_follows_one_call_happens_in_order_and_the_crash_within_the_call() -> None:
    @tool
    def ping(**kwargs: object) -> None:
        """Do nothing."""

    runtime = idle_runtime(script=[code("ping()\nexit(1)")])
    runtime.create_job(Agent("worker", tools=[ping]), name="a")
    seen: list[str] = []
    runtime.after_tool("ping", 1, lambda: seen.append("first"), job="a")
    runtime.crash_worker_in_tool("ping")
    runtime.after_tool("ping", 1, lambda: seen.append("second"))
    assert not runtime.run().worker_alive
    assert seen == ["first", "second"]


def test_the_outcome_names_the_jobs_that_wait() -> None:
    gate = Gate()
    runtime = Runtime(ScriptedLLM([code("gate()")]))
    job = runtime.create_job(Agent("worker", tools=[gate.tool]))
    outcome = runtime.run()
    assert (outcome.waiting, outcome.settled, outcome.worker_alive) == ((job.id,), True, True)
    assert job.status is JobStatus.SUSPENDED


def test_usage_is_that_of_all_jobs_together() -> None:
    runtime = Runtime(ScriptedLLM([code("exit(1)").times(2)]), harness=UNLIMITED)
    jobs: list[Job] = [runtime.create_job(Agent("worker")) for _ in range(2)]
    runtime.run()
    assert runtime.usage().bytes_sent == sum(job.usage.total_bytes_sent for job in jobs) > 0


@pytest.mark.parametrize(("profile", "replies"), [("docs", 6), ("1.2", 6), ("1.4", 3)])
def test_a_harness_without_a_rule_extends_limits_as_the_profile_does(profile: str, replies: int) -> None:
    delivered: list[str] = []

    def collect(body: str) -> None:
        delivered.append(body)

    agent = DialogAgent(collect, metadata={"CHAT_STYLE": "DIRECT"})
    harness = LLM_Harness(5, 3, 1, 10**6)
    runtime = Runtime(ScriptedLLM([text("yes").forever()]), profile=profile, harness=harness)
    job = runtime.create_job(agent, message="hello")
    while job.error is None:
        runtime.run()
        job.push_user_message("and?")
        runtime.run()
    assert len(delivered) == replies


def test_create_job_refuses_what_would_vanish() -> None:
    runtime = idle_runtime()
    with pytest.raises(BadInput, match=r"^create_job: unknown argument 'shared_var'\. Did you mean"):
        runtime.create_job(Agent("a"), shared_var={"x": 1})
    with pytest.raises(BadInput, match=line_with("create_job", "Agent", "first argument", "'guide'")):
        runtime.create_job("guide")  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(BadInput, match=line_with("job name", "empty")):
        runtime.create_job(Agent("a"), name="")


def test_a_runtime_wants_a_provider() -> None:
    with pytest.raises(BadInput, match=line_with("'complete'", "FunctionLLM")):
        Runtime(lambda request: "exit(1)")  # type: ignore[arg-type]  # the mistake under test


def test_the_status_of_a_job_cannot_be_set() -> None:
    job = idle_runtime().create_job(Agent("a"))
    with pytest.raises(AttributeError):
        job.status = JobStatus.DONE  # type: ignore[misc]  # the mistake under test


@pytest.mark.parametrize("until", [-5, 2.5, float("nan")])
def test_an_end_that_has_passed_is_refused(until: float) -> None:
    runtime = Runtime(ScriptedLLM([]))
    runtime.clock.advance_to(3)
    with pytest.raises(BadInput, match=line_with(f"until={until!r}", "3 s", "later")):
        runtime.run(until=until)
    assert runtime.run(until=3).at == 3
