"""A model that does what a plan says, and a run of it in the engine-agent's loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from statek_sim.agent.effects import Parts
from statek_sim.agent.harness import AgentHarness
from statek_sim.evals.ideal_plan import Plan, PlannedCall
from statek_sim.evals.models.shown import shown_calls
from statek_sim.evals.players import Agent, Assignment
from statek_sim.evals.record import Record
from statek_sim.evals.scenario import Instance
from statek_sim.evals.seen import SeenCall
from statek_sim.evals.world import ToolError
from statek_sim.providers.function import FunctionLLM
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, ScriptedCall, text, tool_calls

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
