"""What a runaway job uses before it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from statek_sim.backends.call_log import AnsweredCall, billed
from statek_sim.backends.record import RunRecord
from statek_sim.errors import BadInput
from statek_sim.gate.verdict import Burnt
from statek_sim.trace import JobCreated, LLMReplied
from statek_sim.usage.pricing import PriceList


def burnt(record: RunRecord, goes_bad: Mapping[str, int], prices: PriceList | None) -> Burnt:
    """Return what jobs used from the turn on which they went bad, with all that they started from then on.

    A job that a bad job starts is bad from its own first turn. `BadInput` when a model has no price.
    """
    calls = list(_bad_calls(record, goes_bad))
    return Burnt(
        turns=len(calls),
        tokens=sum(call.usage.measured_tokens for call in calls),
        cost=None if prices is None else sum((cost_of(call, prices) for call in calls), Decimal()),
    )


def reached(record: RunRecord, goes_bad: Mapping[str, int]) -> tuple[str, ...]:
    """Return the jobs that came as far as the turn on which they go bad."""
    return tuple(name for name, turn in goes_bad.items() if len(_of_job(record, name)) >= turn)


def _bad_calls(record: RunRecord, goes_bad: Mapping[str, int]) -> Iterator[AnsweredCall]:
    first = {name: turn for name, turn in goes_bad.items() if name in record.jobs}
    first.update(dict.fromkeys(_started_by(record, first), 1))
    for name, turn in first.items():
        yield from _of_job(record, name)[turn - 1 :]


def _started_by(record: RunRecord, first: Mapping[str, int]) -> Iterator[str]:
    """Yield the jobs that bad jobs started after they went bad, and those that these started."""
    answered: dict[str, int] = {}
    bad = {name for name, turn in first.items() if turn == 1}
    for event in record.events:
        if isinstance(event, LLMReplied):
            answered[event.job] = answered.get(event.job, 0) + 1
            if answered[event.job] == first.get(event.job):
                bad.add(event.job)
        elif isinstance(event, JobCreated) and event.parent in bad:
            bad.add(event.job)
            yield event.job


def _of_job(record: RunRecord, name: str) -> Sequence[AnsweredCall]:
    return [call for call in record.calls if call.job == name]


def cost_of(call: AnsweredCall, prices: PriceList) -> Decimal:
    """Return what the provider bills for a call; `BadInput` for a model that has no price."""
    cost = billed(call, prices)
    if cost is None:
        raise BadInput(
            f"no price for model {call.model!r} of {call.provider}; expected a row for it in the price files, or a "
            "policy without within_cost"
        )
    return cost
