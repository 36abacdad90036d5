"""Renders limit reports as text and JSON: stops with other token counts, a calibrated limit, a preset's headroom.

Each JSON document includes its schema name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from rich.text import Text

from statek_sim.analysis.calibration import Calibration
from statek_sim.analysis.limits import OTHERS, Comparison, JobStops, Judgement, LimitNeed, Sensitivity
from statek_sim.harness.limits import LimitName
from statek_sim.harness.usage_basis import UsageBasis
from statek_sim.reporting.report_text import ROWS
from statek_sim.reporting.table import Rows, Table, paragraph
from statek_sim.reporting.text_format import NOTHING, count, plural, share, signed
from statek_sim.values import JSON, as_json, record

MAIN: Final = "main"
"""The job name in a scenario that declares no jobs; tables omit it."""

_SHORT: Final = {
    LimitName.MAX_TURNS: "turns",
    LimitName.MAX_EXCEPTIONS: "exceptions",
    LimitName.MAX_CONSECUTIVE_EXCEPTIONS: "consecutive",
    LimitName.MAX_TOKEN_USAGE: "tokens",
}
_FURTHER: Final = (
    "turns and tokens: how many more (+) or fewer (-) there would have been; "
    "+0: the same number, but a different ending"
)
_HEADS: Final = {
    **_SHORT,
    LimitName.MAX_EXCEPTIONS: "except.",
    LimitName.MAX_CONSECUTIVE_EXCEPTIONS: "consec.",
}


def stops_lines(jobs: Sequence[JobStops], *, width: int) -> Iterator[Text]:
    """Yield the number of false and late stops, and each job that ends differently with another token count."""
    yield Text("Stops with the byte estimate", "bold")
    yield from paragraph(
        "false stop: stopped by the byte estimate, but not yet by tokens; late stop: the opposite",
        width,
        "dim",
    )
    counts = ("preset", "count", "jobs", "same", "false", "late", "unknown")
    yield from Table(head=counts, rows=_stop_counts(jobs), left=("count",)).lines(width=width)
    different = [job for job in jobs if job.differs]
    if different:
        yield Text()
        yield Text("Jobs that would have ended differently", "bold")
        yield from paragraph(_FURTHER, width, "dim")
        heads = ("scenario", "ended by", "call", "on tokens", "turns", "tokens")
        yield from Table(head=heads, rows=_stops(different), left=("ended by",)).lines(width=width)


def calibration_lines(found: Calibration, *, width: int, every: bool = False) -> Iterator[Text]:
    """Yield the calibrated limit, the spread of limits across scenarios, and the jobs it stops."""
    yield Text(f"STATEK_MAX_TOKEN_USAGE={found.limit}", "bold green")
    kept = "every scenario" if found.keep == 1 else f"{found.keep:.0%} of scenarios"
    yield from paragraph(
        f"keeps the {found.basis} tokens of each job within {count(found.budget)} in {kept}", width
    )
    limits = sorted(scenario.limit for scenario in found.scenarios if scenario.limit is not None)
    projected = sum(scenario.projected for scenario in found.scenarios)
    spread = (
        f"scenario limits: smallest {count(limits[0])}, median {count(round(median(limits)))}, largest "
        f"{count(limits[-1])}"
    )
    if projected:
        reach = "reaches" if projected == 1 else "reach"
        spread += (
            f"; {projected} of {plural(len(found.scenarios), 'scenario')} never {reach} the budget; those limits "
            "are projected from the scenario's own rate"
        )
    yield from paragraph(spread, width, "dim")
    rows = _scenario_limits(found)
    shown = rows if every else rows[:ROWS]
    yield Text()
    yield Text("The strictest scenarios" if len(shown) < len(rows) else "The scenarios", "bold")
    heads = ("scenario", "limit", "", "estimate", found.basis.value)
    yield from Table(head=heads, rows=shown).lines(width=width)
    yield Text()
    yield from _stopped(found, width)


def sensitivity_lines(found: Sequence[Sensitivity], *, width: int) -> Iterator[Text]:
    """Yield a line per scenario: the limit that stops it or comes closest, and the value needed for each limit."""
    preset = ", ".join(sorted({scenario.preset for scenario in found}))
    yield Text(f"Headroom under {preset}", "bold")
    yield from paragraph(
        "for each limit, the smallest value that stops no job, with the other limits unchanged; -: no value is enough; "
        "! above the preset's, = set by the scenario; binds: the limit that stopped it or that it comes closest to",
        width,
        "dim",
    )
    heads = ("scenario", "binds", *_HEADS.values())
    rows = [_sensitivity(scenario) for scenario in found]
    yield from Table(head=heads, rows=rows, left=("binds",)).lines(width=width)
    yield Text()
    stopped = sum(scenario.stopped for scenario in found)
    yield from paragraph(
        f"{stopped} of {plural(len(found), 'scenario')} stopped. For limits set by the preset, "
        "none is stopped at: " + ", ".join(_largest(found, limit) for limit in LimitName),
        width,
    )


def _bare(scenario: str) -> str:
    """Return a scenario's name without the profile, which is the same throughout the table."""
    return scenario.partition("[")[0]


def _job(scenario: str, job: str) -> str:
    return _bare(scenario) if job == MAIN else f"{_bare(scenario)} {job}"


def _stop_counts(jobs: Iterable[JobStops]) -> Rows:
    by_preset: dict[str, list[JobStops]] = {}
    for job in jobs:
        by_preset.setdefault(job.preset, []).append(job)
    return [
        (preset, basis.value, count(len(members)), *_judged(members, basis))
        for preset, members in by_preset.items()
        for basis in OTHERS
    ]


def _judged(jobs: Iterable[JobStops], basis: UsageBasis) -> Sequence[str]:
    found = [
        comparison.judgement for job in jobs for comparison in job.comparisons if comparison.basis is basis
    ]
    return [count(found.count(judgement)) for judgement in Judgement]


def _stops(jobs: Iterable[JobStops]) -> Rows:
    return [
        (
            _job(job.scenario, job.job),
            _stop(job.ending.stop),
            count(job.ending.calls),
            f"{comparison.judgement}, {comparison.basis}",
            _further(comparison),
            signed(comparison.tokens),
        )
        for job in jobs
        for comparison in job.comparisons
        if comparison.judgement in (Judgement.FALSE_STOP, Judgement.LATE_STOP)
    ]


def _further(comparison: Comparison) -> str:
    return signed(comparison.turns) + (" or more" if comparison.at_least else "")


def _scenario_limits(found: Calibration) -> Rows:
    ranked = sorted(
        found.scenarios,
        key=lambda scenario: (-1 if scenario.limit is None else scenario.limit, scenario.scenario),
    )
    return [
        (
            _bare(scenario.scenario),
            "none keeps it" if scenario.limit is None else count(scenario.limit),
            "projected" if scenario.projected else "",
            count(scenario.estimate),
            count(scenario.usage),
        )
        for scenario in ranked
    ]


def _stopped(found: Calibration, width: int) -> Iterator[Text]:
    needless = [stop for stop in found.stopped if stop.needlessly]
    if not found.stopped:
        yield from paragraph("The limit stops none of these jobs.", width)
    else:
        yield Text("Stopped jobs", "bold")
        rows = [
            (
                _job(stop.scenario, stop.job),
                f"{stop.calls} of {stop.of}",
                count(stop.usage),
                "within the budget without it" if stop.needlessly else "",
            )
            for stop in found.stopped
        ]
        heads = ("scenario", "calls", found.basis.value, "")
        yield from Table(head=heads, rows=rows[:ROWS]).lines(width=width)
        more = f", {len(rows) - ROWS} not shown" if len(rows) > ROWS else ""
        price = f"; {len(needless)} would have stayed within the budget without it" if needless else ""
        yield from paragraph(f"{plural(len(rows), 'job')}{more}{price}", width, "dim")
    if found.over:
        yield from paragraph(f"still over the budget: {', '.join(found.over)}", width, "bold red")
    if found.unknown:
        yield from paragraph(
            f"left out because of calls without reported usage: {plural(len(found.unknown), 'scenario')}",
            width,
            "dim",
        )


def _sensitivity(scenario: Sensitivity) -> Sequence[str]:
    by_limit = {need.limit: need for need in scenario.needs}
    return (
        _bare(scenario.scenario),
        _binds(scenario, by_limit),
        *(_need(by_limit[limit]) for limit in LimitName),
    )


def _binds(scenario: Sensitivity, needs: Mapping[LimitName, LimitNeed]) -> str:
    """Return the limit that stopped the scenario, or the limit it comes closest to with the percentage used."""
    if scenario.binds is None:
        return NOTHING
    need, name = needs[scenario.binds], _SHORT[scenario.binds]
    return f"stop: {name}" if scenario.stopped else f"{name} {share(need.needed or 0, need.value or 0)}"


def _need(need: LimitNeed) -> str:
    needed = NOTHING if need.needed is None else count(need.needed)
    return f"{needed}{'' if need.enough else '!'}{'=' if need.stated else ''}"


def _largest(found: Sequence[Sensitivity], limit: LimitName) -> str:
    """Return the smallest value of a limit that stops no scenario, ignoring scenarios that set the limit themselves."""
    needs = [
        need.needed
        for scenario in found
        for need in scenario.needs
        if need.limit is limit and not need.stated
    ]
    if None in needs:
        return f"{limit.value} (no value is enough)"
    known = [needed for needed in needs if needed is not None]
    return f"{limit.value} {count(max(known))}" if known else f"{limit.value} (every scenario sets its own)"


def _stop(stop: str | None) -> str:
    """Return how a job ended, with short names for limits."""
    names = {limit.value: f"{name} limit" for limit, name in _SHORT.items()}
    return "not ended" if stop is None else names.get(stop, stop)


def stops_json(jobs: Sequence[JobStops]) -> dict[str, JSON]:
    """Return how each job ends with each token count, as `statek-sim/stops@1`."""
    return {"schema": "statek-sim/stops@1", "jobs": as_json(jobs)}


def calibration_json(found: Calibration) -> dict[str, JSON]:
    """Return the calibrated limit and its basis as `statek-sim/calibration@1`."""
    return {"schema": "statek-sim/calibration@1", **record(found)}


def sensitivity_json(found: Sequence[Sensitivity]) -> dict[str, JSON]:
    """Return the value that each scenario needs for every limit, as `statek-sim/sensitivity@1`."""
    return {"schema": "statek-sim/sensitivity@1", "scenarios": as_json(found)}
