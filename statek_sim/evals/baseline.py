"""Compares runs with a baseline: no eval may pass on fewer seeds than in the baseline."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from statek_sim.errors import BadInput
from statek_sim.evals.arms import Arm
from statek_sim.evals.experiment import Experiment
from statek_sim.evals.outcome import Outcome
from statek_sim.evals.profile import Profile
from statek_sim.evals.summary import mcnemar
from statek_sim.input_files import read_text

SCHEMA: Final = "statek-sim/evals-baseline@2"

Marks = Annotated[str, Field(pattern="^[01]+$")]
"""A string with one digit for each seed, starting at 0: 1 if the run passed, otherwise 0."""


class Baseline(BaseModel):
    """The runs that passed, keyed by arm and eval, with the model, a digest of its profile, and each arm's parts."""

    model_config = ConfigDict(strict=True)

    # `schema` is a method of pydantic's models.
    named: Literal["statek-sim/evals-baseline@2"] = Field(alias="schema")
    model: str
    profile: str
    arms: dict[str, list[str]]
    runs: dict[str, dict[str, Marks]]

    def seeds_of(self, arm: str, scenario: str) -> int:
        """Return the number of seeds for an eval in an arm; 0 if it is not in the baseline."""
        return len(self.runs.get(arm, {}).get(scenario, ""))

    @property
    def evals(self) -> tuple[str, ...]:
        """The ids of evals that have runs in any arm."""
        return tuple(dict.fromkeys(scenario for runs in self.runs.values() for scenario in runs))

    @property
    def size(self) -> int:
        """The number of runs in the baseline."""
        return sum(len(marks) for runs in self.runs.values() for marks in runs.values())

    def only(
        self,
        *,
        arms: Collection[str] | None = None,
        evals: Collection[str] | None = None,
        seeds: int | None = None,
    ) -> Baseline:
        """Return the part of the baseline for these arms, these evals and the seeds below `seeds`; None means all."""
        kept = {
            arm: {name: marks[:seeds] for name, marks in runs.items() if evals is None or name in evals}
            for arm, runs in self.runs.items()
            if arms is None or arm in arms
        }
        return self.model_copy(update={"runs": kept})


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The result of a comparison with a baseline, including lines to print."""

    failed: bool
    lines: tuple[str, ...]


def profile_digest(model: Profile) -> str:
    """Return a digest of a profile. It is part of a baseline because a different profile leads to different runs."""
    return hashlib.blake2b(repr(model).encode(), digest_size=8).hexdigest()


def baseline_text(experiment: Experiment, outcomes: Sequence[Outcome]) -> str:
    """Return an experiment's baseline as text, with one line per eval and arm."""
    runs: dict[str, dict[str, str]] = {arm.name: {} for arm in experiment.arms}
    for outcome in outcomes:
        of_arm = runs[outcome.arm]
        of_arm[outcome.scenario] = of_arm.get(outcome.scenario, "") + str(int(outcome.passed))
    document = {
        "schema": SCHEMA,
        "model": experiment.model.name,
        "profile": profile_digest(experiment.model),
        "arms": {arm.name: list(arm.listed) for arm in experiment.arms},
        "runs": runs,
    }
    return json.dumps(document, indent=1) + "\n"


def read_baseline(path: Path) -> Baseline:
    """Return the baseline in a file; raises `BadInput` if it is invalid."""
    remedy = "; write one with --update-baseline"
    try:
        return Baseline.model_validate_json(read_text(path, remedy=remedy))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise BadInput(f"{path}: not a baseline of evals: {place}: {first['msg']}{remedy}") from None


def held_against(before: Baseline, experiment: Experiment, outcomes: Sequence[Outcome], *, name: str) -> Held:
    """Compare runs with a baseline, failing if an eval passes on fewer seeds in an arm, or if a run is missing.

    Use `Baseline.only` to leave out runs that were deliberately not repeated. Raises `BadInput` if the baseline is for
    another model or other parts, or has none of these runs.
    """
    refuse_another(before, experiment.model, experiment.arms, name=name)
    now: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        now.setdefault((outcome.arm, outcome.scenario), []).append(outcome)
    marks_of = {(arm, name): marks for arm, runs in before.runs.items() for name, marks in runs.items()}
    pairs = {
        key: list(zip(marks_of[key], runs, strict=False)) for key, runs in now.items() if key in marks_of
    }
    if not pairs:
        raise BadInput(f"{name}: none of these runs is in the baseline; expected the same arms and evals")
    worse = [line for (arm, scenario), found in pairs.items() for line in _worse(arm, scenario, found)]
    sums = [
        _sum(f"{name} [{arm.name}]", [found for key, found in pairs.items() if key[0] == arm.name])
        for arm in experiment.arms
        if any(key[0] == arm.name for key in pairs)
    ]
    new = len(outcomes) - sum(map(len, pairs.values()))
    added = [f"{name}: the baseline lacks {new} of these runs; --update-baseline adds them"] if new else []
    missing = [
        f"{name}: {scenario} [{arm}] has {len(marks)} seeds, but {len(now.get((arm, scenario), ()))} were "
        "run; run all, choose fewer with --eval or --arms, or use --update-baseline"
        for (arm, scenario), marks in marks_of.items()
        if len(now.get((arm, scenario), ())) < len(marks)
    ]
    return Held(failed=bool(worse or missing), lines=(*worse, *sums, *added, *missing))


def _counts(pairs: Sequence[tuple[str, Outcome]]) -> tuple[list[Outcome], int]:
    """Return the runs that passed before and fail now, and how many failed before and pass now."""
    lost = [run for mark, run in pairs if mark == "1" and not run.passed]
    return lost, sum(mark == "0" and run.passed for mark, run in pairs)


def _worse(arm: str, scenario: str, pairs: Sequence[tuple[str, Outcome]]) -> Iterator[str]:
    lost, won = _counts(pairs)
    if len(lost) > won:
        was, now = sum(mark == "1" for mark, _ in pairs), sum(run.passed for _, run in pairs)
        seeds = ", ".join(str(run.seed) for run in lost)
        yield f"{scenario} [{arm}]: {was} of {len(pairs)} passed before, {now} now; failed now: seeds {seeds}"
        yield f"  seed {lost[0].seed}: {'; '.join(lost[0].problems) or lost[0].stop}"


def _sum(subject: str, cells: Sequence[Sequence[tuple[str, Outcome]]]) -> str:
    counted = [_counts(pairs) for pairs in cells]
    lost, won = sum(len(runs) for runs, _ in counted), sum(count for _, count in counted)
    worse = sum(len(runs) > count for runs, count in counted)
    return (
        f"{subject}: of {sum(map(len, cells))} runs {lost} failed that passed before, {won} passed that failed before "
        f"(p {mcnemar(lost, won):.4f}): {worse} of {len(cells)} evals pass less often"
    )


def refuse_another(before: Baseline, profile: Profile, arms: Iterable[Arm], *, name: str) -> None:
    """Raise `BadInput` if a baseline is for another model, or for arms with other parts."""
    if (before.model, before.profile) != (profile.name, profile_digest(profile)):
        raise BadInput(
            f"{name}: the baseline is for model {before.model!r} with profile {before.profile}, the runs are for "
            f"{profile.name!r} with {profile_digest(profile)}; use the same profile, or --update-baseline"
        )
    for arm in arms:
        parts = before.arms.get(arm.name)
        if parts is not None and tuple(parts) != arm.listed:
            raise BadInput(
                f"{name}: arm {arm.name!r} has {', '.join(parts)} in the baseline; expected {', '.join(arm.listed)}"
            )
