"""A stateful machine for your own agents and tools: the model says something, the world moves, workers die."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from statek_sim.errors import BadInput
from statek_sim.explore.subject import Subject
from statek_sim.scenario.deviation import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.strategies.scripts import EXIT, Written, replies, scenario_of
from statek_sim.strategies.variations import faults, kills

STEP: float = 10.0
"""Virtual seconds between two things that the world does."""


def machine(
    subject: Subject, *code: st.SearchStrategy[str], last: Written | None = None
) -> type[RuleBasedStateMachine]:
    """Return a machine whose rules make a history, which is played and checked when it ends.

    `subject` is a scenario with your agents, tools, world and invariants; the script of its first job is what the rules
    make: a reply of statements that `code` draws, a message to the job, the outcome of a future of the world, a request
    that fails, a worker that dies. `last` is the reply that has no end.

    A history that breaks an invariant is made small by Hypothesis, and the file of the smallest is what is left. Put
    `machine(...).TestCase` into a module of tests.
    """
    _refuse_agents(subject)
    job, futures = next(iter(subject.scenario.jobs)), tuple(subject.scenario.world.futures)
    ending: Written = {**(EXIT if last is None else last), "repeat": "forever"}

    class AgentMachine(RuleBasedStateMachine):
        """What has been said and done so far."""

        def __init__(self) -> None:
            super().__init__()
            self.said: list[Written] = []
            self.events: list[Written] = []
            self.deviations: list[Deviation] = []

        @precondition(lambda self: bool(code))
        @rule(reply=replies(*code) if code else st.nothing())
        def the_model_says(self, reply: Written) -> None:
            self.said.append(reply)

        @rule(message=st.sampled_from(("And now?", "")))
        def somebody_writes(self, message: str) -> None:
            self._happens({"push": job, "message": message})

        @precondition(lambda self: bool(futures))
        @rule(future=st.sampled_from(futures or ("",)), value=st.sampled_from(("granted", None, [1, 2])))
        def a_future_resolves(self, future: str, value: Any) -> None:
            self._happens({"resolve": future, "value": value})

        @rule(fault=faults(job))
        def a_request_fails(self, fault: Deviation) -> None:
            self.deviations.append(fault)

        @precondition(lambda self: sum(deviation.action == "kill" for deviation in self.deviations) < 2)
        @rule(kill=kills())
        def the_worker_dies(self, kill: Deviation) -> None:
            self.deviations.append(kill)

        def _happens(self, event: Written) -> None:
            self.events.append({"at": STEP * (1 + len(self.events)), **event})

        def teardown(self) -> None:
            made = _with(subject.scenario, job, [*self.said, ending], self.events)
            subject.like(made).check(self.deviations)

    AgentMachine.__name__ = AgentMachine.__qualname__ = f"machine_of_{subject.scenario.id.replace('-', '_')}"
    # Everything else is the profile's that is loaded; two bugs at once would write two files and name neither last.
    AgentMachine.TestCase.settings = settings(
        deadline=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck)
    )
    return AgentMachine


def _refuse_agents(subject: Subject) -> None:
    if subject.scenario.engine != "statek":
        raise BadInput(
            f"scenario {subject.scenario.id!r}: a machine makes histories of engine statek; of engine agent draw "
            "`deviations(subject)`"
        )


def _with(scenario: Scenario, job: str, script: list[Written], events: list[Written]) -> Scenario:
    """Return the scenario with another script for one of its jobs, and events beside its own."""
    keep = {"suite", "path", "line", "file_digest", "expect", "expect_in", "proves", "deviations", "violates"}
    text = scenario.model_dump(mode="json", exclude_unset=True, exclude=keep)
    text["script"] = {**text.get("script", {}), f"job:{job}": script}
    text["events"] = [*text.get("events", []), *events]
    return scenario_of(text, profile=scenario.profiles[0])
