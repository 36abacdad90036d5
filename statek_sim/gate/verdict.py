"""The results of the gate: a verdict for each preset, scenario and rule, as frozen values."""

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
    """The use of one limit by a scenario.

    `value` is the limit in force without extensions, None for unlimited. `used` is the largest final count of a job.
    `needed` is the smallest value with which the limit stops no job of a run without other limits. It is None if it was
    not requested, or if the scenario does not finish without limits. `stated`: the scenario sets the limit itself, so
    that presets do not change it.
    """

    limit: LimitName
    value: int | None
    used: int
    needed: int | None = None
    stated: bool = False

    @property
    def headroom_percent(self) -> int | None:
        """The unused share of the limit in percent, rounded down; None if the needed value is unknown.

        The share is 0 for a limit that is too small, and 100 for a limit that the scenario does not need.
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
    """The stop of a job by a limit; `turn` is the job's last answered LLM call, from 1, or 0 without one."""

    job: str
    limit: LimitName
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Burnt:
    """The usage from the turn on which a job went bad, including that turn and jobs started from then on.

    `turns` counts answered LLM calls, and `tokens` measured tokens. `cost` is None without a price list.
    """

    turns: int
    tokens: int
    cost: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of one rule on one scenario under one preset.

    `preset` is the name or path of the preset, and `scenario` is `suite/id[profile]`. `reason` is one sentence. `place`
    is the preset's line to change: that of the deciding limit, or the first line. `stop` is the first stop by a limit.
    `figures` has all four limits. `burnt` is the usage of runaway jobs, or None for a scenario without one.
    `leaked` are claims whose owner ended without releasing them.
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
    """A remark on a preset that does not affect verdicts, such as a value that never has an effect."""

    preset: str
    place: Place
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPreset:
    """A judged preset: its file, the file of its policy, and its limits (None: unlimited).

    `stated` are the limits that the file sets; the others are STATEK's defaults. `extension` is the extension of limits
    per completion.
    """

    name: str
    path: Path
    policy: Path
    limits: tuple[tuple[LimitName, int | None], ...]
    stated: tuple[LimitName, ...]
    extension: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """The result of the gate: presets in the order given, and verdicts by preset, rule and scenario.

    `baselines` are the names of the presets that were compared with a baseline, each with the baseline's file.
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
