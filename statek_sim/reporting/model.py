"""The report on finished scenarios: outcomes, failures, and estimated and measured usage; and its JSON.

A report contains no real times or machine data, so equal results in any order give equal reports.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from statek_sim.backends.record import JobRecord, UsageRecord
from statek_sim.scenario.load import expectations_for
from statek_sim.scenario.schema import PROFILES
from statek_sim.suite.result import Outcome, ScenarioResult
from statek_sim.values import JSON, record

AS_WRITTEN: Final = "as written"
"""A report's preset name if each scenario ran under its own preset."""

_USAGE: Final = (
    *("bytes_sent", "bytes_received", "approx_tokens", "measured_tokens"),
    *("reported_tokens", "tokenizer"),
)
"""A report's usage fields: bytes, and the token counts estimated by STATEK, measured, and reported by the provider."""

_JOINED: Final = " + "
"""The separator between tokenizer labels in `UsageRecord.tokenizer`."""


def total_usage(usages: Iterable[UsageRecord]) -> UsageRecord:
    """Return the sum of usages, field by field; the estimates are rounded before adding, so the columns add up."""
    parts = [usage for usage in usages if is_used(usage)]
    reported = [part.reported_tokens for part in parts if part.reported_tokens is not None]
    labels = {label for part in parts for label in part.tokenizer.split(_JOINED)}
    return UsageRecord(
        bytes_sent=sum(part.bytes_sent for part in parts),
        bytes_received=sum(part.bytes_received for part in parts),
        approx_tokens=sum(part.approx_tokens for part in parts),
        measured_tokens=sum(part.measured_tokens for part in parts),
        reported_tokens=sum(reported) if reported else None,
        tokenizer=_JOINED.join(sorted(labels)) or "none",
    )


def is_used(usage: UsageRecord) -> bool:
    """Return whether a usage includes any LLM call."""
    return usage.bytes_sent + usage.bytes_received > 0


def usage_ratio(usage: UsageRecord) -> float | None:
    """Return the estimate divided by the measured tokens; None if there is nothing to compare."""
    return (
        usage.approx_tokens / usage.measured_tokens if usage.approx_tokens and usage.measured_tokens else None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result of one scenario under one profile. `jobs` are in creation order."""

    suite: str
    id: str
    engine: str
    profile: str
    outcome: Outcome
    digest: str
    turns: int
    jobs: tuple[JobRecord, ...]
    usage: UsageRecord

    @property
    def name(self) -> str:
        """`suite/scenario[profile]`."""
        return f"{self.suite}/{self.id}[{self.profile}]"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed scenario: its name, `suite/id[profile, ...]`, and a readable description that starts with the problem.

    `runs` are the names of the failed rows, one per profile.
    """

    name: str
    text: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The number of scenarios in one suite or all suites, how many passed, and their total usage."""

    name: str
    total: int
    passed: int
    usage: UsageRecord

    @property
    def failed(self) -> int:
        """The number of failed scenarios."""
        return self.total - self.passed


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report on a scenario run. Rows, suites and failures are sorted by suite, scenario and profile.

    If each scenario ran with its own preset and seed, `preset` is `AS_WRITTEN` and `seed` is None. `digest` covers the
    names and trace digests of all rows. `unchecked` lists scenarios without expectations, which always pass, as
    `suite/id` or `suite/id[profile]`.
    """

    profiles: tuple[str, ...]
    preset: str
    seed: int | None
    digest: str
    rows: tuple[Row, ...]
    suites: tuple[Summary, ...]
    overall: Summary
    failures: tuple[Failure, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def profile(self) -> str:
        """The profile names, joined by commas."""
        return ",".join(self.profiles) or "none"


def build_report(results: Sequence[ScenarioResult], *, preset: str | None, seed: int | None) -> Report:
    """Build the report on finished scenarios, given in any order.

    `preset` and `seed` are the values that replaced the scenarios' own, or None.
    """
    ordered = in_order(results)
    rows = tuple(_row(result) for result in ordered)
    return Report(
        profiles=tuple(sorted({row.profile for row in rows}, key=_profile_place)),
        preset=AS_WRITTEN if preset is None else preset,
        seed=seed,
        digest=_digest(rows),
        rows=rows,
        suites=tuple(
            _summary(suite, list(members)) for suite, members in groupby(rows, lambda row: row.suite)
        ),
        overall=_summary("all", rows),
        failures=_failures(ordered),
        unchecked=_unchecked(ordered),
    )


def _failures(ordered: Sequence[ScenarioResult]) -> tuple[Failure, ...]:
    """Return descriptions of the failed scenarios."""
    if all(result.outcome is Outcome.PASSED for result in ordered):
        return ()
    # Imported only after failures: it loads transcripts and differences.
    from statek_sim.suite.diff import failed_together, failure_text, name_of  # noqa: PLC0415

    return tuple(
        Failure(name_of(failed), failure_text(*failed), tuple(result.id for result in failed))
        for failed in failed_together(ordered)
    )


def _unchecked(ordered: Sequence[ScenarioResult]) -> tuple[str, ...]:
    """Return the scenarios without expectations. Scenarios without them under some profiles are listed per profile."""
    found: list[str] = []
    for _, runs in groupby(ordered, lambda result: (result.scenario.suite, result.scenario.id)):
        members = list(runs)
        empty = [run for run in members if not expectations_for(run.scenario, run.profile).model_fields_set]
        if len(empty) == len(members):
            found.append(f"{members[0].scenario.suite}/{members[0].scenario.id}")
        else:
            found += [run.id for run in empty]
    return tuple(found)


def in_order(results: Iterable[ScenarioResult]) -> list[ScenarioResult]:
    """Return results in report row order: by suite, scenario and profile."""
    return sorted(results, key=_place)


def _row(result: ScenarioResult) -> Row:
    jobs = tuple(result.record.jobs.values())
    return Row(
        suite=result.scenario.suite,
        id=result.scenario.id,
        engine=result.scenario.engine,
        profile=result.profile,
        outcome=result.outcome,
        digest=result.record.digest,
        turns=sum(job.turns for job in jobs),
        jobs=jobs,
        usage=result.record.usage,
    )


def _summary(name: str, rows: Sequence[Row]) -> Summary:
    return Summary(
        name=name,
        total=len(rows),
        passed=sum(row.outcome is Outcome.PASSED for row in rows),
        usage=total_usage(row.usage for row in rows),
    )


def _digest(rows: Sequence[Row]) -> str:
    """Return the hexadecimal SHA-256 of one `name digest` line per row."""
    lines = "".join(f"{row.name} {row.digest}\n" for row in rows)
    return hashlib.sha256(lines.encode("utf-8")).hexdigest()


def _place(result: ScenarioResult) -> tuple[str, str, tuple[int, str]]:
    return result.scenario.suite, result.scenario.id, _profile_place(result.profile)


def _profile_place(profile: str) -> tuple[int, str]:
    """Return a profile's sort position: the format's order, with unknown profiles last."""
    known: tuple[str, ...] = PROFILES
    return (known.index(profile) if profile in known else len(known)), profile


SCHEMA: Final = "statek-sim/report@1"

_LONGEST_EXIT: Final = 1_000_000
"""The maximum length of a job's exit value, because a list may contain the same string a thousand times."""
_LONGEST_INTEGER: Final = 14_000
"""The largest integer, in bits, that Python converts to decimal by default (4,300 digits)."""


def report_json(report: Report) -> dict[str, JSON]:
    """Return the report as JSON that follows `report_schema.json`; equal runs give equal objects.

    Scenarios are sorted by suite, id and profile; jobs are in creation order.
    """
    return {
        "schema": SCHEMA,
        **record(report, "profile", "preset", "seed", "digest"),
        "summary": record(report.overall, "total", "passed", "failed"),
        "scenarios": [_scenario(row) for row in report.rows],
    }


def _scenario(row: Row) -> JSON:
    return {
        **record(row, "suite", "id", "engine", "profile", "outcome", "digest"),
        "jobs": [_job(job) for job in row.jobs],
        "usage": record(row.usage, *_USAGE),
    }


def _job(job: JobRecord) -> JSON:
    return {
        **record(job, "name", "agent", "status", "stop", "error", "llm_calls", "turns", "exceptions"),
        "exit": _exit(job.exit),
        "usage": record(job.usage, *_USAGE),
    }


def _exit(value: JSON) -> JSON:
    """Return a job's exit value, or a note with its length if it is too long."""
    size = _characters(value)
    return writable(value) if size <= _LONGEST_EXIT else f"<{size} characters, too many to show here>"


def _characters(value: JSON) -> int:
    match value:
        case dict():
            return sum(len(key) + _characters(item) for key, item in value.items())
        case list():
            return sum(map(_characters, value))
        case str():
            return len(value)
        case _:
            return 0


def writable(value: JSON) -> JSON:
    """Return an agent's value in a form that JSON allows, because a job may exit with `nan` or a huge integer."""
    match value:
        case dict():
            return {key: writable(item) for key, item in value.items()}
        case list():
            return [writable(item) for item in value]
        case float() if not math.isfinite(value):
            return repr(value)
        case int() if value.bit_length() > _LONGEST_INTEGER:
            return f"integer of {value.bit_length()} bits"
        case _:
            return value
