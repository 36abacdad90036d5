"""The changes from one side to the other, grouped by the subject of the rule that causes them.

Probes measure what a preset allows on each side: they are small jobs that continue until the harness stops them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.compare.changes import (
    Change,
    Resized,
    Side,
    Stop,
    comparable,
    differing_rules,
    find_changes,
    find_stops,
    told,
)
from statek_sim.compare.matrix import Verdict, VersionMatrix
from statek_sim.harness.limits import LIMITS
from statek_sim.scenario.schema import Scenario, ScenarioText
from statek_sim.suite.listing import ProfileRule, profile_rules
from statek_sim.trace import JobStopped, UserMessage
from statek_sim.values import JSON, as_json, record

OTHER: Final = "Other rules"

_RULES_OF: Final = {
    "How long a job may run": ("limit_extension", "difficulty_extends_tokens"),
    "What counts as an exception": ("console_error_belongs_to", "harness_error_counts"),
    "Dialogs": ("message_may_end_chat_log",),
    "Warmup": ("as_tool_binds_assignment",),
    "Waiting for futures": ("waiting_job_is_dormant", "warmup_wait_pass_seconds"),
    "Subtask notifications and results": (
        *("plain_notifications", "notifications_before_request"),
        *("notification_takes_console_position", "subtasks_get_context"),
    ),
    "Error handlers": ("latest_input_is_bound",),
    "Parallel jobs": ("prints_stay_apart",),
    "How values are stored": ("storage",),
    "Provider settings": ("settings_before_names",),
    "Tools offered to the model, and request size": (
        *("internal_tools_offered", "union_hints_in_schema"),
        "system_tools",
    ),
}
SUBJECTS: Final = {rule: subject for subject, rules in _RULES_OF.items() for rule in rules}
"""Each rule's subject, in report order."""


def subject_of(causes: Sequence[str]) -> str:
    """Return the subject of a change with these causes: the first of their subjects in report order."""
    return min((SUBJECTS.get(cause, OTHER) for cause in causes), key=[*_RULES_OF, OTHER].index, default=OTHER)


_KINDS: Final = ("stops", "releases", "stops earlier", "stops later", "ends otherwise")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that differs between the sides: its values, and its description with the source."""

    name: str
    before: str
    after: str
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """All changes under one subject. `rules` are the subject's own rules; a change may also have other causes."""

    subject: str
    rules: tuple[Rule, ...]
    changes: tuple[Change, ...]
    resized: tuple[Resized, ...]
    stops: tuple[Stop, ...]

    def stop_counts(self) -> dict[str, int]:
        """Return how many jobs the upgrade stops, releases, stops earlier and so on under the preset."""
        counts = {kind: sum(stop.kind == kind for stop in self.stops) for kind in _KINDS}
        return {kind: count for kind, count in counts.items() if count}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """Two sides and the changes between them. `unseen` are differing rules that no scenario shows."""

    before: Side
    after: Side
    preset: str
    scenarios: int
    answers: tuple[Answer, ...]
    sections: tuple[Section, ...]
    unseen: tuple[Rule, ...]

    @property
    def changed(self) -> int:
        """The number of scenarios that behave differently."""
        return sum(len(section.changes) for section in self.sections)

    @property
    def resized(self) -> int:
        """The number of scenarios that differ only in the number of bytes sent."""
        return sum(len(section.resized) for section in self.sections)


def upgrade_between(
    before: Side,
    after: Side,
    scenarios: Sequence[Scenario],
    preset: str,
) -> Upgrade:
    """Run every scenario that applies to either side on both sides, and return the changes."""
    chosen = [scenario for scenario in scenarios if comparable(scenario, before, after)]
    changes, resized = find_changes(chosen, before, after)
    stops = find_stops(chosen, before, after, preset)
    rules = _rules(before, after)
    seen = {cause for group in (changes, resized, stops) for found in group for cause in found.causes}
    return Upgrade(
        before=before,
        after=after,
        preset=preset,
        scenarios=len(chosen),
        answers=tuple(answers(before, after, preset)),
        sections=tuple(_sections(rules, changes, resized, stops)),
        unseen=tuple(rule for name, rule in rules.items() if name not in seen),
    )


def _rules(before: Side, after: Side) -> dict[str, Rule]:
    docs: dict[str, ProfileRule] = {rule.name: rule for rule in profile_rules()}
    return {
        name: Rule(
            name=name,
            before=str(getattr(before.rules, name)),
            after=str(getattr(after.rules, name)),
            doc=docs[name].doc,
        )
        for name in differing_rules(before.rules, after.rules)
    }


def _sections(
    rules: dict[str, Rule], changes: Sequence[Change], resized: Sequence[Resized], stops: Sequence[Stop]
) -> Iterator[Section]:
    causes = {
        *(change.causes for change in changes),
        *(found.causes for found in resized),
        *(stop.causes for stop in stops),
    }
    named = {name for names in causes for name in names}
    for subject in (*_RULES_OF, OTHER):
        section = Section(
            subject=subject,
            rules=tuple(
                rule for name, rule in rules.items() if subject_of((name,)) == subject and name in named
            ),
            changes=tuple(change for change in changes if subject_of(change.causes) == subject),
            resized=tuple(found for found in resized if subject_of(found.causes) == subject),
            stops=tuple(stop for stop in stops if subject_of(stop.causes) == subject),
        )
        if section.rules or section.changes or section.resized or section.stops:
            yield section


MOST: Final = 100
"""A probe's maximum answer."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about a preset: a scenario, and a function that reads the answer from its run's record.

    The answer is None if the harness never stopped the job.
    """

    question: str
    scenario: Mapping[str, Any]
    answer: Callable[[RunRecord], int | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with both sides' answers; None means more than `MOST`."""

    question: str
    before: int | None
    after: int | None


def answers(before: Side, after: Side, preset: str) -> Iterator[Answer]:
    """Run every probe on both sides under a preset and yield the answers."""
    for number, probe in enumerate(PROBES):
        text = ScenarioText.model_validate(
            {"id": f"probe-{number}", "title": probe.question, **probe.scenario}
        )
        scenario = Scenario.placed(
            text, text.jobs, suite="compare", path=Path(__file__), line=1, file_digest=""
        )
        old, new = (run_scenario(scenario, side.rules, preset=preset) for side in (before, after))
        yield Answer(probe.question, probe.answer(old), probe.answer(new))


def _stopped(record: RunRecord) -> bool:
    return record.jobs["main"].stop in LIMITS


def _follow_ups(record: RunRecord) -> int | None:
    """Return the number, from 1, of the first follow-up message at which the harness stopped the chat."""
    messages = 0
    for event in record.events:
        if isinstance(event, UserMessage):
            messages += 1
        elif isinstance(event, JobStopped) and event.reason in LIMITS:
            return messages - 1
    return None


def _llm_calls(record: RunRecord) -> int | None:
    return record.jobs["main"].llm_calls if _stopped(record) else None


_CHAT: Final[dict[str, Any]] = {
    # Before 1.2.6 a dialog needs warmup.
    "agents": {
        "chat": {"prompt": "You answer.", "dialog": True, "chat_style": "DIRECT", "warmup": 'print("ready")'}
    },
    "jobs": {"main": {"agent": "chat", "message": "Message 1"}},
    "script": {"chat": ({"text": "Here you are.", "repeat": "forever"},)},
    "events": tuple(
        {"at": 10.0 * number, "push": "main", "message": f"Message {number + 1}"}
        for number in range(1, MOST + 1)
    ),
}


def _worker(code: str, **agent: object) -> dict[str, Any]:
    return {
        "agents": {"worker": {"prompt": "You work.", "chat_style": "MARKDOWN", **agent}},
        "jobs": {"main": {"agent": "worker"}},
        "script": {"worker": ({"code": code, "repeat": MOST}, {"code": "exit('end')"})},
    }


PROBES: Final = (
    Probe("follow-up messages until the harness stops the chat", _CHAT, _follow_ups),
    Probe("LLM calls by a job that never finishes", _worker("print('still at it')"), _llm_calls),
    Probe(
        "approximate tokens in 5 LLM calls with all of STATEK's tools offered",
        {
            **_worker("print('still at it')", tools_scope="ALL"),
            # The fifth reply ends the job; the preset does not matter here.
            "script": {"worker": ({"code": "print('still at it')", "repeat": 4}, {"code": "exit('end')"})},
            "limits": {"max_turns": None, "max_token_usage": None},
        },
        lambda record: record.usage.approx_tokens,
    ),
    Probe("LLM calls by a job whose code always fails", _worker("1 / 0"), _llm_calls),
    Probe(
        "LLM calls by a job whose code is silent and fails every third time",
        {
            **_worker("x = 1"),
            "script": {
                "worker": (
                    *({"code": "1 / 0" if number % 3 == 2 else "x = 1"} for number in range(MOST)),
                    {"code": "exit('end')"},
                )
            },
        },
        _llm_calls,
    ),
)
"""The probes: how long chats and jobs may run."""


SCHEMA = "statek-sim/compare@1"


def comparison_json(
    upgrade: Upgrade | None,
    packages: Sequence[VersionMatrix],
) -> dict[str, JSON]:
    """Return the changes between the sides and how each release's package compares with the reference runtime."""
    return {
        "schema": SCHEMA,
        "upgrade": None if upgrade is None else _upgrade(upgrade),
        "versions": {matrix.version: _version(matrix) for matrix in packages},
    }


def _version(matrix: VersionMatrix) -> JSON:
    return {
        "scenarios": len(matrix.rows),
        "agree": matrix.count(Verdict.AGREE),
        "varies": matrix.count(Verdict.VARIES),
        "differ": matrix.count(Verdict.DIFFERS),
        "verdicts": {row.scenario: str(row.verdict) for row in matrix.rows},
    }


def _upgrade(report: Upgrade) -> JSON:
    return {
        "before": record(report.before, "name", "profile"),
        "after": record(report.after, "name", "profile"),
        **record(report, "preset", "scenarios", "changed", "resized", "answers"),
        "subjects": [_section(section) for section in report.sections],
        "unseen_rules": [_rule(rule) for rule in report.unseen],
    }


def _section(section: Section) -> JSON:
    return {
        "subject": section.subject,
        "rules": [_rule(rule) for rule in section.rules],
        "jobs_under_preset": as_json(section.stop_counts()),
        "changes": [_change(change) for change in section.changes],
        "resized": [_resized(resized) for resized in section.resized],
        "stops": [_stop(stop) for stop in section.stops],
    }


def _rule(rule: Rule) -> JSON:
    return {**record(rule, "name", "before", "after"), "says": rule.doc}


def _found(found: Change | Resized | Stop) -> dict[str, JSON]:
    """Return a finding's suite, scenario and causes."""
    return {"suite": found.scenario.suite, "scenario": found.scenario.id, **record(found, "causes")}


def _change(change: Change) -> JSON:
    return {
        **_found(change),
        "title": change.scenario.title,
        "told": [record(aspect, "about", "before", "after") for aspect in told(change)],
        "differences": [
            {"field": difference.field, "before": difference.reference, "after": difference.installed}
            for difference in change.differences
        ],
    }


def _resized(resized: Resized) -> JSON:
    return {**_found(resized), "bytes_before": resized.before, "bytes_after": resized.after}


def _stop(stop: Stop) -> JSON:
    return {
        **_found(stop),
        **record(stop, "job", "kind"),
        "before": {"end": stop.before or None, "llm_calls": stop.calls_before},
        "after": {"end": stop.after or None, "llm_calls": stop.calls_after},
    }
