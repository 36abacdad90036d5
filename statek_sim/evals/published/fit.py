"""From published counts to a profile: what the counts say is fitted, what they cannot say is assumed and says so."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Final

from statek_sim.evals.models.failures import FailureClass
from statek_sim.evals.models.fitting import Counted, FittedBeta, fit_beta, fit_share
from statek_sim.evals.models.profile import HEEDS, INVENTS, NATIVE, RENAMES, STAYS, UNREAD_CLASSES, Profile
from statek_sim.evals.models.rates import ClassRate, Origin, Rate
from statek_sim.evals.published.forge import SOURCE, Published

MALFORMED_SHARE: Final = 0.3
"""The part of replies without a readable call that meant to be one. Forge counts them together."""
SPLIT: Final = {
    FailureClass.EARLY_ANSWER: 1 - MALFORMED_SHARE,
    FailureClass.MALFORMED: MALFORMED_SHARE,
}

ASSUMED: Final = {
    FailureClass.WRONG_TOOL: 0.02,
    FailureClass.MISSING_ARGUMENT: 0.02,
    FailureClass.SKIPPED_STEP: 0.02,
    FailureClass.REPEATED_CALL: 0.02,
    FailureClass.LOOP: 0.01,
    FailureClass.CONTEXT_LOSS: 0.15,
}
"""Means of classes that the counts do not tell apart, for a model that is right in half of its bare runs."""

SPREAD: Final = 1.5
"""How alike scenarios are in what is assumed: a + b of the Beta; failures are systematic, so that it is small."""

WINDOW: Final = 32_768
LONG: Final = 2_048

IMPUTED: Final = (
    "right of those that ended; with the harness, how many of a scenario ended is imputed and not in n"
)
NO_RESCUE: Final = "completion with the harness, as if rescue had read no reply"
"""What the fit takes to be so, said in the labels."""

_UNSPLIT: Final = "assumed: no published count tells this class from others"
_DAMAGE: Final = {
    "cut": 1.0,
    "unclosed": 2.0,
    "trailing_comma": 2.0,
    "single_quotes": 1.0,
    "bare_keys": 1.0,
    "prose": 3.0,
    "fence": 3.0,
    "function": 1.0,
    "lost_opening": 2.0,
}


def fit_profile(counts: Published, *, name: str, title: str, dialect: str) -> Profile:
    """Return the profile of a model whose counts are published."""
    unread = _unread(counts)
    values = {tier: fit_beta(_valued(counts, tier)) for tier in ("easy", "medium", "hard")}
    classes = [
        *(_unread_class(counts, unread, failure) for failure in UNREAD_CLASSES),
        *(_value_class(counts, tier, values[tier]) for tier in ("easy", "medium", "hard")),
        *_assumed(1 - sum(counts.bare_correct) / counts.in_all),
    ]
    own_values = _own_values(counts, values)
    return Profile(
        name=name,
        title=title,
        model=counts.model,
        dialect=dialect,
        window=WINDOW,
        long_prompt=LONG,
        classes=tuple(classes),
        rates=_rates(counts, unread),
        damage=_DAMAGE,
        damage_origin=Origin(kind="assumed", source="no published count tells kinds of damage apart"),
        scenarios={
            scenario.name: {
                **{failure: SPLIT[failure] * unread.own[at] for failure in UNREAD_CLASSES},
                FailureClass.WRONG_ARGUMENT: own_values[at],
            }
            for at, scenario in enumerate(counts.scenarios)
        },
    )


def _unread(counts: Published) -> FittedBeta:
    """Fit how often a turn gives no readable call: it ends a bare run. Where tools fail by design nothing is known."""
    return fit_beta(_ended_bare(counts))


def _ended_bare(counts: Published) -> list[Counted]:
    return [
        Counted(0, 0, 0) if scenario.fails_first else Counted(completed, counts.runs, scenario.calls)
        for scenario, completed in zip(counts.scenarios, counts.bare_completed, strict=True)
    ]


def _unread_class(counts: Published, unread: FittedBeta, failure: FailureClass) -> ClassRate:
    """Return one of the two classes that are counted together."""
    source = f"{SOURCE}, bare completion; its split over two classes, {SPLIT[failure]:g} of it this one, is assumed"
    n = sum(count.runs for count in _ended_bare(counts))
    return ClassRate(
        failure=failure,
        a=unread.a,
        b=unread.b,
        share=SPLIT[failure],
        origin=Origin(kind="fitted", source=source, n=n),
    )


def _valued(counts: Published, tier: str | None) -> list[Counted]:
    """Return how many of the runs that ended were right, bare and with the harness."""
    found = []
    for at, scenario in enumerate(counts.scenarios):
        if tier is not None and scenario.tier != tier:
            found.append(Counted(0, 0, 0))
            continue
        right = counts.bare_correct[at] + counts.harness_correct[at]
        found.append(
            Counted(right, counts.bare_completed[at] + _ended_with_harness(counts, at), scenario.calls)
        )
    return found


def _ended_with_harness(counts: Published, at: int) -> int:
    """Impute how many runs of a scenario ended with the harness: as many as on average, which alone is published."""
    mean = round(counts.runs * counts.harness_completed_in_all / counts.in_all)
    return max(mean, counts.harness_correct[at])


def _own_values(counts: Published, fitted: dict[str, FittedBeta]) -> list[float]:
    return [fitted[scenario.tier].own[at] for at, scenario in enumerate(counts.scenarios)]


def _value_class(counts: Published, tier: str, fitted: FittedBeta) -> ClassRate:
    bare = zip(counts.scenarios, counts.bare_completed, strict=True)
    n = sum(completed for scenario, completed in bare if scenario.tier == tier)
    return ClassRate(
        failure=FailureClass.WRONG_ARGUMENT,
        a=fitted.a,
        b=fitted.b,
        tier=tier,  # type: ignore[arg-type]  # one of the three
        interval=fitted.interval,
        origin=Origin(kind="fitted", source=f"{SOURCE}, {IMPUTED}", n=max(n, 1)),
    )


def _assumed(weakness: float) -> Sequence[ClassRate]:
    """Return the classes that nothing is known of; a model that is wrong more often has more of each."""
    scale = 2 * weakness
    return [
        ClassRate(
            failure=failure,
            a=mean * scale * SPREAD,
            b=(1 - mean * scale) * SPREAD,
            origin=Origin(kind="assumed", source=_UNSPLIT.removeprefix("assumed: ")),
        )
        for failure, mean in ASSUMED.items()
    ]


def _rates(counts: Published, unread: FittedBeta) -> dict[str, Rate]:
    heeds, interval = fit_share(lambda share: _ended(counts, unread, share))
    guess = Origin(kind="assumed", source="nothing is published")
    fitted = Origin(kind="fitted", source=f"{SOURCE}, {NO_RESCUE}", n=counts.in_all)
    rates = [Rate(name=HEEDS, rate=heeds, interval=interval, origin=fitted)]
    rates += [
        Rate(name=name, rate=rate, origin=guess)
        for name, rate in ((STAYS, 0.8), (INVENTS, 0.3), (RENAMES, 0.5), (NATIVE, 0.2))
    ]
    return {rate.name: rate for rate in rates}


def _ended(counts: Published, unread: FittedBeta, heeds: float) -> float:
    """Return the log likelihood of all ends with the harness: a turn is lost when three corrections help nothing."""
    expected = 0.0
    for scenario, q in zip(counts.scenarios, unread.own, strict=True):
        lost = q * ((1 - heeds) * q) ** 3
        expected += (1 - lost) ** scenario.calls / len(counts.scenarios)
    expected = min(max(expected, 1e-9), 1 - 1e-9)
    return _log(counts.harness_completed_in_all, expected) + _log(
        counts.in_all - counts.harness_completed_in_all, 1 - expected
    )


def _log(times: int, chance: float) -> float:
    return times * log(chance)
