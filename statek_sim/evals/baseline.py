"""A baseline of runs: what was right before must stay right, or the turn at which it went another way is shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.evals.arms import Arm
from statek_sim.evals.experiment import Experiment
from statek_sim.evals.models.profile import Profile
from statek_sim.evals.outcome import Outcome
from statek_sim.evals.statistics.paired import ALPHA, mcnemar

SCHEMA: Final = "statek-sim/evals-baseline@1"
SHOWN: Final = 10
"""Scenarios that are told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a baseline knows of one run: whether it was right, and a digest of each turn."""

    passed: bool
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Runs by arm, scenario and seed, and what they were made of. `parts` are those of each arm."""

    model: str
    profile: str
    parts: Mapping[str, tuple[str, ...]]
    runs: Mapping[tuple[str, str, int], Kept]

    def seeds_of(self, arm: str, scenario: str) -> int:
        """Return how many seeds, from 0, it has of a scenario in an arm."""
        return next(seed for seed in count() if (arm, scenario, seed) not in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What came of holding runs against a baseline."""

    failed: bool
    lines: tuple[str, ...]


def profile_digest(profile: Profile) -> str:
    """Return a digest of a profile: another model makes other runs."""
    return hashlib.blake2b(repr(profile).encode(), digest_size=8).hexdigest()


def baseline_text(experiment: Experiment, outcomes: Sequence[Outcome]) -> str:
    """Return the baseline of an experiment as text, a line per scenario and arm."""
    runs: dict[str, dict[str, list[Any]]] = {arm.name: {} for arm in experiment.arms}
    for one in outcomes:
        digests = " ".join(turn.digest for turn in one.turns)
        runs[one.arm].setdefault(one.scenario, []).append([int(one.passed), digests])
    head = {
        "schema": SCHEMA,
        "model": experiment.profile.name,
        "profile": profile_digest(experiment.profile),
        "arms": {arm.name: list(arm.listed) for arm in experiment.arms},
    }
    return json.dumps({**head, "runs": runs}, indent=1) + "\n"


def read_baseline(path: Path) -> Baseline:
    """Return the baseline of a file; `BadInput` where it is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}, expected {SCHEMA!r}")
        return Baseline(
            model=str(document["model"]),
            profile=str(document["profile"]),
            parts={name: tuple(parts) for name, parts in document["arms"].items()},
            runs={
                (arm, scenario, seed): Kept(passed=bool(passed), turns=tuple(digests.split()))
                for arm, scenarios in document["runs"].items()
                for scenario, kept in scenarios.items()
                for seed, (passed, digests) in enumerate(kept)
            },
        )
    except OSError as error:
        raise BadInput(
            f"{path}: cannot be read: {error.strerror}; write one with --update-baseline"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: no baseline of evals: {error}; write one with --update-baseline") from None


def held_against(before: Baseline, experiment: Experiment, outcomes: Sequence[Outcome], *, name: str) -> Held:
    """Return whether success was lost since a baseline, and where; `BadInput` when it is about something else."""
    refuse_another(before, experiment.profile, experiment.arms, name=name)
    pairs = [(before.runs.get((one.arm, one.scenario, one.seed)), one) for one in outcomes]
    known = [(kept, one) for kept, one in pairs if kept is not None]
    if not known:
        raise BadInput(f"{name}: none of these runs is in the baseline; expected the same arms and evals")
    lost = [(kept, one) for kept, one in known if kept.passed and not one.passed]
    won = sum(one.passed and not kept.passed for kept, one in known)
    p = mcnemar(len(lost), won)
    failed = len(lost) > won
    lines = [*_told(lost), _verdict(len(known), len(lost), won, p, name)]
    if len(known) < len(outcomes):
        lines.append(
            f"{name}: it has nothing of {len(outcomes) - len(known)} more runs; --update-baseline adds them"
        )
    return Held(failed=failed, lines=tuple(lines))


def refuse_another(before: Baseline, profile: Profile, arms: Iterable[Arm], *, name: str) -> None:
    """Raise `BadInput` when a baseline is of another model, or of arms with other parts."""
    if (before.model, before.profile) != (profile.name, profile_digest(profile)):
        raise BadInput(
            f"{name}: it is of model {before.model!r} with profile {before.profile}, this is of "
            f"{profile.name!r} with {profile_digest(profile)}; expected the same, or --update-baseline"
        )
    for arm in arms:
        parts = before.parts.get(arm.name)
        if parts is not None and parts != arm.listed:
            raise BadInput(
                f"{name}: arm {arm.name!r} has {', '.join(parts)} there; expected {', '.join(arm.listed)}"
            )


def _told(lost: Sequence[tuple[Kept, Outcome]]) -> Iterator[str]:
    """Yield a line per scenario and arm that lost runs, with the first turn of one that went another way."""
    groups: dict[tuple[str, str], list[tuple[Kept, Outcome]]] = {}
    for kept, one in lost:
        groups.setdefault((one.arm, one.scenario), []).append((kept, one))
    for (arm, scenario), runs in list(groups.items())[:SHOWN]:
        kept, one = runs[0]
        seeds = ", ".join(str(run.seed) for _, run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        yield f"{scenario} [{arm}]: {len(runs)} right before and wrong now (seeds {seeds})"
        yield f"  seed {one.seed}: {_first_difference(kept, one)}"
        yield f"  {'; '.join(one.problems) or one.stop}"
    if len(groups) > SHOWN:
        yield f"and {len(groups) - SHOWN} more scenarios"


def _first_difference(kept: Kept, one: Outcome) -> str:
    for turn, digest in zip(one.turns, kept.turns, strict=False):
        if turn.digest != digest:
            did = (
                f"the model failed by {turn.failure} ({turn.how})"
                if turn.failure
                else "the model did it right"
            )
            stage = f", {turn.stage}" if turn.stage else ""
            nudged = f", corrected: {turn.nudged}" if turn.nudged else ""
            return f"turn {turn.number} is the first that differs: {did}{stage}{nudged}"
    if len(one.turns) != len(kept.turns):
        return f"ended after {len(one.turns)} turns ({one.stop}), before after {len(kept.turns)}"
    return "every turn says the same as before: the tools, the world or the check changed"


def _verdict(known: int, lost: int, won: int, p: float, name: str) -> str:
    sentence = f"{name}: of {known} runs {lost} are wrong that were right, {won} are right that were wrong (p {p:.4f})"
    if not lost and not won:
        return f"{sentence}: as before"
    if p <= ALPHA:
        return f"{sentence}: {'worse' if lost > won else 'better'}"
    return f"{sentence}: runs changed both ways" if lost and won else sentence
