"""The gate's results: a verdict per preset, scenario and rule. Frozen values."""

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
    """A scenario's figure for one limit.

    `value` is the limit in force without extension, None for unlimited. `used` is the largest count of a job at its
    end. `needed` is the smallest value with which this limit stops no job that no other limit stops; None if not
    requested, or if the scenario does not end without limits. `stated`: the limit is the scenario's own, so no preset
    changes it.
    """

    limit: LimitName
    value: int | None
    used: int
    needed: int | None = None
    stated: bool = False

    @property
    def headroom_percent(self) -> int | None:
        """The unused share of the limit, 0 to 100, rounded down; None if the need is unknown.

        A limit that is too small leaves 0, one that the scenario does not need at all 100.
        """
        if self.needed is None:
            return None
        if self.value is None or not self.needed:
            return 100
        return max(0, (self.value - self.needed) * 100 // self.value) if self.value else 0

    @property
    def too_small(self) -> bool:
        """Whether the limit alone would stop the scenario."""
        return self.needed is not None and self.value is not None and self.value < self.needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A limit stopped a job. `turn` is its last answered LLM call, from 1; 0 if it had none."""

    job: str
    limit: LimitName
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Burnt:
    """The usage from the turn on which a job went bad, including that turn and everything started from then on.

    `turns` are answered LLM calls, `tokens` measured ones. `cost` is None without a price list.
    """

    turns: int
    tokens: int
    cost: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of one rule on one scenario under one preset.

    `preset` is its name, or the given path; `scenario` is `suite/id[profile]`. `reason` is one sentence. `place` is the
    preset's line to change: that of the deciding limit, else its first. `stop` is the first stop by a limit. `figures`
    has all four limits. `burnt` is None for a scenario in which nothing goes bad. `leaked` are the claims whose owner
    is gone without releasing them.
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
    """A remark on a preset that decides nothing: a value that never binds, or a `.env` that differs."""

    preset: str
    place: Place
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPreset:
    """A judged preset: its file, its policy's file, and its limits (None: unlimited).

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
    """All results of one run of the gate, presets in the order given, verdicts by rule and scenario.

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
