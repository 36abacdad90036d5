"""What a guard is: a name, where it stands, what it looks for, and what is to be done about what it finds.

A check is a plain or async callable from a `Subject` to what it found. It knows no pipeline, no other guard and no
clock, so that it can be tested by calling it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from statek_sim.agent.effects import Ask, GuardPoint, Spent, Subject, TextWanted
from statek_sim.errors import BadInput

Action = Literal["warn", "modify", "ask", "block"]
"""What follows from a find, from the weakest to the strongest; `ask`: a person has to allow the call."""

STRENGTH: Final[Mapping[str, int]] = {"pass": 0, "warn": 1, "modify": 2, "ask": 3, "block": 4}


@dataclass(frozen=True, slots=True)
class Find:
    """One thing a check found: the rule, and where in the text (None: the text as a whole); `put` may replace it.

    `ask` is what a person is asked, where the guard's action is that.
    """

    rule: str
    span: tuple[int, int] | None = None
    put: str = ""
    detail: str = ""
    ask: Ask | None = None


Finds = Iterable[Find]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a check returns that asks a model: the request, and what reads the answer (None: there is none)."""

    wanted: TextWanted
    read: Callable[[str | None], Finds]


Check = Callable[[Subject], "Finds | Awaitable[Finds] | Judgement"]
"""Looks at a subject; what it yields is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One guard. `action` is what follows when `check` finds something at one of `points`.

    `fails` says what a check that raises, or takes longer than `timeout` seconds, means: "closed", the text is
    blocked; "open", it passes and that is recorded. A timeout holds for async checks; a plain function cannot be
    interrupted. `tiers` and `environments`: where it applies; empty: everywhere. A tier or an environment that nobody
    told (an empty one) has every guard apply: one that protects does not vanish because somebody is not known.
    `finds_attacks`: it looks before all guards that do not, whatever their order, and so sees the text as it came; what
    another guard puts in a text could hide an attack.
    `undo` takes back what the check noted of a call that it let pass and that is not made after all. A check that
    remembers something from one subject to the next is an object with `saved` and `restore` (`effects.Saved`), so
    that a run that is taken up again goes on with it.
    """

    name: str
    check: Check
    points: frozenset[GuardPoint]
    action: Action = "block"
    fails: Literal["closed", "open"] = "closed"
    timeout: float | None = None
    tiers: frozenset[str] = frozenset()
    environments: frozenset[str] = frozenset()
    undo: Callable[[Subject], None] | None = None
    finds_attacks: bool = False

    def __post_init__(self) -> None:
        if not self.points:
            raise BadInput(
                f"guard {self.name!r} stands nowhere; give it one or more of {', '.join(GuardPoint)}"
            )
        if self.action not in get_args(Action):
            raise BadInput(f"guard {self.name!r}: action is warn, modify, ask or block, not {self.action!r}")
        if self.action == "ask" and self.points != {GuardPoint.CALL}:
            raise BadInput(
                f"guard {self.name!r}: a person can be asked about a call alone; action ask goes with points call"
            )
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
            and _is_for(self.tiers, subject.tier)
            and _is_for(self.environments, environment)
        )


def _is_for(chosen: frozenset[str], known: str) -> bool:
    """Return whether what is for some is for this one; who is not known is anybody."""
    return not chosen or not known or known in chosen


__all__ = ["STRENGTH", "Action", "Check", "Find", "Finds", "Guard", "Judgement", "Spent", "Subject"]
