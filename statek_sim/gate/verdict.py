"""The gate's results: a verdict for each preset, scenario and rule."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from statek_sim.harness.limits import LimitName


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line in a file; line numbers are one-based."""

    path: Path
    line: int

    def __str__(self) -> str:
        """Return `path:line`."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFigure:
    """A scenario's use of one limit.

    `value` is the limit in force without extensions, None for unlimited. `used` is the largest final count of any job.
    `needed` is the smallest value with which the limit stops no job in a run without other limits. It is None if it was
    not requested or the scenario does not finish without limits. `stated` means that the scenario sets the limit,
    so presets do not change it.
    """

    limit: LimitName
    value: int | None
    used: int
    needed: int | None = None
    stated: bool = False

    @property
    def headroom_percent(self) -> int | None:
        """The unused percentage of the limit, rounded down; None if the needed value is unknown.

        The percentage is 0 for a limit that is too small, and 100 for a limit that the scenario does not need.
        """
        if self.needed is None:
            return None
        if self.value is None or not self.needed:
            return 100
        return max(0, (self.value - self.needed) * 100 // self.value) if self.value else 0

    @property
    def too_small(self) -> bool:
        """Whether this limit on its own would stop the scenario."""
        return self.needed is not None and self.value is not None and self.value < self.needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A limit that stopped a job; `turn` is the one-based number of the job's last answered LLM call, or 0 if none."""

    job: str
    limit: LimitName
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Burnt:
    """Usage from the turn on which a job went bad, including that turn and jobs started from then on.

    `turns` counts answered LLM calls, `tokens` measured tokens. `cost` is None without a price list.
    """

    turns: int
    tokens: int
    cost: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A rule's verdict on a scenario under a preset.

    `preset` is the preset's name or path, and `scenario` is `suite/id[profile]`. `reason` is a sentence. `place` is the
    line to change in the preset: the deciding limit's, or the first line. `stop` is the first stop by a limit.
    `figures` contains all four limits. `burnt` is the runaway jobs' usage, or None for a scenario without runaways.
    `leaked` lists claims whose owner ended without releasing them.
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
    """A remark on a preset that does not affect verdicts, such as a value without effect."""

    preset: str
    place: Place
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPreset:
    """A checked preset: its file, its policy file, and its limits (None: unlimited).

    `stated` are the limits that the file sets; the others are STATEK's defaults. `extension` is how much limits grow
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
    """The gate's result: presets in the order given, and verdicts by preset, rule and scenario.

    `baselines` maps the names of presets that were compared with a baseline to the baseline files.
    """

    profile: str
    presets: tuple[JudgedPreset, ...]
    verdicts: tuple[Verdict, ...]
    remarks: tuple[Remark, ...] = ()
    baselines: tuple[tuple[str, Path], ...] = ()

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """The failed verdicts."""
        return tuple(verdict for verdict in self.verdicts if not verdict.passed)

    @property
    def passed(self) -> bool:
        """Whether all verdicts pass."""
        return not self.failed
