"""What one crash adds to a scenario under a preset: its worker dies at every distinct place, once each."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from decimal import Decimal

from statek_sim import progress
from statek_sim.backends.call_log import AnsweredCall
from statek_sim.errors import BadInput, BadScenario
from statek_sim.explore import plan
from statek_sim.explore.variation import Undisturbed, undisturbed, varied
from statek_sim.gate.burnt import cost_of
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.verdict import CrashAdded, CrashPlace
from statek_sim.scenario.deviation import Deviation
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.usage.pricing import PriceList


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
