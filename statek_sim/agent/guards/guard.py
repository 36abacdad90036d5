"""What a guard is: a name, where it stands, what it looks for, and what is to be done about what it finds.

A check is a plain or async callable from a `Subject` to what it found. It knows no pipeline, no other guard and no
clock, so that it can be tested by calling it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from statek_sim.agent.effects import GuardPoint
from statek_sim.errors import BadInput
from statek_sim.values import JSON

Action = Literal["warn", "modify", "block"]
"""What follows from a find, from the weakest to the strongest."""

STRENGTH: Final[Mapping[str, int]] = {"pass": 0, "warn": 1, "modify": 2, "block": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a session has used so far; `seconds` and `cost` may be virtual."""

    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a guard looks at: a text at a point, and what is known around it.

    `arguments` and `tool` are of a call; `sources` the texts that an answer may cite; `at` seconds of the caller's
    clock; `role` and `tier` the user's.
    """

    point: GuardPoint
    text: str
    tool: str | None = None
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    session: str = ""
    role: str = ""
    tier: str = ""
    sources: Sequence[str] = ()
    spent: Spent = Spent()
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Find:
    """One thing a check found: the rule, and where in the text (None: the text as a whole); `put` may replace it."""

    rule: str
    span: tuple[int, int] | None = None
    put: str = ""
    detail: str = ""


Finds = Iterable[Find]
Check = Callable[[Subject], "Finds | Awaitable[Finds]"]
"""Looks at a subject; what it yields is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One guard. `action` is what follows when `check` finds something at one of `points`.

    `fails` says what a check that raises, or takes longer than `timeout` seconds, means: "closed", the text is
    blocked; "open", it passes and that is recorded. A timeout holds for async checks; a plain function cannot be
    interrupted. `tiers` and `environments`: where it applies; empty: everywhere.
    `needs` are fields of a subject without which the check means nothing. `undo` takes back what the check noted of a
    subject that it let pass and a later guard blocked.
    """

    name: str
    check: Check
    points: frozenset[GuardPoint]
    action: Action = "block"
    fails: Literal["closed", "open"] = "closed"
    timeout: float | None = None
    tiers: frozenset[str] = frozenset()
    environments: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    undo: Callable[[Subject], None] | None = None

    def __post_init__(self) -> None:
        if not self.points:
            raise BadInput(
                f"guard {self.name!r} stands nowhere; give it one or more of {', '.join(GuardPoint)}"
            )
        if self.action not in ("warn", "modify", "block"):
            raise BadInput(f"guard {self.name!r}: action is warn, modify or block, not {self.action!r}")
        if self.fails not in ("closed", "open"):
            raise BadInput(f"guard {self.name!r}: fails is closed or open, not {self.fails!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise BadInput(
                f"guard {self.name!r}: timeout is a number of seconds above 0, not {self.timeout!r}"
            )

    def applies(self, subject: Subject, environment: str) -> bool:
        """Return whether the guard looks at this subject at all."""
        return (
            subject.point in self.points
            and (not self.tiers or subject.tier in self.tiers)
            and (not self.environments or environment in self.environments)
        )
