"""The sentences that the terminal and the Markdown report share."""

from __future__ import annotations

from typing import Final

from statek_sim.reporting.model import AS_WRITTEN, Offender, Report, Summary
from statek_sim.reporting.text_format import count, plural
from statek_sim.scenario.statements import Coverage

ESTIMATE: Final = "estimate: bytes // 4, as the harness counts; measured: tokens, by a tokenizer"
"""What the two columns are."""

_NAMED: Final = 10
"""Statements, or scenarios, named before the rest is only counted."""


def verdict(overall: Summary) -> str:
    """Return the outcome of all scenarios: `178 passed, 2 failed`."""
    if not overall.total:
        return "no scenarios ran"
    return f"{count(overall.passed)} passed" + (f", {count(overall.failed)} failed" if overall.failed else "")


def settings(report: Report) -> str:
    """Return what the scenarios ran under."""
    noun = "profile" if len(report.profiles) == 1 else "profiles"
    preset = f"{'presets' if report.preset == AS_WRITTEN else 'preset'} {report.preset}"
    seed = f"seeds {AS_WRITTEN}" if report.seed is None else f"seed {report.seed}"
    return f"{noun} {', '.join(report.profiles) or 'none'}; {preset}; {seed}"


def under_a_preset(report: Report) -> str:
    """Say what failures under a preset mean that the scenarios were not written for; empty where there is none."""
    if report.preset == AS_WRITTEN or not report.overall.failed:
        return ""
    return (
        f"failures show what the preset {report.preset} would change: scenarios expect what happens under their own; "
        f"whether it is good enough says `statek-sim gate {report.preset}`"
    )


def unchecked(report: Report) -> str:
    """Name what expects nothing, and so passes whatever happens; empty when everything expects something."""
    if not (found := report.unchecked):
        return ""
    verbs = ("expects", "passes") if len(found) == 1 else ("expect", "pass")
    return (
        f"{plural(len(found), 'scenario')} {verbs[0]} nothing and {verbs[1]} whatever happens: {_listed(found)}; "
        "`statek-sim run PATH --accept` writes what happened"
    )


def explanation(offender: Offender) -> str:
    """Return both numbers and why they differ."""
    usage = offender.row.usage
    return (
        f"the harness thinks {plural(usage.approx_tokens, 'token')}, the model saw "
        f"{count(usage.measured_tokens)}, counted with {usage.tokenizer}: {offender.why}"
    )


def unmeasured(report: Report) -> str:
    """Say how many runs have nothing to compare; empty when all have."""
    number = sum(row.usage.ratio is None for row in report.rows)
    return f"{plural(number, 'run')} without LLM usage" if number else ""


def proxies(report: Report) -> str:
    """Warn of measurements with a tokenizer that is not the model's own; empty when there are none."""
    if "(proxy)" not in report.overall.usage.tokenizer:
        return ""
    return "proxy: measured with a stand-in, the model's own tokenizer is not known"


def statements(coverage: Coverage) -> list[str]:
    """Return how many normative statements are proven, and which are not."""
    proven = len(coverage.proven)
    lines = [f"{count(proven)} of {plural(proven + len(coverage.missing), 'statement')} proven"]
    if coverage.missing:
        lines.append(f"no scenario proves {_listed(coverage.missing)}")
    if coverage.unknown:
        pairs = tuple(f"{statement} (in {scenario})" for scenario, statement in coverage.unknown)
        lines.append(f"no such statement: {_listed(pairs)}")
    return lines


def _listed(names: tuple[str, ...]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")
