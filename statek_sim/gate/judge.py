"""A rule's verdict on a scenario under a preset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from statek_sim.backends.record import RunRecord
from statek_sim.errors import BadInput, BadScenario
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.policy import Rule
from statek_sim.gate.trial import Trial, burnt, stops, unfinished
from statek_sim.gate.verdict import Burnt, LimitFigure, Stop, Verdict
from statek_sim.harness.limits import LIMITS, LimitName
from statek_sim.scenario.check import MAIN
from statek_sim.usage.pricing import PriceList


@dataclass(frozen=True, slots=True)
class _Finding:
    """The result for one requirement in a rule: whether it is met, a clause with the reason, and the deciding limit."""

    passed: bool
    words: str
    limit: LimitName | None = None


def judge(trial: Trial, preset: GatedPreset, rule: Rule, *, prices: PriceList | None = None) -> Verdict:
    """Return a rule's verdict on a scenario under a preset; `prices` are for rules about costs.

    Raises `BadScenario` if the scenario cannot test what the rule requires.
    """
    # `figures` comes first: it runs the scenario without limits, and `run` reuses that run if no limit is reached.
    figures = trial.figures(preset, needed=rule.must == "finish")
    record = trial.run(preset)
    spent = _burnt(trial, record, prices) if trial.scenario.goes_bad else None
    found = list(_findings(trial, preset, rule, figures, spent))
    # The reason lists failed requirements, or all requirements if none failed.
    findings = [finding for finding in found if not finding.passed] or found
    limit = next((finding.limit for finding in findings if finding.limit is not None), None)
    return Verdict(
        preset=preset.name,
        scenario=trial.name,
        tags=tuple(trial.scenario.tags),
        rule=rule.name,
        passed=all(finding.passed for finding in found),
        reason=f"`{preset.name}`: {'; '.join(finding.words for finding in findings)}",
        place=preset.place(limit),
        limit=limit,
        stop=next(iter(stops(record)), None),
        figures=figures,
        burnt=spent,
        leaked=record.leaked_claims,
    )


def _findings(
    trial: Trial, preset: GatedPreset, rule: Rule, figures: Sequence[LimitFigure], spent: Burnt | None
) -> Iterator[_Finding]:
    if rule.must == "finish":
        yield _finish(trial, preset, rule, figures)
    elif rule.must == "stop":
        yield _stop(trial, preset, rule, spent)
    if not rule.claims_leak:
        yield _claims(trial, trial.run(preset))


# -- healthy scenarios ---------------------------------------------------------------------------------------------


def _finish(trial: Trial, preset: GatedPreset, rule: Rule, figures: Sequence[LimitFigure]) -> _Finding:
    record = trial.run(preset)
    stopped = stops(record)
    if stopped:
        return _killed(trial, preset, stopped[0], figures)
    why_not = unfinished(record)
    if why_not is not None:
        return _Finding(False, f"`{trial.scenario.id}` does not finish: {why_not}")
    tight = [figure for figure in figures if _too_tight(figure, rule)]
    return _Finding(False, _tight(trial, rule, tight), tight[0].limit) if tight else _room(trial, figures)


def _killed(trial: Trial, preset: GatedPreset, stop: Stop, figures: Sequence[LimitFigure]) -> _Finding:
    sentence = f"stopped {_job(trial, stop)} on turn {stop.turn} by {stop.limit}"
    endless = unfinished(trial.free_run(preset))
    if endless is not None:
        return _Finding(False, f"{sentence}; without limits it does not finish either: {endless}", stop.limit)
    return _Finding(False, f"{sentence}; {_needs_clause(figures, stop.limit)}", stop.limit)


def _needs_clause(figures: Sequence[LimitFigure], limit: LimitName) -> str:
    """Return the clause `needs >= N` for the limit that stopped a scenario, and for other limits that are too small."""
    needed = next(figure.needed for figure in figures if figure.limit is limit)
    others = [
        f"{figure.limit} >= {figure.needed}"
        for figure in figures
        if figure.too_small and figure.limit is not limit
    ]
    also = f", and {' and '.join(others)}" if others else ""
    return f"needs >= {needed}{also}"


def _too_tight(figure: LimitFigure, rule: Rule) -> bool:
    left = figure.headroom_percent
    # A limit that the scenario sets does not depend on the preset.
    return not figure.stated and left is not None and left < rule.headroom(figure.limit)


def _tight(trial: Trial, rule: Rule, tight: Sequence[LimitFigure]) -> str:
    sentence = " and ".join(
        f"{figure.limit}={figure.value} leaves {figure.headroom_percent} % headroom; the required "
        f"{rule.headroom(figure.limit)} % needs >= "
        f"{with_headroom(figure.needed or 0, rule.headroom(figure.limit))}"
        for figure in tight
    )
    return f"`{trial.scenario.id}` finishes, but {sentence}"


def with_headroom(needed: int, percent: int) -> int:
    """Return the smallest limit that leaves `percent` percent of itself unused if `needed` is used."""
    return -(-needed * 100 // (100 - percent))


def _room(trial: Trial, figures: Sequence[LimitFigure]) -> _Finding:
    sentence = f"`{trial.scenario.id}` finishes"
    needed = [figure for figure in figures if figure.needed and figure.value is not None]
    if not needed:
        return _Finding(True, sentence)
    tightest = min(needed, key=lambda figure: figure.headroom_percent or 0)
    left = f"{tightest.headroom_percent} % of {tightest.limit}={tightest.value} left"
    return _Finding(True, f"{sentence} with {left}", tightest.limit)


# -- runaway scenarios ---------------------------------------------------------------------------------------------


def _stop(trial: Trial, preset: GatedPreset, rule: Rule, spent: Burnt | None) -> _Finding:
    record = trial.run(preset)
    stopped = stops(record)
    free = _running_free(trial, record)
    if not stopped or free is not None:
        return _Finding(False, f"did not stop `{trial.scenario.id}`: {free or 'no limit was reached'}")
    # Of several jobs that go bad, report the last one to be stopped.
    last = [*stopped[:1], *(stop for stop in stopped if stop.job in trial.scenario.goes_bad)][-1]
    sentence = f"stopped {_job(trial, last)} on turn {last.turn} by {last.limit}"
    if spent is None:
        return _Finding(True, sentence, last.limit)
    _require_reached(trial, preset)
    over = list(_over(rule, spent))
    burned = f"{sentence}; used since it went bad: {_amount(spent)}"
    return _Finding(not over, f"{burned}; allowed: {' and '.join(over)}" if over else burned, last.limit)


def _running_free(trial: Trial, record: RunRecord) -> str | None:
    """Return a clause about a job that no limit stopped although it should have, or None."""
    names = [name for name in trial.scenario.goes_bad if name in record.jobs]
    for name in names or record.jobs:
        job = record.jobs[name]
        if job.stop not in LIMITS and (names or job.status != "DONE"):
            end = (
                f"ends by {job.stop}"
                if job.stop
                else "goes on"
                if record.error is None
                else "is longer than its script"
            )
            return f"job `{name}` {end} after {_turns(job.turns)}, {_tokens(job.usage.measured_tokens)}"
    return None


def _require_reached(trial: Trial, preset: GatedPreset) -> None:
    """Raise `BadScenario` if no job goes bad even without limits, because then every preset would pass."""
    if trial.reaches(preset):
        return
    turns = ", ".join(f"{name}: {turn}" for name, turn in trial.scenario.goes_bad.items())
    raise BadScenario(
        f"{trial.scenario.place}: goes_bad {{{turns}}} is never reached, even without limits; expected a "
        "turn in the script"
    )


def _burnt(trial: Trial, record: RunRecord, prices: PriceList | None) -> Burnt:
    try:
        return burnt(record, trial.scenario.goes_bad, prices)
    except BadInput as error:
        place = f"{trial.scenario.path}:{trial.scenario.line}"
        raise BadScenario(f"{place}: scenario {trial.scenario.id!r}: {error}") from None


def _over(rule: Rule, spent: Burnt) -> Iterator[str]:
    """Yield each of the rule's maximums that the usage exceeds."""
    if rule.within_turns is not None and spent.turns > rule.within_turns:
        yield _turns(rule.within_turns)
    if rule.within_tokens is not None and spent.tokens > rule.within_tokens:
        yield _tokens(rule.within_tokens)
    if rule.most_cost is not None and (spent.cost is None or spent.cost > rule.most_cost):
        yield f"a cost of {rule.most_cost}"


def _amount(spent: Burnt) -> str:
    cost = "" if spent.cost is None else f" and a cost of {spent.cost:f}"
    return f"{_turns(spent.turns)}, {_tokens(spent.tokens)}{cost}"


# -- any scenario --------------------------------------------------------------------------------------------------


def _claims(trial: Trial, record: RunRecord) -> _Finding:
    leaked = record.leaked_claims
    if not leaked:
        return _Finding(True, f"`{trial.scenario.id}` leaks no claims")
    stopped = next(iter(stops(record)), None)
    after = "" if stopped is None else f" after {stopped.limit} stopped {_job(trial, stopped)}"
    claims = f"claim{'' if len(leaked) == 1 else 's'} {', '.join(leaked)}"
    return _Finding(False, f"`{trial.scenario.id}` leaks {claims}{after}", stopped.limit if stopped else None)


def _job(trial: Trial, stop: Stop) -> str:
    return f"`{trial.scenario.id}`" if stop.job == MAIN else f"job `{stop.job}` of `{trial.scenario.id}`"


def _turns(number: int) -> str:
    return f"{number:,} turn{'' if number == 1 else 's'}"


def _tokens(number: int) -> str:
    return f"{number:,} token{'' if number == 1 else 's'}"
