"""Deviations: where one run of a scenario departs from the undisturbed one. A run is a function of both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from statek_sim.harness.limits import MAX_LIMIT, LimitName
from statek_sim.scenario.part import Count, Name, Part, Positive, Seconds, refused

ACTIONS: Final = ("kill", "lose", "fault", "move", "choose", "limit")
"""The keys that say what a deviation does; each has exactly one."""

DeviationAction = Literal["kill", "lose", "fault", "move", "choose", "limit"]

Fault = Literal["429", "500", "timeout", "401"]
"""How a request fails: an HTTP status, or no answer at all. After 401 nobody asks again."""

_COMPANIONS: Final[dict[str, tuple[DeviationAction, ...]]] = {
    "silent": ("kill", "lose"),
    "restart": ("kill", "lose"),
    "what": ("kill", "lose"),
    "to_event": ("lose",),
    "job": ("fault",),
    "reply": ("fault",),
    "to": ("move",),
    "first": ("choose",),
    "value": ("limit",),
}
_NEEDS: Final[dict[DeviationAction, tuple[str, ...]]] = {
    "lose": ("to_event",),
    "fault": ("job", "reply"),
    "move": ("to",),
    "choose": ("first",),
    "limit": ("value",),
}
_RULES: Final[dict[str, JsonValue]] = {
    "oneOf": [{"required": [action]} for action in ACTIONS],
    "dependentRequired": {action: [*needed] for action, needed in _NEEDS.items()},
}

RESTART: Final = 60.0
"""Virtual seconds from a kill to the next worker, where nothing else is said."""


class Deviation(Part):
    """One departure from the undisturbed run: exactly one action."""

    model_config = ConfigDict(json_schema_extra=_RULES)

    kill: Count = Field(
        default=0, description="The worker dies after this event of the trace (0: before it)."
    )
    lose: Positive = Field(
        default=1,
        description="As `kill`, and the store is back at `to_event`: the commits since then are lost, what was done "
        "outside of the store is not.",
    )
    silent: Count = Field(
        default=0, description="And then after so many things that became durable and are no event."
    )
    restart: Seconds | None = Field(
        default=RESTART, description="Virtual seconds until a new worker starts; null: none does."
    )
    what: str = Field(default="", description="What was done last, for readers.")
    to_event: Count = Field(default=0, description="The event after which the store was last committed.")

    fault: Fault = Field(default="429", description="One request fails so, before its reply comes.")
    job: Name | None = Field(default=None, description="Whose request.")
    reply: Positive = Field(default=1, description="For which of the job's replies, from 1.")

    move: Positive = Field(
        default=1, description="This event of the scenario, from 1, happens at another time."
    )
    to: Seconds = Field(default=0.0, description="When: a virtual second.")

    choose: Positive = Field(
        default=1, description="At this choice, from 1, between jobs that are ready another one steps first."
    )
    first: Name | None = Field(default=None, description="Which job.")

    limit: LimitName = Field(
        default=LimitName.MAX_TURNS, strict=False, description="This limit of the harness is another one."
    )
    value: Annotated[int, Field(ge=0, le=MAX_LIMIT)] = Field(default=0, description="Which.")

    @property
    def action(self) -> DeviationAction:
        """Return what it does."""
        for action in ACTIONS:
            if action in self.model_fields_set:
                return action
        raise AssertionError("a deviation without an action passed validation")

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        actions = [action for action in ACTIONS if action in self.model_fields_set]
        if len(actions) != 1:
            raise refused(
                f"expected exactly one of {', '.join(ACTIONS)}; got {' and '.join(actions) or 'none'}"
            )
        for companion, goes_with in _COMPANIONS.items():
            if self.said(companion) and actions[0] not in goes_with:
                raise refused(f"{companion} goes with {' or '.join(goes_with)}, not with {actions[0]}")
        for needed in _NEEDS.get(actions[0], ()):
            if not self.said(needed):
                raise refused(f"{actions[0]} needs {needed}")
        if self.action == "lose" and self.to_event >= self.lose:
            raise refused("to_event comes before the event after which the worker dies")
        return self

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Yield what is said of it: what belongs to other actions means nothing here."""
        return ((name, value) for name, value in super().__repr_args__() if name in self.model_fields_set)

    def __str__(self) -> str:
        """The deviation in a few words."""
        match self.action:
            case "kill":
                return f"kill after event {_place(self.kill, self.silent)}{_said(self.what)}{_again(self.restart)}"
            case "lose":
                return (
                    f"kill after event {_place(self.lose, self.silent)}{_said(self.what)}, the store back at event "
                    f"{self.to_event}{_again(self.restart)}"
                )
            case "fault":
                return f"{self.fault} for reply {self.reply} of {self.job}"
            case "move":
                return f"event {self.move} of the scenario at {self.to:g} s"
            case "choose":
                return f"{self.first} steps first at choice {self.choose}"
            case "limit":
                return f"{self.limit} is {self.value}"


def _place(event: int, silent: int) -> str:
    return f"{event}+{silent}" if silent else str(event)


def _said(what: str) -> str:
    return f" ({what})" if what else ""


def _again(restart: float | None) -> str:
    return ", no restart" if restart is None else f", restart {restart:g} s later"
