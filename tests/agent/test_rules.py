"""Rules of engine two beside its scenarios: variants, nudges, steps, budgets, the prefix, what a file may say."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.agent.budget import Budget, BudgetTracker, Prices
from statek_sim.agent.effects import (
    NO_PARTS,
    PASS,
    Choice,
    Compaction,
    Delayed,
    GuardPoint,
    Parts,
    Subject,
    ToolCall,
    ToolOutcome,
    TurnAhead,
    Verdict,
)
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.reliability import loop_watcher
from statek_sim.agent.replies.nudges import PREFIX, TEXTS, Failure, NudgeBudget, nudge_text
from statek_sim.agent.simulation import Simulation
from statek_sim.agent.step_enforcement import Step, StepEnforcer, StepPlan
from statek_sim.agent.tools.registry import Registry
from statek_sim.agent.tools.tool import tool_from
from statek_sim.backends.agent import run_agent_scenario
from statek_sim.errors import BadInput, BadScenario, BadTool, RunawayJob
from statek_sim.providers.script import Reply, ScriptedCall, text, tool_call, tool_calls
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.scenario import schema
from statek_sim.scenario.load import load_or_fail, load_paths
from statek_sim.trace import Compacted
from tests.says import line_with, says
from tests.tables import table_test

# -- nudges -----------------------------------------------------------------------------------------------------


@table_test("failure", Failure)
def test_every_failure_has_a_text_that_survives_missing_details(failure: Failure) -> None:
    said = nudge_text(failure, {})
    assert said.startswith(PREFIX)
    assert len(said) > len(PREFIX)
    assert failure in TEXTS


def test_braces_in_details_are_shown_as_they_are() -> None:
    assert "'{0.__class__}'" in nudge_text(Failure.UNKNOWN_TOOL, {"called": "{0.__class__}"})


@given(st.integers(0, 30), st.integers(0, 5))
def test_a_streak_is_never_longer_than_its_limit(failures: int, limit: int) -> None:
    budget = NudgeBudget(limit)
    given_nudges = [budget.take() for _ in range(failures)]
    assert sum(number is not None for number in given_nudges) == min(failures, limit)


# -- steps ------------------------------------------------------------------------------------------------------

TOOLS = ("a", "b", "c")
PLANS = st.builds(
    lambda steps, order: StepPlan(steps=tuple(steps), order=order),
    st.lists(
        st.builds(Step, tool=st.sampled_from(TOOLS), times=st.integers(1, 3), required=st.booleans()),
        max_size=4,
    ),
    st.sampled_from(("ordered", "any")),
)
CALLS = st.lists(st.tuples(st.sampled_from((*TOOLS, "helper")), st.booleans()), max_size=30)


@given(PLANS, CALLS)
def test_only_what_succeeded_is_done_and_the_end_is_open_exactly_while_something_is(
    plan: StepPlan, calls: list[tuple[str, bool]]
) -> None:
    enforcer = StepEnforcer(plan)
    succeeded: list[str] = []
    for tool, works in calls:
        if enforcer.check(tool) is not None:
            continue
        if works:
            enforcer.commit(tool)
            succeeded.append(tool)
        else:
            enforcer.roll_back(tool)
    steps = {step.tool for step in plan.steps}
    assert list(enforcer.done) == [tool for tool in succeeded if tool in steps]
    assert (enforcer.final() is None) is (not enforcer.open)
    needed = sum(step.times for step in plan.steps if step.required)
    assert len(enforcer.open) <= needed


@given(PLANS)
def test_a_model_that_calls_what_it_is_told_to_always_gets_through(plan: StepPlan) -> None:
    enforcer = StepEnforcer(plan)
    for _ in range(20):
        refused = enforcer.final()
        if refused is None:
            break
        tool = str(refused.details["expected"])
        assert enforcer.check(tool) is None
        enforcer.commit(tool)
    assert enforcer.open == ()


def test_a_plan_that_can_never_be_done_is_refused() -> None:
    with pytest.raises(BadInput, match=line_with("steps a, b", "depend")):
        StepPlan(steps=(Step(tool="a", after=("b",)), Step(tool="b", after=("a",))))
    with pytest.raises(BadInput, match=line_with("step 'a'", "after itself")):
        StepPlan(steps=(Step(tool="a", after=("a",)),))


@pytest.mark.parametrize(
    ("wrong", "facts"),
    [
        ({"order": "sideways"}, "steps: ; order 'sideways'; ordered or any"),
        ({"helpers": "look"}, "steps: ; helpers must be a list; got 'look'"),
        ({"steps": (Step(tool="a", times=1.5),)}, "step 'a': ; times must be 1 or more; got 1.5"),  # type: ignore[arg-type]
    ],
)
def test_a_plan_that_means_nothing_is_refused(wrong: dict[str, Any], facts: str) -> None:
    with pytest.raises(BadInput, match=line_with(*facts.split("; "))):
        StepPlan(**wrong)


def test_a_text_is_no_list_of_texts() -> None:
    tool = tool_from(fails_once, tags=["web"])
    with pytest.raises(BadInput, match=line_with("steps is 'fails_once'", "list", "tool names", "Steps")):
        AgentHarness(tools=[tool], steps="fails_once")
    with pytest.raises(BadTool, match=line_with("tool 'fails_once'", "tags is 'web'", "list")):
        tool_from(fails_once, tags="web")
    with pytest.raises(BadTool, match=line_with("'read' is 'look'", "list of tool names")):
        Registry([tool], task_types={"read": "look"})
    for what in ("names", "all_tags", "any_tag"):
        with pytest.raises(BadTool, match=line_with(f"{what} is 'web'", "list of strings")):
            Registry([tool]).offer(**{what: "web"})  # type: ignore[arg-type]


def fails_once() -> str:
    """Fail, and always the same way."""
    raise OSError("it is down")


def test_a_loop_takes_no_tool_away_that_an_open_step_needs() -> None:
    script = [tool_call("fails_once").times(12)]
    parts = Parts(watchers=(loop_watcher(),))
    agent = AgentHarness(
        ScriptedLLM(script), tools=[fails_once], steps=["fails_once"], parts=parts, protection=False
    )
    run = agent.run("Work.")
    assert (run.stop, run.refused, run.offered) == ("stuck", [], ("fails_once",))


def test_a_harness_protects_its_runs_unless_it_is_told_not_to() -> None:
    written = '{"name": "look", "parameters": {}}'
    script = [text(written).times(2), text("done")]
    run = AgentHarness(ScriptedLLM(script), tools=[look]).run("Look.")
    assert [call["name"] for call in run.calls] == ["look", "look"]
    bare = AgentHarness(ScriptedLLM(script[:1]), tools=[look], rescue=False, protection=False, context=None)
    assert bare.run("Look.").answer == written
    assert bare.begin("Look.").deps.parts == NO_PARTS
    first, second = (AgentHarness(tools=[look]).begin("Look.").deps.parts for _ in range(2))
    assert first.watchers[0] is not second.watchers[0]


def test_a_run_that_had_all_its_nudges_says_how_many() -> None:
    def count(number: int) -> int:
        """Count."""
        return number

    turns = [reply for number in range(4) for reply in (text("").times(3), tool_call("count", number=number))]
    run = AgentHarness(ScriptedLLM([*turns, text("")]), tools=[count]).run("Work.")
    assert (run.stop, len(run.nudged)) == ("max_nudges", 12)
    assert run.detail == "Agent failed after 12 retries in all. Last failure: empty — no details"


# -- budgets ----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 100)), max_size=20), st.integers(0, 3000))
def test_tokens_never_go_over_the_budget_by_more_than_what_was_told(
    requests: list[tuple[int, int]], limit: int
) -> None:
    tracker = BudgetTracker(Budget(tokens=limit, answer_tokens=60))
    for prompt, completion in requests:
        if tracker.before_request(prompt, at=0.0) is not None:
            break
        tracker.replied(prompt, completion)
    assert tracker.tokens <= limit + tracker.overshoot


def test_money_is_counted_exactly() -> None:
    prices = Prices(prompt=Decimal("0.1"), completion=Decimal("0.2"))
    tracker = BudgetTracker(Budget(cost=Decimal(1), prices=prices))
    for _ in range(3):
        tracker.replied(1_000_000, 0)
    assert tracker.cost == Decimal("0.3")


@table_test("amount", [-1, float("nan"), float("inf")])
@table_test("name", ["tokens", "seconds", "steps", "answer_tokens"])
def test_an_amount_that_is_none_is_no_budget(name: str, amount: Any) -> None:
    with pytest.raises(BadInput, match=line_with("budget: ", name, "non-negative finite", f"got {amount!r}")):
        Budget(**{name: amount})


def test_a_budget_of_money_needs_prices() -> None:
    with pytest.raises(BadInput, match=r"^a cost budget requires prices"):
        Budget(cost=Decimal(1))
    with pytest.raises(BadInput, match=line_with("model_prices requires prices")):
        Budget(model_prices={"dear": Prices(prompt=Decimal(1), completion=Decimal(1))})


def test_a_request_is_reserved_at_the_price_that_it_is_charged_at() -> None:
    nothing, dear = (Prices(prompt=Decimal(price), completion=Decimal(price)) for price in (0, 1_000_000))
    budget = Budget(cost=Decimal(1), prices=nothing, model_prices={"dear": dear})
    ends = [
        AgentHarness(one_answer(), model=model, budget=budget).run("Go.").stop for model in ("gpt-4o", "dear")
    ]
    assert ends == ["final", "budget_cost"]


def one_answer() -> ScriptedLLM:
    return ScriptedLLM({"agent": [text("Done.")]})


# -- the loop, from code ----------------------------------------------------------------------------------------


def look() -> str:
    """Look."""
    return "seen"


def harness(script: list[Reply], **settings: object) -> AgentHarness:
    return AgentHarness(ScriptedLLM(script), tools=[look], **settings)  # type: ignore[arg-type]  # as the test says


def test_messages_may_come_later() -> None:
    run = harness([text("one"), text("two")]).run("Work.", then={5.0: "And then?"})
    assert (run.answer, run.completions) == ("two", 2)


def test_a_run_that_has_not_ended_in_its_time_is_an_error() -> None:
    def hang() -> Delayed:
        return Delayed(100_000.0, "late")

    def agent(script: list[Reply]) -> AgentHarness:
        return AgentHarness(ScriptedLLM(script), tools=[replace(tool_from(hang), timeout=200_000.0)])

    with pytest.raises(RunawayJob, match=line_with("run 'main'", "STARTED", "86400 virtual seconds")):
        agent([tool_call("hang"), text("done")]).run("Work.")
    assert agent([tool_call("hang"), text("done")]).run("Work.", within=100_001.0).answer == "done"
    with pytest.raises(RunawayJob, match=line_with("run 'main'", "DONE", "10 virtual seconds")):
        agent([text("one")]).run("Work.", then={11.0: "And then?"}, within=10.0)


def test_a_budget_of_seconds_begins_with_the_first_request() -> None:
    provider = ScriptedLLM([tool_call("look").after(59.0), tool_call("look").after(1.0)])
    agent = AgentHarness(tools=[look], budget=Budget(seconds=60.0))
    run = agent.begin("Work.")
    driver = Simulation(provider, clock=agent.clock)
    driver.at(100.0, lambda: driver.start(run))
    assert driver.run(1000.0)
    assert (run.stop, run.detail, run.num_turns) == ("budget_seconds", "60 of 60 used", 2)


class Note:
    """A gate that notes what it is told, and refuses the calls with these numbers."""

    def __init__(self, *refused: int) -> None:
        self.refused = refused
        self.asked = 0
        self.told: list[str] = []

    def admit(self, call: ToolCall, *, at: float) -> str | None:
        self.asked += 1
        return "not now" if self.asked in self.refused else None

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        self.told.append("ended")

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        self.told.append("withdrawn")


def test_gates_hear_once_of_each_call_that_they_admitted_and_only_executed_ones_are_steps() -> None:
    first, second, third = Note(), Note(1), Note()
    agent = harness([tool_call("look").times(2), text("done")], parts=Parts(gates=[first, second, third]))
    run = agent.run("Work.")
    assert [gate.told for gate in (first, second, third)] == [["withdrawn", "ended"], ["ended"], ["ended"]]
    assert run.budget.steps == 4


def test_a_gate_that_breaks_leaves_no_call_admitted_by_the_others() -> None:
    class Breaks(Note):
        """A gate that breaks at its second call."""

        def admit(self, call: ToolCall, *, at: float) -> str | None:
            self.asked += 1
            if self.asked == 2:
                raise BadInput("the gate's store is gone")
            return None

    first, last = Note(), Note()
    two = tool_calls(ScriptedCall("look", {}), ScriptedCall("look", {}))
    with pytest.raises(BadInput, match=r"^the gate's store is gone$"):
        harness([two], parts=Parts(gates=[first, Breaks(), last])).run("Work.")
    assert (first.asked, first.told) == (2, ["withdrawn", "withdrawn"])
    assert (last.asked, last.told) == (1, ["withdrawn"])


def test_a_call_that_no_step_is_left_for_gives_no_guard_back_another_one() -> None:
    class Counts:
        """A guard that counts the calls it let pass, less those that were not made."""

        calls = 0

        def __call__(self, subject: Subject) -> Verdict:
            self.calls += subject.point is GuardPoint.CALL
            return PASS

        def withdrawn(self, subject: Subject) -> None:
            self.calls -= 1

    guard = Counts()
    two = tool_calls(ScriptedCall("look", {}), ScriptedCall("look", {}))
    run = harness([two, text("done")], parts=Parts(guards=[guard]), budget=Budget(steps=2)).run("Work.")
    assert [call["reason"] for call in run.refused] == ["Error: the step budget is used up"]
    assert (len(run.calls), guard.calls) == (1, 1)


def test_a_unit_that_took_no_message_reads_the_one_that_came_while_it_worked() -> None:
    agent = harness([text("one"), text("two").after(9.0), text("three")])
    run = agent.run("Work.")
    assert agent.provider is not None
    driver = Simulation(agent.provider, clock=agent.clock)
    driver.start(run)
    taken_up: list[bool] = []
    driver.at(5.0, lambda: taken_up.append(run.push("And then?")))
    assert driver.run(1000.0)
    assert (run.answer, run.inbox, taken_up) == ("three", [], [False])


def test_two_runs_of_a_harness_share_its_trace_and_not_their_history() -> None:
    agent = harness([text("one"), text("two")])
    first, second = agent.run("First."), agent.run("Second.")
    assert (first.job, second.job) == ("main", "main-2")
    assert [len(run.conversation.messages) for run in (first, second)] == [2, 2]


def test_a_compacted_history_shares_its_first_messages_with_the_cache() -> None:
    def forget(messages: object, *, tokens: int) -> Compaction | None:
        kept = list(messages)  # type: ignore[call-overload]  # a sequence
        return Compaction(messages=[*kept[:1], *kept[3:]], strategy="forget") if len(kept) > 3 else None

    run = harness([tool_call("look").times(3), text("done")], parts=Parts(compactor=forget)).run("Work.")
    assert len(run.deps.trace.of_job("main").of_type(Compacted)) == 2
    assert 0 < (run.conversation.prefix.share or 0) < 1


# -- what a file may say ----------------------------------------------------------------------------------------

FILE = """\
scenarios:
  - id: one
    title: One.
    engine: agent
    tools: {look: {result: seen}}
    agents: {a: {}}
    script: {a: [{text: done}]}
"""


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("settings: {}", "settings: ; 'settings'; for the statek engine; `engine: agent`"),
        ("world: {}", "world: ; 'world'; for the statek engine; `engine: agent`"),
        ("profiles: [docs]", "profiles[0]: ; 'docs'; not for the agent engine; expected hardened"),
        (
            "events: [{at: 1, notify: main, message: Hello}]",
            "events[0].notify: ; 'notify'; for the statek engine; `engine: agent`",
        ),
        (
            "expect: {jobs: {main: {console: []}}}",
            "expect.jobs.main.console: ; 'console'; for the statek engine; `engine: agent`",
        ),
        (
            "expect: {jobs: {main: {stop: exit}}}",
            "expect.jobs.main.stop: ; agent engine; never stop with 'exit'",
        ),
        (
            "jobs: {main: {warmup: look()}}",
            "jobs.main.warmup: ; 'warmup'; for the statek engine; `engine: agent`",
        ),
        ("expect_in: {docs: {}}", "expect_in: ; profile 'docs'; not among profiles (hardened)"),
    ],
)
def test_what_does_not_go_with_the_engine_is_refused_at_its_line(
    tmp_path: Path, line: str, facts: str
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(f"{FILE}    {line}\n", encoding="utf-8")
    [problem] = load_paths([path]).problems
    assert says(str(problem), f"{path}:8", "'one'", *facts.split("; "))


@pytest.mark.parametrize(
    ("agent", "facts"),
    [
        ("{tools: [loook]}", "agents.a.tools[0]: ; tool 'loook'; 'look'?"),
        ("{workflow: {steps: [lok]}}", "agents.a.workflow.steps[0]: ; tool 'lok'; 'look'?"),
        ("{warmup: look()}", "agents.a.warmup: ; 'warmup'; for the statek engine; `engine: agent`"),
        ("{metadata: {MODE: x}}", "agents.a.metadata.MODE: ; agent engine; only supports PROVIDER"),
        ("{offer: {task: read}}", "agents.a.offer.task: ; task type 'read'; None"),
        ("{offer: {any_tag: []}}", "agents.a.offer.any_tag: ; empty"),
        (
            "{workflow: {steps: [{tool: look, after: [look]}]}}",
            "agents.a.workflow.steps: ; step 'look'; after itself",
        ),
    ],
)
def test_names_that_are_not_there_are_told_at_their_line(tmp_path: Path, agent: str, facts: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILE.replace("{a: {}}", f"{{a: {agent}}}"), encoding="utf-8")
    [problem] = load_paths([path]).problems
    assert says(str(problem), f"{path}:6", "'one'", *facts.split("; "))


def test_a_task_types_tool_that_is_not_there_is_told_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(f"{FILE}    task_types: {{read: [look, lok]}}\n", encoding="utf-8")
    [problem] = load_paths([path]).problems
    assert says(str(problem), f"{path}:8", "'one'", "task_types.read[1]", "tool 'lok'", "'look'?")


def chooses_what_is_not_there(ahead: TurnAhead) -> Choice:
    return Choice(names=["lok"])


def test_what_a_chooser_asks_for_wrongly_is_told_with_the_scenarios_line(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    own = f"{{a: {{harness: {{chooser: '{__name__}:chooses_what_is_not_there'}}}}}}"
    path.write_text(FILE.replace("{a: {}}", own), encoding="utf-8")
    (scenario,) = load_paths([path]).scenarios
    with pytest.raises(BadScenario, match=line_with("file.yaml:2", "'one'", "tool 'lok'", "'look'?")):
        run_agent_scenario(scenario, "hardened")


def test_the_real_statek_is_never_asked_to_run_it(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILE, encoding="utf-8")
    (scenario,) = load_paths([path]).scenarios
    assert scenario.profiles == ("hardened",)
    assert not any(scenario.compared_under(profile) for profile in schema.STATEK_PROFILES)
    assert [scenario.under("docs"), scenario.under("1.4")] == ["hardened", None]


REFERRING = """
scenarios:
  - id: refers
    title: Results show what they were called with.
    engine: agent
    tools:
      look:
        description: Look.
        parameters: {{type: object, properties: {{place: {{type: string}}}}{more}}}
        results: [{result}]
    agents: {{assistant: {{prompt: P.}}}}
    jobs: {{main: {{message: Go.}}}}
    script: {{assistant: [{{tools: [{{name: look, args: {{place: here}}}}]}}, {{text: done}}]}}
"""


@pytest.mark.parametrize(
    ("result", "place", "facts"),
    [
        ("{result: {$argument: plce}}", "result.$argument", "argument of tool 'look': 'plce'; 'place'?"),
        ("{result: [{at: {$state: found}}]}", "result[0].at.$state", "state value 'found'; None"),
        (
            "{result: 1, sets: {seen: {$argument: time}, found: 1}}",
            "sets.seen.$argument",
            "argument of tool 'look': 'time'; Known: place",
        ),
    ],
)
def test_a_result_that_shows_what_is_not_there_is_refused(
    tmp_path: Path, result: str, place: str, facts: str
) -> None:
    path = tmp_path / "refers.yaml"
    path.write_text(REFERRING.format(result=result, more=""))
    where = (f"{path}:10", f"tools.look.results[0].{place}")
    with pytest.raises(BadScenario, match=line_with(*where, *facts.split("; "))):
        load_or_fail([path])


def test_a_tool_that_takes_arguments_without_a_name_may_show_any(tmp_path: Path) -> None:
    path = tmp_path / "refers.yaml"
    path.write_text(
        REFERRING.format(result="{result: {$argument: other}}", more=", additionalProperties: true")
    )
    (scenario,) = load_or_fail([path])
    assert run_agent_scenario(scenario, "hardened").jobs["main"].answer == "done"
