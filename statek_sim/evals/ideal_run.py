"""Run an eval's ideal plan in the engine-agent's loop, and prove the eval: the plan passes, wrong scripts fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.effects import Parts
from statek_sim.agent.harness import AgentHarness
from statek_sim.errors import BadInput
from statek_sim.evals.ideal_plan import Plan, PlannedCall
from statek_sim.evals.outcome import Record
from statek_sim.evals.players import Agent, Assignment
from statek_sim.evals.prompt_calls import SeenCall, shown_calls
from statek_sim.evals.scenario import EvalScenario, Instance
from statek_sim.evals.verdict import Verdict, judge
from statek_sim.evals.world import ToolError
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, ScriptedCall, text, tool_calls
from statek_sim.providers.scripted import FunctionLLM

MODEL: Final = "gpt-4o"


def replies(plan: Plan) -> Callable[[ChatRequest], Reply]:
    """Return a function that answers a request with what the plan says is next, by what the request shows."""

    def reply(request: ChatRequest) -> Reply:
        step = plan.next(shown_calls(request.messages))
        if isinstance(step, str):
            return text(step)
        return tool_calls(*[ScriptedCall(call.name, call.arguments) for call in step])

    return reply


def planned(plan: Plan) -> FunctionLLM:
    """Return a provider that does what a plan says."""
    return FunctionLLM(replies(plan))


def follower(plan: Plan) -> Agent:
    """Return an agent that does what a plan says by calling the tools it is given, without any harness."""

    def work(job: Assignment) -> str:
        seen: list[SeenCall] = []
        while not isinstance(step := plan.next(seen), str):
            seen += [_called(job, call) for call in step]
        return step

    return work


def _called(job: Assignment, call: PlannedCall) -> SeenCall:
    try:
        result = job.tools[call.name](**call.arguments)
    except ToolError as error:
        return SeenCall(name=call.name, arguments=call.arguments, error=str(error))
    return SeenCall(name=call.name, arguments=call.arguments, result=result)


def played(instance: Instance, plan: Plan | None = None) -> Record:
    """Return what comes of a plan (None: the ideal one) in the loop, without any part that would help it."""
    provider = planned(instance.plan if plan is None else plan)
    approving = instance.approving()
    harness = AgentHarness(
        provider,
        tools=instance.tools,
        prompt=instance.prompt,
        model=MODEL,
        max_iterations=instance.scenario.max_iterations,
        parts=Parts(gates=() if approving is None else (approving,)),
        person=None if approving is None else approving.person,
        rescue=False,
        protection=False,
        context=None,
    )
    run = harness.run(instance.task)
    return instance.world.record(run.answer, run.stop or "nothing", model_calls=len(provider.requests))


IDEAL = "ideal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What came of one script on one seed; `script` is "ideal", or the id of a wrong one."""

    script: str
    seed: int
    verdict: Verdict
    model_calls: int

    @property
    def as_it_should(self) -> bool:
        """Whether the ideal script passed with all points, or a wrong one failed."""
        if self.script == IDEAL:
            return self.verdict.passed and self.verdict.score == 1.0
        return not self.verdict.passed


def failure_line(scenario: EvalScenario, proof: Proof) -> str:
    """Return what is wrong with a script that did not come out as it should, with the eval's place."""
    reason = "passes, which it should not" if proof.verdict.passed else "; ".join(proof.verdict.problems)
    place = f"{scenario.path}:{scenario.line}: eval {scenario.id!r}"
    return f"{place}: script {proof.script!r} on seed {proof.seed}: {reason}"


def tells_apart(scenario: EvalScenario, seeds: Iterable[int] = (0,)) -> list[str]:
    """Return what is wrong with an eval's scripts, a line each; nothing where it tells right from wrong."""
    return [failure_line(scenario, proof) for proof in proofs(scenario, seeds) if not proof.as_it_should]


def proofs(scenario: EvalScenario, seeds: Iterable[int]) -> Iterator[Proof]:
    """Play an eval's scripts in the loop of engine agent, on these seeds; `BadInput` for one that cannot be played."""
    for seed in seeds:
        for script in (IDEAL, *[wrong.id for wrong in scenario.text.wrong]):
            instance = scenario.instance(seed)
            plan = instance.plan if script == IDEAL else instance.plan_of(script)
            try:
                record = played(instance, plan)
            except BadInput as error:
                raise BadInput(
                    f"{scenario.path}:{scenario.line}: eval {scenario.id!r}: script {script!r} on seed {seed}: {error}"
                ) from None
            yield Proof(
                script=script, seed=seed, verdict=judge(instance, record), model_calls=record.model_calls
            )
