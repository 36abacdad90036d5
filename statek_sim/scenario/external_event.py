"""External events of a scenario: what happens outside the jobs, at a virtual second or after a tool call."""

from __future__ import annotations

from typing import Final, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from statek_sim.scenario.part import Name, Part, Positive, Seconds, refused

ACTIONS: Final = (
    "resolve",
    "fail",
    "push",
    "notify",
    "complete",
    "crash",
    "restart",
    "start",
    "answer",
    "refuse",
)
"""The keys that say what an event does; each event has exactly one."""

EventAction = Literal[
    "resolve", "fail", "push", "notify", "complete", "crash", "restart", "start", "answer", "refuse"
]

_COMPANIONS: Final[dict[str, tuple[EventAction, ...]]] = {
    "value": ("resolve",),
    "message": ("push", "notify", "answer", "refuse"),
    "question": ("answer", "refuse"),
    "error": ("fail", "complete"),
    "result": ("complete",),
}
"""Which actions a further key goes with."""

_NEEDS: Final[dict[EventAction, str]] = {
    "push": "message",
    "notify": "message",
    "answer": "message",
    "fail": "error",
}


class After(Part):
    """Something that happens in the run, which an event follows at once."""

    tool: str = Field(description="A tool of this name returned or raised.")
    call: Positive = Field(
        default=1, description="Which of its calls, from 1, counted over all jobs (or over `job`)."
    )
    job: Name | None = Field(default=None, description="Count only this job's calls.")


_EVENT_RULES: Final[dict[str, JsonValue]] = {
    "allOf": [
        {"oneOf": [{"required": ["at"]}, {"required": ["after"]}]},
        {"oneOf": [{"required": [action]} for action in ACTIONS]},
        {"not": {"required": ["result", "error"]}},
    ],
    "dependentRequired": {action: [companion] for action, companion in _NEEDS.items()},
    "dependentSchemas": {
        companion: {"anyOf": [{"required": [action]} for action in actions]}
        for companion, actions in _COMPANIONS.items()
    },
}


class Event(Part):
    """One external event: exactly one of `at` and `after`, and exactly one action."""

    model_config = ConfigDict(json_schema_extra=_EVENT_RULES)

    at: Seconds = Field(default=0.0, description="Virtual second at which it happens.")
    after: After | None = Field(default=None, description="What it follows at once.")

    resolve: str = Field(default="", description="The future of this name gets `value`.")
    fail: str = Field(default="", description="The condition of the future of this name raises `error`.")
    push: str = Field(default="", description="This job gets the user message `message`.")
    notify: str = Field(default="", description="This job gets the notification `message`.")
    complete: str = Field(
        default="", description="The subtask of this id completes with `result` or `error`."
    )
    crash: Literal["worker"] = Field(
        default="worker",
        description="The worker dies: steps in flight are lost. Engine agent: every run of the process stops.",
    )
    restart: Literal["worker"] = Field(
        default="worker",
        description="A new worker continues with what is durable. Engine agent: runs go on from their last commit.",
    )
    start: str = Field(default="", description="This declared job is created now, not at the beginning.")

    answer: str = Field(
        default="", description="A person answers this job's oldest open question with `message`."
    )
    refuse: str = Field(
        default="", description="A person refuses what this job's oldest open question asks, for `message`."
    )

    value: JsonValue = Field(default=None, description="Value of a resolved future.")
    message: str = Field(default="", description="Text of a user message, notification or answer.")
    question: str = Field(default="", description="Words in the question that is meant, if not the oldest.")
    error: str = Field(default="", description="Error text of a failed future or subtask.")
    result: JsonValue = Field(default=None, description="Result of a completed subtask.")

    @property
    def action(self) -> EventAction:
        """Return what the event does."""
        for action in ACTIONS:
            if action in self.model_fields_set:
                return action
        raise AssertionError("an event without an action passed validation")

    @property
    def target(self) -> str:
        """Return whom the action is for: the name of a future, job, subtask or `worker`."""
        return str(getattr(self, self.action))

    @model_validator(mode="after")
    def _one_time_one_action(self) -> Self:
        if self.said("at") == (self.after is not None) or (self.said("after") and self.after is None):
            raise refused("expected exactly one of at, after")
        actions = [action for action in ACTIONS if action in self.model_fields_set]
        if len(actions) != 1:
            raise refused(
                f"expected exactly one of {', '.join(ACTIONS)}; got {' and '.join(actions) or 'none'}"
            )
        self._check_companions(actions[0])
        return self

    def _check_companions(self, action: EventAction) -> None:
        for companion, goes_with in _COMPANIONS.items():
            if self.said(companion) and action not in goes_with:
                own = " or ".join(name for name, actions in _COMPANIONS.items() if action in actions)
                raise refused(
                    f"{companion} goes with {' or '.join(goes_with)}, not with {action}"
                    + (f", which has {own}" if own else "")
                )
        needed = _NEEDS.get(action)
        if needed and not self.said(needed):
            raise refused(f"{action} needs {needed}")
        if self.said("result") and self.said("error"):
            raise refused("a subtask completes with result or error, not both")
