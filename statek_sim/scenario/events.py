"""External events in a scenario, and a run's deviations from the uninterrupted run.

An event happens at a virtual second or after a tool call. A run is a function of the scenario and its deviations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import ConfigDict, Field, JsonValue, model_validator

from statek_sim.harness.limits import MAX_LIMIT, LimitName
from statek_sim.scenario.part import Count, Moment, Name, Part, Positive, Seconds, exactly_one, key, refused

EventAction = Literal[
    "resolve", "fail", "push", "notify", "complete", "crash", "restart", "start", "answer", "refuse"
]

EVENT_ACTIONS: Final[tuple[EventAction, ...]] = get_args(EventAction)
"""The keys of actions; every event has exactly one of them."""

_EVENT_COMPANIONS: Final[dict[str, tuple[EventAction, ...]]] = {
    "value": ("resolve",),
    "message": ("push", "notify", "answer", "refuse"),
    "question": ("answer", "refuse"),
    "error": ("fail", "complete"),
    "result": ("complete",),
}
"""The actions that allow each additional key."""

_EVENT_NEEDS: Final[dict[EventAction, tuple[str, ...]]] = {
    "push": ("message",),
    "notify": ("message",),
    "answer": ("message",),
    "fail": ("error",),
}


def _check_companions(
    part: Part,
    action: str,
    companions: Mapping[str, tuple[str, ...]],
    needs: Mapping[Any, tuple[str, ...]],
) -> None:
    """Raise for an additional key that `action` does not allow, and for a missing key that `action` requires."""
    for companion, goes_with in companions.items():
        if part.said(companion) and action not in goes_with:
            own = " or ".join(name for name, actions in companions.items() if action in actions)
            raise refused(
                f"{companion} is allowed with {' or '.join(goes_with)}, not with {action}"
                + (f", which has {own}" if own else "")
            )
    for needed in needs.get(action, ()):
        if not part.said(needed):
            raise refused(f"{action} requires {needed}")


class After(Part):
    """A tool call immediately after which an event happens."""

    tool: str = Field(description="The tool's name; the event happens when the call returns or raises.")
    call: Positive = key(1, "Number of the tool's call, starting from 1, across all jobs (or within `job`).")
    job: Name | None = key(None, "Count only this job's calls.")


_EVENT_RULES: Final[dict[str, JsonValue]] = {
    "allOf": [
        {"oneOf": [{"required": ["at"]}, {"required": ["after"]}]},
        {"oneOf": [{"required": [action]} for action in EVENT_ACTIONS]},
        {"not": {"required": ["result", "error"]}},
    ],
    "dependentRequired": {action: [*needed] for action, needed in _EVENT_NEEDS.items()},
    "dependentSchemas": {
        companion: {"anyOf": [{"required": [action]} for action in actions]}
        for companion, actions in _EVENT_COMPANIONS.items()
    },
}


class Event(Part):
    """An external event with exactly one action, and either `at` or `after`."""

    model_config = ConfigDict(json_schema_extra=_EVENT_RULES)

    at: Moment = key(0.0, "Virtual second at which the event happens.")
    after: After | None = key(None, "The tool call that the event immediately follows.")

    resolve: str = key("", "Resolves the future with this name to `value`.")
    fail: str = key("", "Makes the condition of the future with this name raise `error`.")
    push: str = key("", "Sends the user message `message` to this job.")
    notify: str = key("", "Sends the notification `message` to this job.")
    complete: str = key("", "Completes the subtask with this id with `result` or `error`.")
    crash: Literal["worker"] = key(
        "worker", "Kills the worker: steps in flight are lost. Engine agent: every run in the process stops."
    )
    restart: Literal["worker"] = key(
        "worker",
        "Starts a new worker that continues from the stored state. Engine agent: runs continue from their last commit.",
    )
    start: str = key("", "Creates this declared job now rather than at the beginning.")

    answer: str = key("", "A person answers this job's oldest open question with `message`.")
    refuse: str = key("", "A person refuses this job's oldest open question, with `message` as the reason.")

    value: JsonValue = key(None, "Value for a resolved future.")
    message: str = key("", "Text of the user message, notification or answer.")
    question: str = key("", "Text in the question to answer, if it is not the oldest open question.")
    error: str = key("", "Error text for a failed future or subtask.")
    result: JsonValue = key(None, "Result for a completed subtask.")

    @property
    def action(self) -> EventAction:
        """The event's action."""
        return next(action for action in EVENT_ACTIONS if self.said(action))

    @property
    def target(self) -> str:
        """The action's target: the name of a future, a job or a subtask, or `worker`."""
        return str(getattr(self, self.action))

    @model_validator(mode="after")
    def _one_time_one_action(self) -> Self:
        if self.said("at") == (self.after is not None) or (self.said("after") and self.after is None):
            raise refused("expected exactly one of at, after")
        action = exactly_one(self, EVENT_ACTIONS)
        _check_companions(self, action, _EVENT_COMPANIONS, _EVENT_NEEDS)
        if self.said("result") and self.said("error"):
            raise refused("a subtask completes with result or error, not both")
        return self


DeviationAction = Literal["kill", "lose", "fault", "move", "choose", "limit"]
DEVIATION_ACTIONS: Final[tuple[DeviationAction, ...]] = get_args(DeviationAction)
"""The keys of actions; every deviation has exactly one of them."""

Fault = Literal["429", "500", "timeout", "401"]
"""How a request fails: with an HTTP status, or without an answer. Status 401 is never retried."""

_DEVIATION_COMPANIONS: Final[dict[str, tuple[DeviationAction, ...]]] = {
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
_DEVIATION_NEEDS: Final[dict[DeviationAction, tuple[str, ...]]] = {
    "lose": ("to_event",),
    "fault": ("job", "reply"),
    "move": ("to",),
    "choose": ("first",),
    "limit": ("value",),
}
_DEVIATION_RULES: Final[dict[str, JsonValue]] = {
    "oneOf": [{"required": [action]} for action in DEVIATION_ACTIONS],
    "dependentRequired": {action: [*needed] for action, needed in _DEVIATION_NEEDS.items()},
}

RESTART: Final = 60.0
"""Virtual seconds from a kill to the start of the next worker, by default."""


class Deviation(Part):
    """A deviation from the uninterrupted run, with exactly one action."""

    model_config = ConfigDict(json_schema_extra=_DEVIATION_RULES)

    kill: Count = key(0, "The worker dies after this trace event (0: before the first event).")
    lose: Positive = key(
        1,
        "Like `kill`, but the store is restored to `to_event`: later commits are lost, but actions "
        "outside the store are not.",
    )
    silent: Count = key(
        0, "The worker dies only after this many further durable changes that are not events."
    )
    restart: Seconds | None = key(RESTART, "Virtual seconds until a new worker starts; null: never.")
    what: str = key("", "The last action before the deviation, for information only.")
    to_event: Count = key(0, "The event after which the store was last committed.")

    fault: Fault = key("429", "A request fails in this way before it gets its reply.")
    job: Name | None = key(None, "The job that makes the request.")
    reply: Positive = key(1, "Which of the job's replies, starting from 1.")

    move: Positive = key(
        1, "Number of the scenario's event, starting from 1, that happens at a different time."
    )
    to: Moment = key(0.0, "The new time, in virtual seconds.")

    choose: Positive = key(
        1, "Number of the choice between ready jobs, starting from 1, at which a different job runs first."
    )
    first: Name | None = key(None, "The job that runs first.")

    limit: LimitName = key(LimitName.MAX_TURNS, "The harness limit that has a different value.", strict=False)
    value: Annotated[int, Field(ge=0, le=MAX_LIMIT)] = key(0, "The limit's value.")

    @property
    def action(self) -> DeviationAction:
        """The deviation's action."""
        return next(action for action in DEVIATION_ACTIONS if self.said(action))

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        action = exactly_one(self, DEVIATION_ACTIONS)
        _check_companions(self, action, _DEVIATION_COMPANIONS, _DEVIATION_NEEDS)
        if action == "lose" and self.to_event >= self.lose:
            raise refused("to_event must be before the event after which the worker dies")
        return self

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Yield the fields given in the file; fields for other actions have no meaning."""
        return ((name, value) for name, value in super().__repr_args__() if name in self.model_fields_set)

    def __str__(self) -> str:
        """Return the deviation in a few words."""
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
