"""What changes from one side to the other, as values: each change under the subject of its rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.compare.changes import Change, Resized, Stop, find_changes, find_stops
from statek_sim.compare.probes import Answer, answers
from statek_sim.compare.sides import Side, comparable, differing_rules
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.listing import ProfileRule, profile_rules

HARNESS: Final = "How long a job may go on"
COUNTING: Final = "What counts as an exception"
WARMUP: Final = "Warmup"
WAITING: Final = "Waiting for futures"
DIALOGS: Final = "Dialogs"
NOTICES: Final = "Notifications and results of subtasks"
HANDLERS: Final = "Error handlers"
OFFERED: Final = "What the model is offered, and the size of requests"
PROVIDERS: Final = "Providers and their settings"
OTHER_JOBS: Final = "Jobs beside each other"
STORED: Final = "What a value becomes in the store"
OTHER: Final = "Other rules"

SUBJECTS: Final[dict[str, str]] = {
    "limit_extension": HARNESS,
    "difficulty_extends_tokens": HARNESS,
    "console_error_belongs_to": COUNTING,
    "harness_error_counts": COUNTING,
    "message_may_end_chat_log": DIALOGS,
    "as_tool_binds_assignment": WARMUP,
    "waiting_job_is_dormant": WAITING,
    "warmup_wait_pass_seconds": WAITING,
    "plain_notifications": NOTICES,
    "notifications_before_request": NOTICES,
    "notification_takes_console_position": NOTICES,
    "latest_input_is_bound": HANDLERS,
    "prints_stay_apart": OTHER_JOBS,
    "frames_of_a_wait": OTHER_JOBS,
    "storage": STORED,
    "settings_before_names": PROVIDERS,
    "internal_tools_offered": OFFERED,
    "union_hints_in_schema": OFFERED,
    "system_tools": OFFERED,
}
"""Every rule of a profile, the subjects in the order of the report."""


def subject_of(causes: Sequence[str]) -> str:
    """Return the heading for what these rules cause together: that of the first one in the report's order."""
    order = list(dict.fromkeys(SUBJECTS.values()))
    return min((SUBJECTS.get(cause, OTHER) for cause in causes), key=[*order, OTHER].index, default=OTHER)


_KINDS: Final = ("stops", "releases", "stops earlier", "stops later", "ends otherwise")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that differs between the sides: its answers, and the sentence with its source."""

    name: str
    before: str
    after: str
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Everything under one subject. `rules` are the subject's own; a change may have causes beyond them."""

    subject: str
    rules: tuple[Rule, ...]
    changes: tuple[Change, ...]
    resized: tuple[Resized, ...]
    stops: tuple[Stop, ...]

    def stop_counts(self) -> dict[str, int]:
        """Return how many jobs an upgrade stops, releases, stops earlier and so on, under the preset."""
        counts = {kind: sum(stop.kind == kind for stop in self.stops) for kind in _KINDS}
        return {kind: count for kind, count in counts.items() if count}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """Two sides, and what is different. `unseen`: rules that differ and that no scenario shows."""

    before: Side
    after: Side
    preset: str
    scenarios: int
    answers: tuple[Answer, ...]
    sections: tuple[Section, ...]
    unseen: tuple[Rule, ...]

    @property
    def changed(self) -> int:
        """How many scenarios behave differently."""
        return sum(len(section.changes) for section in self.sections)

    @property
    def resized(self) -> int:
        """How many scenarios only send another number of bytes."""
        return sum(len(section.resized) for section in self.sections)


def upgrade_between(
    before: Side,
    after: Side,
    scenarios: Sequence[Scenario],
    preset: str,
) -> Upgrade:
    """Run every scenario that says something about one of the sides on both, and return what changes."""
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
    for subject in dict.fromkeys((*SUBJECTS.values(), OTHER)):
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
