"""A baseline of runs: what was right before must stay right, or the turn at which it went another way is shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator

from statek_sim.errors import BadInput
from statek_sim.evals.arms import Arm
from statek_sim.evals.experiment import Experiment
from statek_sim.evals.outcome import Outcome, Turn
from statek_sim.evals.profile import Profile
from statek_sim.evals.recorded import RecordedModel
from statek_sim.evals.statistics import mcnemar
from statek_sim.input_files import Unreadable, text_of, why_unreadable
from statek_sim.scenario.part import refused

SCHEMA: Final = "statek-sim/evals-baseline@1"

Run = Annotated[tuple[Literal[0, 1], str], Strict(False)]
"""Whether it was right, and digests of its turns with spaces between them."""


class BaselineText(BaseModel):
    """A baseline as it is written: runs by arm and eval, seeds from 0."""

    model_config = ConfigDict(strict=True)

    # `schema` is a method of pydantic's models.
    named: Literal["statek-sim/evals-baseline@1"] = Field(alias="schema")
    model: str
    profile: str
    arms: dict[str, list[str]]
    runs: dict[str, dict[str, list[Run]]]

    @model_validator(mode="after")
    def _arms_of_runs(self) -> Self:
        if lacking := [arm for arm in self.runs if arm not in self.arms]:
            raise refused(f"runs has the arm {lacking[0]!r}; expected the parts of it in arms, too")
        return self


SHOWN_SEEDS: Final = 5
"""Seeds that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a baseline knows of one run: whether it was right, and a digest of each turn."""

    passed: bool
    turns: tuple[str, ...]


Key = tuple[str, str, int]
"""An arm, an eval and a seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The runs of an eval in an arm, each as it was and as it is, by seed."""

    arm: str
    scenario: str
    pairs: tuple[tuple[Kept, Outcome], ...]

    @property
    def lost(self) -> tuple[tuple[Kept, Outcome], ...]:
        """The runs that were right and are wrong."""
        return tuple((kept, after) for kept, after in self.pairs if kept.passed and not after.passed)

    @property
    def won(self) -> int:
        """How many runs were wrong and are right."""
        return sum(after.passed and not kept.passed for kept, after in self.pairs)

    @property
    def worse(self) -> bool:
        """Whether it is right less often than it was."""
        return len(self.lost) > self.won


def cells_of(before: Mapping[Key, Kept], outcomes: Iterable[Outcome]) -> list[Cell]:
    """Return the cells of all runs that a baseline knows, in the order of the runs."""
    pairs: dict[tuple[str, str], list[tuple[Kept, Outcome]]] = {}
    for after in outcomes:
        kept = before.get((after.arm, after.scenario, after.seed))
        if kept is not None:
            pairs.setdefault((after.arm, after.scenario), []).append((kept, after))
    return [Cell(arm=arm, scenario=scenario, pairs=tuple(found)) for (arm, scenario), found in pairs.items()]


def told(cell: Cell) -> Iterator[str]:
    """Yield what became of a cell that is worse: how often it was right, its seeds, and where one went another way."""
    was, now = (sum(run.passed for run in runs) for runs in zip(*cell.pairs, strict=True))
    seeds = ", ".join(str(after.seed) for _, after in cell.lost[:SHOWN_SEEDS])
    more = ", ..." if len(cell.lost) > SHOWN_SEEDS else ""
    often = f"{was} of {len(cell.pairs)} right before, {now} now"
    yield f"{cell.scenario} [{cell.arm}]: {often}; wrong now: seeds {seeds}{more}"
    kept, after = cell.lost[0]
    yield f"  seed {after.seed}: {_first_difference(kept, after)}"
    yield f"  {'; '.join(after.problems) or after.stop}"


def _first_difference(kept: Kept, after: Outcome) -> str:
    for turn, digest in zip(after.turns, kept.turns, strict=False):
        if turn.digest != digest:
            return f"turn {turn.number} is the first that differs: {_did(turn)}"
    if len(after.turns) != len(kept.turns):
        return f"ended after {len(after.turns)} turns ({after.stop}), before after {len(kept.turns)}"
    return "every turn says the same as before: the tools, the world or the check changed"


def _did(turn: Turn) -> str:
    did = f"the model failed by {turn.failure} ({turn.how})" if turn.failure else "the model did it right"
    stage = f", {turn.stage}" if turn.stage else ""
    nudged = f", corrected: {turn.nudged}" if turn.nudged else ""
    return f"{did}{stage}{nudged}"


SHOWN: Final = 10
"""Evals that are told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Runs by arm, scenario and seed, and what they were made of. `parts` are those of each arm."""

    model: str
    profile: str
    parts: Mapping[str, tuple[str, ...]]
    runs: Mapping[Key, Kept]

    def seeds_of(self, arm: str, scenario: str) -> int:
        """Return how many seeds, from 0, it has of a scenario in an arm."""
        return next(seed for seed in count() if (arm, scenario, seed) not in self.runs)

    @property
    def evals(self) -> tuple[str, ...]:
        """The evals it has runs of, in any arm."""
        return tuple(dict.fromkeys(scenario for _, scenario, _ in self.runs))

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms it has runs in."""
        return tuple(dict.fromkeys(arm for arm, _, _ in self.runs))

    def only(
        self,
        *,
        arms: Collection[str] | None = None,
        evals: Collection[str] | None = None,
        seeds: int | None = None,
    ) -> Baseline:
        """Return the part that is about these arms, evals and seeds below a number; None: about all it has."""
        kept = {
            (arm, scenario, seed): run
            for (arm, scenario, seed), run in self.runs.items()
            if (arms is None or arm in arms)
            and (evals is None or scenario in evals)
            and (seeds is None or seed < seeds)
        }
        return replace(self, runs=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What came of holding runs against a baseline."""

    failed: bool
    lines: tuple[str, ...]


def profile_digest(profile: Profile | RecordedModel) -> str:
    """Return a digest of a profile: another model makes other runs. A recorded one is its name."""
    if isinstance(profile, RecordedModel):
        return hashlib.blake2b(profile.name.encode(), digest_size=8).hexdigest()
    return hashlib.blake2b(repr(profile).encode(), digest_size=8).hexdigest()


def baseline_text(experiment: Experiment, outcomes: Sequence[Outcome]) -> str:
    """Return the baseline of an experiment as text, a line per scenario and arm."""
    runs: dict[str, dict[str, list[Any]]] = {arm.name: {} for arm in experiment.arms}
    for outcome in outcomes:
        digests = " ".join(turn.digest for turn in outcome.turns)
        runs[outcome.arm].setdefault(outcome.scenario, []).append([int(outcome.passed), digests])
    head = {
        "schema": SCHEMA,
        "model": experiment.model.name,
        "profile": profile_digest(experiment.model),
        "arms": {arm.name: list(arm.listed) for arm in experiment.arms},
    }
    return json.dumps({**head, "runs": runs}, indent=1) + "\n"


def read_baseline(path: Path) -> Baseline:
    """Return the baseline of a file; `BadInput` where it is none."""
    try:
        document = BaselineText.model_validate_json(text_of(path))
    except Unreadable as error:
        raise BadInput(f"{path}: {why_unreadable(error, path)}; write one with --update-baseline") from None
    except ValidationError as error:
        raise BadInput(
            f"{path}: no baseline of evals: {_first(error)}; write one with --update-baseline"
        ) from None
    return Baseline(
        model=document.model,
        profile=document.profile,
        parts={name: tuple(parts) for name, parts in document.arms.items()},
        runs={
            (arm, scenario, seed): Kept(passed=bool(passed), turns=tuple(digests.split()))
            for arm, scenarios in document.runs.items()
            for scenario, kept in scenarios.items()
            for seed, (passed, digests) in enumerate(kept)
        },
    )


def _first(error: ValidationError) -> str:
    """Return the first problem of a file: where it is, and what it is."""
    found = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, found['loc'])) or 'the file'}: {found['msg']}"


def held_against(before: Baseline, experiment: Experiment, outcomes: Sequence[Outcome], *, name: str) -> Held:
    """Return which evals are right less often in which arm than in a baseline; one of them is enough to fail.

    Nothing makes up for it: no other eval, no other arm. Runs of the baseline that were not made fail, too;
    `Baseline.only` is for leaving some out. `BadInput` when the baseline is about something else.
    """
    refuse_another(before, experiment.model, experiment.arms, name=name)
    cells = cells_of(before.runs, outcomes)
    if not cells:
        raise BadInput(f"{name}: none of these runs is in the baseline; expected the same arms and evals")
    worse = [cell for cell in cells if cell.worse]
    lines = [line for cell in worse[:SHOWN] for line in told(cell)]
    if len(worse) > SHOWN:
        rest = ", ".join(f"{cell.scenario} [{cell.arm}]" for cell in worse[SHOWN:])
        lines.append(f"right less often, too: {rest}")
    for arm in experiment.arms:
        lines += _verdict([cell for cell in cells if cell.arm == arm.name], f"{name} [{arm.name}]")
    new = len(outcomes) - sum(len(cell.pairs) for cell in cells)
    if new:
        lines.append(f"{name}: it has nothing of {new} more runs; --update-baseline adds them")
    gone = list(_not_run(before, experiment, name))
    return Held(failed=bool(worse or gone), lines=(*lines, *gone))


def refuse_another(
    before: Baseline, profile: Profile | RecordedModel, arms: Iterable[Arm], *, name: str
) -> None:
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


def _not_run(before: Baseline, experiment: Experiment, name: str) -> Iterator[str]:
    """Yield what a baseline knows and nobody ran: arms, evals, and seeds of those that were run."""
    arms = {arm.name for arm in experiment.arms}
    evals = {scenario.id for scenario in experiment.suite}
    if gone := [arm for arm in before.arms if arm not in arms]:
        yield f"{name}: not run of its arms: {', '.join(gone)}; expected all, or --arms for some of them"
    if gone := [scenario for scenario in before.evals if scenario not in evals]:
        yield f"{name}: not run of its evals: {', '.join(gone)}; {_ALL_EVALS}"
    seeds = max(
        (seed + 1 for arm, scenario, seed in before.runs if arm in arms and scenario in evals), default=0
    )
    if seeds > experiment.seeds:
        yield f"{name}: it has {seeds} seeds, run were {experiment.seeds}; expected --seeds {seeds}"


_ALL_EVALS: Final = "expected all, or --eval for some of them, or --update-baseline where they are gone"


def left_out(before: Baseline, part: Baseline, *, name: str) -> list[str]:
    """Return what is left of a baseline in a part of it, and how much that is; nothing for all of it."""
    if len(part.runs) == len(before.runs):
        return []
    pairs = (("evals", before.evals, part.evals), ("arms", before.arms, part.arms))
    kept = [f"{kind} {', '.join(now) or 'none'}" for kind, was, now in pairs if now != was]
    what = " of the ".join(kept) or "first seeds"
    share = f"{len(part.runs)} of its {len(before.runs)} runs"
    return [f"{name}: compared are only the {what}, as asked for: {share}"]


def _verdict(cells: Sequence[Cell], subject: str) -> Iterator[str]:
    """Yield what became of an arm, if the baseline knows it."""
    runs = sum(len(cell.pairs) for cell in cells)
    if not runs:
        return
    lost, won = sum(len(cell.lost) for cell in cells), sum(cell.won for cell in cells)
    worse = sum(cell.worse for cell in cells)
    changed = (
        f"{lost} are wrong that were right, {won} are right that were wrong (p {mcnemar(lost, won):.4f})"
    )
    change = f"{worse} of {len(cells)} evals right less often" if lost or won else "as before"
    yield f"{subject}: of {runs} runs {changed}: {change}"
