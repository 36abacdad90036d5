"""Runs an experiment: every eval with every seed in every arm, with one simulated model.

The built-in harness runs in virtual time. A user's own agent runs in real time, with the model behind HTTP.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from statek_sim import trace as events
from statek_sim.agent.context.manager import ContextSettings
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.replies.nudges import LIMIT
from statek_sim.agent.step_enforcement import NO_STEPS
from statek_sim.backends.setup import attribute_at
from statek_sim.errors import BadInput, ProviderHTTPError, RunawayJob, Unanswered
from statek_sim.evals.arms import Arm
from statek_sim.evals.ideal_plan import call_key
from statek_sim.evals.model_simulator import SimulatedModel
from statek_sim.evals.outcome import Called, Count, Outcome, Record, Tokens, Turn
from statek_sim.evals.players import MODEL, Agent, ModelAccess, harness_of, play
from statek_sim.evals.profile import IDEAL, Profile
from statek_sim.evals.scenario import EvalScenario, Instance
from statek_sim.evals.verdict import judge
from statek_sim.executors.executor import Executor
from statek_sim.executors.pool import Killed
from statek_sim.providers.network import KEY, client_environment
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Chat, Reply, computed, fault
from statek_sim.server.exchange import Answer, Incoming, Streamed, Whole
from statek_sim.server.llm import FakeLLM
from statek_sim.server.llm_server import RunningServer
from statek_sim.usage.messages import completion_tokens, prompt_tokens
from statek_sim.usage.token_usage import BYTES_PER_TOKEN
from statek_sim.usage.tokenizers import TokenizerRegistry, tokenizer_for_model
from statek_sim.values import JSON

RESERVE: Final = 8
"""The reciprocal of the fraction of a context's budget that is reserved for the answer."""


@cache
def _tokenizers() -> TokenizerRegistry:
    return TokenizerRegistry()


class Played(NamedTuple):
    """A run's outcome, and the events in its trace."""

    outcome: Outcome
    events: Sequence[events.Event]


def run_one(scenario: EvalScenario, seed: int, arm: Arm, profile: Profile) -> Played:
    """Run the built-in harness once on an eval; equal arguments give equal results in any process."""
    instance = scenario.instance(seed)
    model = SimulatedModel(profile, seed, instance, tier=scenario.tier, window=scenario.context)
    harness = _harness(instance, arm, model)
    run: AgentRun | None = None
    try:
        run = harness.run(instance.task)
        ended = run.stop or "nothing"
    except (RunawayJob, Unanswered) as error:
        ended = type(error).__name__
    trace = harness.trace.events
    answer = None if run is None else run.answer
    outcome = outcome_of(
        instance,
        arm,
        instance.world.record(answer, ended, model_calls=len(model.turns)),
        tokens=_tokens(run),
        turns=tuple(_turns(trace, model.turns)),
        requests=len(model.turns),
        nudges=sum(isinstance(event, events.Nudged) for event in trace),
    )
    return Played(outcome, trace)


def _harness(instance: Instance, arm: Arm, model: SimulatedModel) -> AgentHarness:
    budget = instance.scenario.context
    return harness_of(
        instance,
        model,
        steps=instance.steps if arm.has("steps") else NO_STEPS,
        nudges=LIMIT if arm.has("nudges") else 0,
        rescue=arm.has("rescue"),
        protection=arm.has("protection"),
        context=context_settings(budget) if arm.has("context") and budget is not None else None,
        tokenizers=_tokenizers(),
    )


def context_settings(budget: int) -> ContextSettings:
    """Return the harness's context settings for an eval with this token budget."""
    return ContextSettings(budget=budget, reserve=budget // RESERVE)


# -- outcomes ---------------------------------------------------------------------------------------------------


def outcome_of(
    instance: Instance,
    arm: Arm,
    record: Record,
    *,
    tokens: Tokens,
    turns: tuple[Turn, ...],
    requests: int,
    nudges: int = 0,
    seconds: float | None = None,
) -> Outcome:
    """Return a run's outcome. `requests` is the number of model requests; `nudges` count as wasted."""
    verdict = judge(instance, record)
    return Outcome(
        scenario=instance.eval_id,
        seed=instance.seed,
        arm=arm.name,
        completed=verdict.completed,
        passed=verdict.passed,
        score=round(verdict.score, 6),
        stop=record.stop,
        model_calls=requests,
        calls=len(record.calls),
        wasted=_wasted(record.calls) + nudges,
        tokens=tokens,
        turns=turns,
        problems=verdict.problems[:3],
        answer=record.answer,
        seconds=seconds,
    )


def _tokens(run: AgentRun | None) -> Tokens:
    if run is None:
        return Tokens(Count(0, 0), Count(0, 0))
    usage = run.counters.usage
    return Tokens(
        measured=Count(usage.measured_prompt, usage.measured_completion),
        estimated=Count(usage.bytes_sent // BYTES_PER_TOKEN, usage.bytes_received // BYTES_PER_TOKEN),
    )


def _wasted(calls: Sequence[Called]) -> int:
    """Return the number of calls that failed, or that repeat a call already answered."""
    seen: set[str] = set()
    wasted = 0
    for call in calls:
        key = call_key(call.name, call.arguments)
        wasted += call.error is not None or key in seen
        if call.error is None:
            seen.add(key)
    return wasted


def _turns(trace: Sequence[events.Event], acts: Sequence[Turn]) -> Iterator[Turn]:
    """Yield a run's turns, with each turn's rescue stage, nudge and digest, read from the trace."""
    replies: dict[int, str] = {}
    stages: dict[int, str] = {}
    nudges: dict[int, str] = {}
    at = 0
    for event in trace:
        match event:
            case events.LLMReplied():
                at = event.turn
                replies[at] = f"{event.text}\x1f{'|'.join(event.tool_calls)}"
            case events.ReplyRead() if event.stages:
                stages[at] = f"read: {event.stages[-1]}" if event.calls else f"refused: {event.stages[-1]}"
            case events.Nudged():
                nudges[at] = event.failure
            case _:
                pass
    for act in acts:
        content = "\x1f".join(
            (replies.get(act.number, ""), stages.get(act.number, ""), nudges.get(act.number, ""))
        )
        yield act._replace(
            stage=stages.get(act.number),
            nudged=nudges.get(act.number),
            digest=hashlib.blake2b(content.encode(), digest_size=4).hexdigest(),
        )


BATCH: Final = 80
"""The approximate number of runs per batch, chosen so that sending a batch costs little compared with running it."""

Heard = Callable[[int, int], None]
"""Called with the number of finished runs and the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment's runs with a simulated model.

    Seeds are 0 to `seeds` - 1. All arms use the same random numbers for a given scenario and seed.
    """

    suite: tuple[EvalScenario, ...]
    model: Profile
    arms: tuple[Arm, ...]
    seeds: int

    def __post_init__(self) -> None:
        """Raise `BadInput` for an experiment without runs."""
        if self.seeds < 1:
            raise BadInput(f"--seeds {self.seeds}: expected 1 or more")
        if not self.suite:
            raise BadInput("no evals left to run")

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.suite) * self.seeds * len(self.arms)


def batches(
    experiment: Experiment,
) -> Iterator[tuple[EvalScenario, int, int, tuple[Arm, ...], Profile]]:
    """Yield `run_batch` arguments for each batch: a scenario, a range of seeds, the arms and the model."""
    size = max(1, BATCH // len(experiment.arms))
    for scenario in experiment.suite:
        for first in range(0, experiment.seeds, size):
            yield scenario, first, min(first + size, experiment.seeds), experiment.arms, experiment.model


def run_batch(
    scenario: EvalScenario, first: int, behind: int, arms: Sequence[Arm], model: Profile
) -> list[Outcome]:
    """Return a scenario's outcomes in all arms, for the seeds from `first` to `behind` - 1."""
    return [play_one(scenario, seed, arm, model).outcome for seed in range(first, behind) for arm in arms]


def play_one(scenario: EvalScenario, seed: int, arm: Arm, model: Profile) -> Played:
    """Execute a single run of an experiment, and return it with its full history."""
    profile = IDEAL if arm.ideal else model
    if arm.agent is not None:
        return Played(play_agent(scenario, seed, arm, arm.agent, profile), ())
    return run_one(scenario, seed, arm, profile)


def run_experiment(experiment: Experiment, executor: Executor, heard: Heard | None = None) -> list[Outcome]:
    """Return the outcomes of all runs, ordered by scenario, seed and arm; any executor gives the same result.

    `heard` is called with the number of finished runs and the total.
    """
    tasks = list(batches(experiment))
    outcomes: list[Outcome] = []
    for task, came in zip(tasks, executor.map(run_batch, tasks, prepare=_prepared), strict=True):
        if isinstance(came, Killed):
            raise BadInput(
                f"eval {task[0].id!r}, seeds from {task[1]}: {came}; the experiment has no result without these runs"
            )
        outcomes += came
        if heard is not None:
            heard(len(outcomes), experiment.runs)
    return outcomes


def _prepared() -> None:
    """Load the tokenizer's vocabulary, which every worker needs."""
    tokenizer_for_model(MODEL).tokenizer.count("a")


MOST_REQUESTS: Final = 100
"""The maximum number of model requests in a run; further requests get HTTP 400."""
TOO_MANY: Final = 400


def load_agent(name: str) -> Agent:
    """Import `module:attribute`; raises `BadInput` if it does not exist or is not callable."""
    found: Any = attribute_at("--agent", name)
    if not callable(found):
        raise BadInput(
            f"--agent {name}: expected a callable that takes an Assignment, got {type(found).__name__}"
        )
    agent: Agent = found
    return agent


def play_agent(scenario: EvalScenario, seed: int, arm: Arm, name: str, profile: Profile) -> Outcome:
    """Run the agent `name` (`module:attribute`) once with a simulated model, and return the outcome.

    The agent runs in this process and in real time. Its model is a fake server on loopback that supports the OpenAI,
    Anthropic and Gemini formats, with the same draws as for the built-in harness.
    """
    agent = load_agent(name)
    instance = scenario.instance(seed)
    model = SimulatedModel(profile, seed, instance, tier=scenario.tier, window=scenario.context)
    served = ServedModel(model)
    with served.running() as access:
        started = time.perf_counter()
        record = play(instance, agent, time="real", llm=access)
        seconds = time.perf_counter() - started
    return outcome_of(
        instance,
        arm,
        record,
        tokens=served.tokens,
        turns=served.turns,
        requests=served.requests,
        seconds=seconds,
    )


class ServedModel:
    """A simulated model behind HTTP. `requests` and `tokens` are the totals so far."""

    def __init__(self, model: SimulatedModel, *, most_requests: int = MOST_REQUESTS) -> None:
        self.requests = 0
        self._model = model
        self._most = most_requests
        self._llm = FakeLLM([computed(self._reply).forever()], models=(MODEL,))
        self._tokenizer = tokenizer_for_model(MODEL).tokenizer
        self._prompt = self._completion = self._sent = self._received = 0

    @contextmanager
    def running(self) -> Iterator[ModelAccess]:
        """Serve the model inside the block, with the clients' environment variables pointing to the server."""
        with RunningServer(self._answered) as server, _environment(client_environment(server.url)):
            yield ModelAccess(url=server.url, openai_url=f"{server.url}/v1", api_key=KEY, model=MODEL)

    @property
    def tokens(self) -> Tokens:
        """The number of tokens in all requests and answers."""
        return Tokens(
            measured=Count(self._prompt, self._completion),
            estimated=Count(self._sent // BYTES_PER_TOKEN, self._received // BYTES_PER_TOKEN),
        )

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The model's actions, one per request."""
        return tuple(turn._replace(number=number) for number, turn in enumerate(self._model.turns, 1))

    def _answered(self, request: Incoming) -> Answer:
        answer = self._llm.answer(request)
        self._sent += len(request.body)
        match answer:
            case Whole(body=body):
                self._received += len(body)
            case Streamed(frames=frames):
                self._received += sum(len(frame.data) for frame in frames)
            case _:
                pass
        return answer

    def _reply(self, request: ChatRequest) -> Reply:
        self.requests += 1
        if self.requests > self._most:
            return fault(TOO_MANY)
        try:
            reply = self._model.reply(request)
        except ProviderHTTPError as refusal:
            return fault(refusal.status)
        self._prompt += prompt_tokens(request.messages, request.tools, self._tokenizer)
        chat = reply.answer
        assert isinstance(chat, Chat), "a simulated model answers with text and calls"
        calls: list[JSON] = [
            {"function": {"name": call.name, "arguments": call.arguments}} for call in chat.calls
        ]
        self._completion += completion_tokens(chat.text, calls, self._tokenizer)
        # The reply may call a tool that was not offered, because that is one of the simulated mistakes.
        return reply.mistaken()


@contextmanager
def _environment(variables: dict[str, str | None]) -> Iterator[None]:
    """Set or unset environment variables inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
