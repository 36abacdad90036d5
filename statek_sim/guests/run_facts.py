"""Collects the data for metrics from runs without a trace: clients of a fake LLM server, and cassettes."""

from __future__ import annotations

from decimal import Decimal
from itertools import groupby
from typing import Final

from statek_sim.agent.protection import CallSeen, TurnSeen, Watch, observe
from statek_sim.observed_calls import Call, Trajectory
from statek_sim.telemetry.facts import COMPLETED, GUEST_LACKS, NO_PRICES, Cost, Outcome, TaskFacts

_NOT_SEEN: Final = {
    **GUEST_LACKS,
    "failed_calls": "a server receives tool results, but not whether they are errors",
    "step_seconds": "the steps of a server's client have no virtual time",
}
_OPEN: Final = (None, "calls")
"""Stop reasons for an unfinished `Trajectory`."""


def trajectory_facts(
    run: Trajectory, *, name: str = "run", group: str = "all", cost: Cost | None = None
) -> TaskFacts:
    """Return a run's data as one task: steps, calls, loops, tokens and cost.

    A step is one model answer. The task is completed if the last answer called no tool, and failed if the last request
    failed. `unmeasured` lists the data that neither requests nor responses contain.
    """
    completed = run.stop == "answer" or run.stop in COMPLETED
    outcome: Outcome = "completed" if completed else "open" if run.stop in _OPEN else "failed"
    total, why = _cost(run, cost)
    return TaskFacts(
        run=name,
        group=group,
        job="main",
        ended=0.0,
        outcome=outcome,
        stop=run.stop,
        steps=run.usage.turns,
        calls=len(run.calls),
        loops=_loops(run),
        tokens=run.usage.tokens,
        subtasks=int(completed),
        cost=total,
        unmeasured=_NOT_SEEN | ({} if why is None else {"cost": why}),
    )


def _cost(run: Trajectory, cost: Cost | None) -> tuple[Decimal | None, str | None]:
    """Return the total cost, or None and the reason if an answer has no price."""
    if cost is None:
        return None, NO_PRICES
    total = Decimal(0)
    for request in run.requests:
        if request.error is None:
            paid = cost(request.model, request.prompt_tokens, request.completion_tokens)
            if paid is None:
                return None, f"no price for model {request.model!r}"
            total += paid
    return total, None


def _loops(run: Trajectory) -> int:
    watch, found = Watch(), 0
    for _, calls in groupby(run.calls, lambda call: call.turn):
        watch, loop = observe(watch, TurnSeen(calls=[_seen(call) for call in calls]))
        found += loop is not None
    return found


def _seen(call: Call) -> CallSeen:
    return CallSeen(tool=call.name, arguments={"": repr(call.arguments)}, result=call.result or "")
