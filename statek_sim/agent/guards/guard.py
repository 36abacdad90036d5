"""A guard: a name, the points where it runs, its check, and what to do about findings.

A check is a plain or async callable that takes a `Subject` and returns findings. It must not depend on a pipeline,
another guard or a clock, so that tests can call it directly.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from statek_sim.agent.effects import Ask, GuardPoint, Subject, TextWanted
from statek_sim.errors import BadInput

Action = Literal["warn", "modify", "ask", "block"]
"""The action to take on a finding, from weakest to strongest; `ask` requires a person's approval for the call."""

STRENGTH: Final[Mapping[str, int]] = {"pass": 0, "warn": 1, "modify": 2, "ask": 3, "block": 4}


@dataclass(frozen=True, slots=True)
class Find:
    """A finding reported by a check: the rule, the span in the text (None: all of it), and the replacement `put`.

    `ask` is the question shown to the person if the guard's action is `ask`. If all of a guard's findings are `mild`,
    the guard only warns, whatever its action.
    """

    rule: str
    span: tuple[int, int] | None = None
    put: str = ""
    detail: str = ""
    ask: Ask | None = None
    mild: bool = False


Finds = Iterable[Find]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Returned by a check that needs a model: the request, and a function that turns the answer into findings.

    `read` receives the model's answer, or None if there is none.
    """

    wanted: TextWanted
    read: Callable[[str | None], Finds]


Check = Callable[[Subject], "Finds | Awaitable[Finds] | Judgement"]
"""Takes a subject and returns its findings, as an iterable or an awaitable, or a `Judgement` to consult a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A guard. `action` is taken when `check` finds something at one of `points`.

    `fails` determines what happens if a check raises an error or takes longer than `timeout` seconds: "closed" blocks
    the text; "open" lets it pass and records the failure. Timeouts apply only to async checks, because a synchronous
    function cannot be interrupted. `tiers` and `environments` restrict where the guard applies; empty means everywhere.
    If the tier or environment is unknown (empty), every guard applies, so that an unknown user is not less protected.
    Guards with `finds_attacks` run before all others and so check the original text, because text inserted by another
    guard could hide an attack. `undo` reverts what the check recorded about a call that it allowed but that was not
    made. A check with state is an object with `saved` and `restore` (`effects.Saved`), so that a resumed run keeps the
    state.
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
                f"guard {self.name!r} has no points; expected one or more of {', '.join(GuardPoint)}"
            )
        if self.action not in get_args(Action):
            raise BadInput(
                f"guard {self.name!r}: expected action warn, modify, ask or block, got {self.action!r}"
            )
        if self.action == "ask" and self.points != {GuardPoint.CALL}:
            raise BadInput(
                f"guard {self.name!r}: the `ask` action is allowed only at the `call` point, "
                "where a person can be asked"
            )
        if self.fails not in ("closed", "open"):
            raise BadInput(f"guard {self.name!r}: expected `fails` to be closed or open, got {self.fails!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise BadInput(
                f"guard {self.name!r}: expected a timeout in seconds above 0, got {self.timeout!r}"
            )

    def applies(self, subject: Subject, environment: str) -> bool:
        """Return whether the guard applies to `subject`."""
        return (
            subject.point in self.points
            and _is_for(self.tiers, subject.tier)
            and _is_for(self.environments, environment)
        )


def _is_for(chosen: frozenset[str], known: str) -> bool:
    """Return whether a restriction to `chosen` admits a value; an unknown (empty) value is always admitted."""
    return not chosen or not known or known in chosen
