"""What a team demands of its presets: rules over scenarios. Frozen values; `policy_file` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

from statek_sim.harness.limits import LimitName


class Must(StrEnum):
    """What has to become of the scenarios that a rule selects."""

    FINISH = "finish"
    """Every job comes to its own end."""

    STOP = "stop"
    """A limit stops every job that goes bad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Scenarios with one of `tags` or one of these names (`suite/id` or `id`), and with none of `without_tags`.

    Without tags and names it is every scenario.
    """

    tags: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One demand. `line` is where the policy file says it.

    `headroom_percent` is the share of each limit that has to be left (0 to 99); a limit that is not in it may be used
    up. `within_turns`, `within_tokens` (measured tokens) and `within_cost` are how much a job may use from the turn on
    which it goes bad; None means any amount. `must` None: the rule is about claims only.
    """

    name: str
    line: int
    selection: Selection
    must: Must | None = None
    headroom_percent: Mapping[LimitName, int]
    within_turns: int | None = None
    within_tokens: int | None = None
    within_cost: Decimal | None = None
    claims_may_leak: bool = True

    @property
    def counts(self) -> bool:
        """Whether it matters how much a job uses after going bad."""
        return (self.within_turns, self.within_tokens, self.within_cost) != (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All rules of one file, in its order. `worse_by_percent`: how much worse than the baseline is too much.

    `prices` is the folder of STATEK's price files, which costs are counted with.
    """

    path: Path
    rules: tuple[Rule, ...]
    worse_by_percent: int = 0
    prices: Path | None = None
