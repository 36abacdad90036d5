"""Runs your own agent, or the plan, on an eval. An agent is a callable that takes an assignment and returns an answer.

def agent(job: Assignment) -> str: ...

verdict = judge(instance, play(instance, agent))

An agent is evaluated by the calls logged in the world, never by its own report.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from statek_sim.agent.effects import Parts
from statek_sim.agent.harness import AgentHarness
from statek_sim.errors import BadInput
from statek_sim.evals.ideal_plan import Plan, shown_calls
from statek_sim.evals.model_simulator import TOKENIZER_OF
from statek_sim.evals.outcome import FINAL, Record
from statek_sim.evals.scenario import EvalScenario, Instance
from statek_sim.evals.verdict import Verdict, judge
from statek_sim.evals.world import Approving, ToolError, World
from statek_sim.guests.guest import GuestLoop, run_really
from statek_sim.providers.protocol import ChatRequest, Provider
from statek_sim.providers.script import Reply, ScriptedCall, text, tool_calls
from statek_sim.providers.scripted import FunctionLLM
from statek_sim.values import JSON, ToolSpec
from statek_sim.virtual_loop import run_in

MOST_CALLS: Final = 200
"""The default limit on an agent's tool calls."""


class TooManyCalls(Exception):
    """Raised when an agent makes more tool calls than allowed, and again for every further call."""


class WorldTool:
    """A world's tool for use by any agent: call it with keyword arguments, and it returns a string.

    A call raises `ToolError`, with a message for the model, if the tool refuses or fails, or if a person refuses the
    call.
    """

    def __init__(self, name: str, spec: ToolSpec, calls: Calls) -> None:
        self.name = self.__name__ = name
        self.spec = spec
        function: Any = spec["function"]
        self.description: str = function["description"]
        self.__doc__ = self.description
        self.parameters: Mapping[str, JSON] = function["parameters"]
        self._calls = calls

    def __call__(self, **arguments: Any) -> str:
        """Call the tool and return its result."""
        return self._calls.call(self.name, arguments)


class Calls:
    """Passes an agent's calls to a world, counts them, and asks a person about calls that need approval."""

    def __init__(self, world: World, approving: Approving | None, most: int) -> None:
        self._world = world
        self._approving = approving
        self._left = most
        self.over = False

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return a call's result; raises `ToolError` if it failed, or `TooManyCalls` beyond the limit."""
        if self._left <= 0:
            self.over = True
            raise TooManyCalls("this agent has made more tool calls than allowed")
        self._left -= 1
        if self._approving is not None:
            decision = self._approving.allows(name, arguments)
            if decision.kind == "refused":
                raise ToolError(f"a person refused: {decision.text}")
        return self._world.call(name, arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """An agent's access to its model: the server's address, the base URL for OpenAI clients, a key and a model name.

    OpenAI, Anthropic and Gemini clients that read environment variables need none of these.
    """

    url: str
    openai_url: str
    api_key: str
    model: str


NO_MODEL: Final = ModelAccess(url="", openai_url="", api_key="", model="")
"""Model access for an agent that brings its own model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """An agent's input: the task, the system prompt (may be empty), the tools keyed by name, and its model's address.

    A tool takes keyword arguments and returns the text for the model; results other than strings are JSON.
    """

    task: str
    prompt: str
    tools: Mapping[str, WorldTool]
    llm: ModelAccess = NO_MODEL


Agent = Callable[[Assignment], str | Awaitable[str]]
"""A function or coroutine function that returns the final answer."""


def play(
    instance: Instance,
    agent: Agent,
    *,
    most_calls: int = MOST_CALLS,
    time: Literal["virtual", "real"] = "virtual",
    llm: ModelAccess = NO_MODEL,
) -> Record:
    """Run an agent on an instance of an eval, and return the record of the run.

    A coroutine runs in `virtual` time, where sleeping is instant and sockets are unavailable, or in `real` time. If the
    agent raises an exception, or returns something other than a string, the record has no answer; `BadInput` is
    re-raised.
    """
    calls = Calls(instance.world, instance.approving(), most_calls)
    tools = {tool.name: WorldTool(tool.name, tool.spec, calls) for tool in instance.tools}
    assignment = Assignment(task=instance.task, prompt=instance.prompt, tools=tools, llm=llm)
    answer: object = None
    try:
        answer = agent(assignment)
        if inspect.isawaitable(answer):
            waiting = _awaited(answer)
            answer = run_in(GuestLoop(), waiting) if time == "virtual" else run_really(waiting)
        stop = FINAL if isinstance(answer, str) else f"not a string: {type(answer).__name__}"
    except BadInput:
        raise
    except Exception as error:  # noqa: BLE001  # a user's agent
        stop = f"error: {type(error).__name__}: {error}"
    if calls.over:
        stop = "calls"
    final = answer if isinstance(answer, str) and stop == FINAL else None
    return instance.world.record(final, stop)


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


def coroutine_of(tool: WorldTool) -> Callable[..., Coroutine[Any, Any, str]]:
    """Return a tool as a coroutine function that returns errors as `Error: ...`, as the built-in agent does."""

    async def call(**arguments: Any) -> str:
        try:
            return tool(**arguments)
        except ToolError as error:
            return f"Error: {error}"

    call.__name__ = tool.name
    call.__doc__ = tool.description
    return call


# -- the ideal plan as a player -------------------------------------------------------------------------------

MODEL: Final = TOKENIZER_OF
"""The agent's model name, whose tokenizer is also used for the simulated model's window."""


def replies(plan: Plan) -> Callable[[ChatRequest], Reply]:
    """Return a function that answers a request with the plan's next action, given the calls in the request."""

    def reply(request: ChatRequest) -> Reply:
        step = plan.next(shown_calls(request.messages))
        if isinstance(step, str):
            return text(step)
        return tool_calls(*[ScriptedCall(call.name, call.arguments) for call in step])

    return reply


def planned(plan: Plan) -> FunctionLLM:
    """Return a provider that follows a plan."""
    return FunctionLLM(replies(plan))


def harness_of(instance: Instance, provider: Provider, **settings: Any) -> AgentHarness:
    """Return a harness for an instance, with a person who approves calls; `settings` are passed to `AgentHarness`."""
    approving = instance.approving()
    return AgentHarness(
        provider,
        tools=instance.tools,
        prompt=instance.prompt,
        model=MODEL,
        max_iterations=instance.scenario.max_iterations,
        parts=Parts(gates=() if approving is None else (approving,)),
        person=None if approving is None else approving.person,
        **settings,
    )


def played(instance: Instance, plan: Plan | None = None) -> Record:
    """Run a plan (by default, the ideal one) in the agent loop with all protections off; return the record."""
    provider = planned(instance.plan if plan is None else plan)
    harness = harness_of(instance, provider, rescue=False, protection=False, context=None)
    run = harness.run(instance.task)
    return instance.world.record(run.answer, run.stop or "nothing", model_calls=len(provider.requests))


IDEAL: Final = "ideal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A script's result on one seed; `script` is "ideal", or the id of an incorrect script."""

    script: str
    seed: int
    verdict: Verdict
    model_calls: int

    @property
    def as_it_should(self) -> bool:
        """Whether the ideal script passed with all points, or an incorrect script failed."""
        if self.script == IDEAL:
            return self.verdict.passed and self.verdict.score == 1.0
        return not self.verdict.passed


def failure_line(scenario: EvalScenario, proof: Proof) -> str:
    """Return a message, with the eval's file and line number, about a script that did not pass or fail as expected."""
    reason = "passes, but should fail" if proof.verdict.passed else "; ".join(proof.verdict.problems)
    place = f"{scenario.path}:{scenario.line}: eval {scenario.id!r}"
    return f"{place}: script {proof.script!r} on seed {proof.seed}: {reason}"


def tells_apart(scenario: EvalScenario, seeds: Iterable[int] = (0,)) -> list[str]:
    """Return a message for each script with an unexpected verdict; empty if the check tells good from bad scripts."""
    return [failure_line(scenario, proof) for proof in proofs(scenario, seeds) if not proof.as_it_should]


def proofs(scenario: EvalScenario, seeds: Iterable[int]) -> Iterator[Proof]:
    """Run all of an eval's scripts in the built-in agent on these seeds; raises `BadInput` if a script cannot run."""
    for seed in seeds:
        for script in (IDEAL, *[wrong.id for wrong in scenario.wrong]):
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
