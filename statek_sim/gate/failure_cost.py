"""What a runaway job uses before it ends, and what one crash adds to a scenario under a preset.

For crashes, the scenario's worker dies at every distinct place, once each.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from statek_sim import progress
from statek_sim.backends.call_log import AnsweredCall, billed
from statek_sim.backends.record import RunRecord
from statek_sim.errors import BadInput, BadScenario
from statek_sim.explore import plan
from statek_sim.explore.variation import Undisturbed, undisturbed, varied
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.verdict import Burnt, CrashAdded, CrashPlace
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Profile, Scenario
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
            "policy without within_cost and max_crash_cost"
        )
    return cost


def crash_added(
    scenario: Scenario, profile: Profile, preset: GatedPreset, prices: PriceList | None
) -> CrashAdded:
    """Return the most that one crash adds; what a run used before a script said no more counts, too.

    Raises `BadScenario` for one of engine agent, and for a model that has no price.
    """
    where = f"{scenario.path}:{scenario.line}: scenario {scenario.id!r}"
    if scenario.engine != "statek":
        raise BadScenario(
            f"{where}: what a crash adds is judged for engine statek only; leave this scenario out of the rule's select"
        )
    try:
        return _added(scenario.model_copy(update={"preset": preset.runs_as}), profile, prices)
    except BadScenario:
        raise
    except BadInput as error:
        raise BadScenario(f"{where}: {error}") from None


def replay_command(
    scenario: Scenario,
    profile: Profile,
    preset: GatedPreset,
    place: CrashPlace,
    prices: PriceList | None = None,
) -> str:
    """Return the command that plays one crash again, and says what it costs by the same `prices`."""
    words = ["statek-sim", "explore", str(scenario.path), "--select", scenario.id, "--profile", profile]
    priced = [] if prices is None or prices.folder is None else ["--prices", str(prices.folder)]
    return shlex.join([*words, "--preset", preset.name, "--kill", place.number, *priced])


def _added(scenario: Scenario, profile: Profile, prices: PriceList | None) -> CrashAdded:
    base, _ = undisturbed(scenario, profile)
    tokens, cost, _ = _spent(base, (), prices)
    kills = plan.kills(base)
    most, dearest, unknown = (0, CrashPlace()), (Decimal(), CrashPlace()), 0
    for kill in kills:
        progress.afresh()
        used, paid, known = _spent(base, (kill,), prices)
        place = CrashPlace(kill.kill, kill.silent, kill.what)
        # Of equal ones the first: the order of kills is that of the run.
        most = max(most, (used - tokens, place), key=_amount)
        dearest = max(dearest, (paid - cost, place), key=_amount)
        unknown += not known
    return CrashAdded(
        places=len(kills),
        unknown=unknown,
        tokens=most[0],
        tokens_at=most[1],
        cost=None if prices is None else dearest[0],
        cost_at=dearest[1],
    )


def _amount(found: tuple[int | Decimal, CrashPlace]) -> int | Decimal:
    return found[0]


def _spent(
    base: Undisturbed, deviations: Sequence[Deviation], prices: PriceList | None
) -> tuple[int, Decimal, bool]:
    """Return measured tokens and cost of a run, and whether the script said all that its jobs asked for."""
    with varied(base, deviations) as variation:
        calls: Sequence[AnsweredCall] = () if prices is None else variation.calls
        paid = sum((cost_of(call, prices) for call in calls if prices is not None), Decimal())
        return variation.tokens, paid, variation.known
