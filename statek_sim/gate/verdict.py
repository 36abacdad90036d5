"""What the gate found: a verdict per preset, scenario and rule. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from statek_sim.harness.limits import LimitName


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file, from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        """Return `path:line`."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFigure:
    """What a scenario makes of one limit.

    `value` is the limit in force without extension, None for unlimited. `used` is the most that a job had counted at
    its end. `needed` is the smallest value with which this limit stops no job that no other limit stops; None where
    nobody asked, or where the scenario does not come to an end without limits. `stated`: the scenario itself says what
    the limit is, so no preset changes it.
    """

    limit: LimitName
    value: int | None
    used: int
    needed: int | None = None
    stated: bool = False

    @property
    def headroom_percent(self) -> int | None:
        """The share of the limit that is left, 0 to 100, rounded down; None when it is not known what is needed.

        A limit that is too small leaves 0, one that the scenario does not need at all 100.
        """
        if self.needed is None:
            return None
        if self.value is None or not self.needed:
            return 100
        return max(0, (self.value - self.needed) * 100 // self.value) if self.value else 0

    @property
    def too_small(self) -> bool:
        """Whether the limit would stop the scenario, the others left out."""
        return self.needed is not None and self.value is not None and self.value < self.needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A limit stopped a job. `turn` is its last answered LLM call, from 1; 0 when it had none."""

    job: str
    limit: LimitName
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Burnt:
    """What was used from the turn on which a job went bad, that turn and everything it started from then on included.

    `turns` are answered LLM calls, `tokens` measured ones. `cost` is None where no price list was given.
    """

    turns: int
    tokens: int
    cost: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One rule held against one scenario under one preset.

    `preset` is its name, or the path that was given; `scenario` is `suite/id[profile]`. `reason` is one sentence.
    `place` is the preset's line that a person would change: that of the limit that decided, else its first.
    `stop` is the first stop by a limit. `figures` has all four limits. `burnt` is None for a scenario in which nothing
    goes bad. `leaked` are the claims that nobody holds any more and nobody gave back.
    """

    preset: str
    scenario: str
    tags: tuple[str, ...]
    rule: str
    passed: bool
    reason: str
    place: Place
    limit: LimitName | None = None
    stop: Stop | None = None
    figures: tuple[LimitFigure, ...] = ()
    burnt: Burnt | None = None
    leaked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something about a preset that decides nothing: a value that never binds, a `.env` that says otherwise."""

    preset: str
    place: Place
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPreset:
    """A preset as it was judged: its file, its policy's file, and its limits (None: unlimited).

    `stated` are the limits that its file sets; the others are STATEK's defaults.
    """

    name: str
    path: Path
    policy: Path
    limits: tuple[tuple[LimitName, int | None], ...]
    stated: tuple[LimitName, ...]
    extension: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Everything that one run of the gate found, presets in the order given, verdicts by rule and scenario.

    `baselines` are the presets that were compared, with the file of each one's baseline.
    """

    profile: str
    presets: tuple[JudgedPreset, ...]
    verdicts: tuple[Verdict, ...]
    remarks: tuple[Remark, ...] = ()
    baselines: tuple[tuple[str, Path], ...] = ()

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """The verdicts that do not pass."""
        return tuple(verdict for verdict in self.verdicts if not verdict.passed)

    @property
    def passed(self) -> bool:
        """Whether all verdicts pass."""
        return not self.failed
