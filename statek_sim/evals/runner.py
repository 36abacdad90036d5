"""One run: an eval for a seed, an arm and a simulated model, in the agent's own loop and in virtual time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from statek_sim import trace as events
from statek_sim.agent.context.manager import ContextSettings
from statek_sim.agent.effects import Parts
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.replies.nudges import LIMIT
from statek_sim.agent.step_enforcement import NO_STEPS
from statek_sim.errors import RunawayJob, Unanswered
from statek_sim.evals.arms import Arm
from statek_sim.evals.ideal_plan import call_key
from statek_sim.evals.outcome import Called, Count, Outcome, Record, Tokens, Turn
from statek_sim.evals.profile import Profile
from statek_sim.evals.scenario import EvalScenario, Instance
from statek_sim.evals.verdict import judge
from statek_sim.evals.weak_model import TOKENIZER_OF, WeakModel
from statek_sim.usage.tokenizers import TokenizerRegistry
from statek_sim.usage.totals import BYTES_PER_TOKEN

MODEL: Final = TOKENIZER_OF
"""The agent's model name: its budgets are counted with the same tokenizer as the simulated model's window."""
RESERVE: Final = 8
"""The share of a context's budget that is reserved for the answer."""


@cache
def _tokenizers() -> TokenizerRegistry:
    return TokenizerRegistry()


class Played(NamedTuple):
    """The outcome of a run, and its full history."""

    outcome: Outcome
    events: Sequence[events.Event]


def run_one(scenario: EvalScenario, seed: int, arm: Arm, profile: Profile) -> Played:
    """Return the outcome of one run; the same for the same four arguments, in any process."""
    instance = scenario.instance(seed)
    model = WeakModel(profile, seed, instance, tier=scenario.tier, window=scenario.context)
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


def _harness(instance: Instance, arm: Arm, model: WeakModel) -> AgentHarness:
    approving = instance.approving()
    budget = instance.scenario.context
    return AgentHarness(
        model,
        tools=instance.tools,
        steps=instance.steps if arm.has("steps") else NO_STEPS,
        prompt=instance.prompt,
        model=MODEL,
        max_iterations=instance.scenario.max_iterations,
        nudges=LIMIT if arm.has("nudges") else 0,
        parts=Parts(gates=() if approving is None else (approving,)),
        rescue=arm.has("rescue"),
        protection=arm.has("protection"),
        context=context_settings(budget) if arm.has("context") and budget is not None else None,
        person=None if approving is None else approving.person,
        tokenizers=_tokenizers(),
    )


def context_settings(budget: int) -> ContextSettings:
    """Return a harness's context settings for evals with this budget of tokens."""
    return ContextSettings(budget=budget, reserve=budget // RESERVE)


# -- what came of it --------------------------------------------------------------------------------------------


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
    """Return the outcome of a run with this record; `requests` of the model; `nudges` count as wasted."""
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
    """Count calls that failed or repeat an answered one."""
    seen: set[str] = set()
    wasted = 0
    for call in calls:
        key = call_key(call.name, call.arguments)
        wasted += call.error is not None or key in seen
        if call.error is None:
            seen.add(key)
    return wasted


def _turns(trace: Sequence[events.Event], acts: Sequence[Turn]) -> Iterator[Turn]:
    """Yield the turns of a run, each with its rescue stage and nudge."""
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
