"""Expectations in a scenario. Only keys given in the file are checked: use `part.said(key)`, not defaults."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, JsonValue, Tag, field_validator, model_validator

from statek_sim.scenario.agent import AgentStop, RefusedExpect
from statek_sim.scenario.calls import CallsExpect, WithinExpect
from statek_sim.scenario.part import Count, Items, Name, Part, key, refused, shape

ItemStatus = Literal["READY", "CLAIMED", "DONE", "ERROR"]
JobStatusName = Literal["READY", "WARMING_UP", "STARTED", "SUSPENDED", "DONE"]
SubtaskStatus = Literal["WAITING", "STARTED", "COMPLETED", "ERROR"]
StopReason = Literal[
    "exit",
    "final",
    "max_turns",
    "max_exceptions",
    "max_consecutive_exceptions",
    "max_token_usage",
    "crash",
    "warmup",
    "contained",
    AgentStop,
]


class ConsoleExpect(Part):
    """Expectations for parts of a job's console."""

    contains: Items[str] = key((), "Each of these strings appears in a line.")
    excludes: Items[str] = key((), "None of these strings appears in any line.")
    lines: Count = key(0, "Number of lines.")


class HistoryExpect(Part):
    """Expectations for parts of the messages in a job's last request."""

    roles: Items[str] = key((), "The messages' roles, in order.")
    contains: Items[str] = key((), "Each of these strings appears in a message's content.")
    excludes: Items[str] = key((), "None of these strings appears in any message's content.")


class ToolFailure(Part):
    """A tool log entry for a tool that raised an exception."""

    error: str = Field(description="The recorded error, such as `ValueError: text`.")


class HandlerExpect(Part):
    """A call to an error handler; only the given keys are compared."""

    name: str = Field(description="The handler's name.")
    context: str | None = key(None, "The context as text (null: called with None).")
    error: str | None = key(None, "The error as text (null: called with None).")
    job: Name = key("", "The job that the handler belongs to.")


class Delivery(Part):
    """A message delivered to the user; only the given keys are compared."""

    body: str | None = key(None, "The text.")
    media: JsonValue = key(None, "The media sent with the text.")


class UsageExpect(Part):
    """Expected usage for a job or the whole scenario."""

    bytes_sent: Count = key(0, "Bytes in all request bodies, as STATEK counts them.")
    bytes_received: Count = key(0, "Bytes in all response bodies.")
    approx_tokens: Count = key(0, "(bytes_sent + bytes_received) // 4.")
    measured_tokens: Count = key(0, "Prompt and completion tokens, counted with the tokenizer.")
    measured_prompt: Count = key(0, "Prompt tokens, counted with the tokenizer.")
    measured_completion: Count = key(0, "Completion tokens, counted with the tokenizer.")
    reported_tokens: Count | None = key(None, "Tokens that the provider reported; null: none.")
    tokenizer: str = key("", "The tokenizer's name, such as `o200k_base` or `o200k_base (proxy)`.")


Console = Annotated[
    Annotated[Items[str], Tag("<list>")] | Annotated[ConsoleExpect, Tag("<mapping>")],
    Discriminator(
        shape,
        custom_error_type="refused",
        custom_error_message="expected a list of lines, or a mapping of contains, excludes, lines",
    ),
]

History = Annotated[
    Annotated[Items[dict[str, JsonValue]], Tag("<list>")] | Annotated[HistoryExpect, Tag("<mapping>")],
    Discriminator(
        shape,
        custom_error_type="refused",
        custom_error_message="expected a list of messages, or a mapping of roles, contains, excludes",
    ),
]

ToolLogEntry = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[ToolFailure, Tag("<mapping>")] | Annotated[None, Tag("<null>")],
    Discriminator(
        shape,
        custom_error_type="refused",
        custom_error_message="expected the result as a string, null or {error: text}",
    ),
]


class JobExpect(Part):
    """Expectations for a job."""

    status: JobStatusName = key("DONE", "The job's status at the end of the run.")
    stop: StopReason | None = key(None, "Why the last unit of work ended; null: the unit has not ended.")
    exit: JsonValue = key(None, "The job's exit status; null: none.")
    error: str | None = key(None, "The message of the job's error; null: none.")
    definition_errors: Items[str] = key((), "The messages of the job definition's errors.")
    llm_calls: Count = key(0, "Requests sent for this job, including retries.")
    turns: Count = key(0, "LLM turns as the harness counts them.")
    exceptions: Count = key(0, "Total number of exceptions in LLM turns.")
    streak: Count = key(0, "Longest run of failing LLM turns.")
    completions: Count | None = key(None, "Number of completed units of work; null: none was ever completed.")
    steps: Count = key(0, "Job steps.")
    console: Console = key((), "The console's lines, or conditions on them.")
    locals: dict[str, JsonValue] = key(
        dict, "Local variables; values other than plain data are given as their LLM representation."
    )
    absent_locals: Items[str] = key((), "Names that are not local variables.")
    history: History = key((), "The last request's messages, or conditions on them.")
    tool_log: Items[Items[ToolLogEntry]] = key((), "Tool results, one list per LLM turn.")
    tool_calls: Items[dict[str, JsonValue]] = key(
        (), "All tool calls, in order; only the given keys are compared."
    )
    expect_calls: CallsExpect = key(
        (), "The expected calls: a list (these and no others), or calls with an `order`."
    )
    never_called: Items[str] = key(
        (), "No tool with one of these names, or patterns such as `delete_*`, is called.", min_length=1
    )
    at_most: dict[str, Count] = key(
        dict, "Maximum number of calls per tool, by name or pattern.", min_length=1
    )
    within: WithinExpect = key(WithinExpect.model_construct, "A budget for tokens, turns and cost.")
    answer_quotes_results: Literal[True] | str = key(
        True,
        "Every number in the answer, or every match of this regular expression, appears in a tool result.",
    )
    handlers: Items[HandlerExpect] = key((), "Error handler calls, in order.")
    delivered: Items[Delivery] = key((), "Messages delivered to the user, in order.")
    subtasks: dict[str, SubtaskStatus] = key(dict, "The subtasks' states, by id.")
    usage: UsageExpect = key(UsageExpect, "This job's usage.")
    answer: str | None = key(None, "Engine agent: the final answer; null: none.")
    offered: Items[str] = key((), "Engine agent: the tools offered in the last request.")
    lint: Items[str] = key(
        (), "Engine agent: warnings about the tools offered in the last request, `tool: rule: reason`."
    )
    refused: Items[RefusedExpect] = key((), "Engine agent: calls that were not executed, in order.")
    nudges: Items[str] = key((), "Engine agent: the failures that caused a nudge, in order.")
    steps_done: Items[str] = key((), "Engine agent: the tools of completed steps, in order.")
    steps_open: Items[str] = key((), "Engine agent: the tools of required steps that are still open.")
    cached_share: Annotated[float, Field(ge=0, le=1)] | None = key(
        None,
        "Engine agent: fraction of prompt tokens that a prefix cache would serve, to 3 decimals; null: "
        "no request.",
    )

    @field_validator("answer_quotes_results")
    @classmethod
    def _compiles(cls, pattern: bool | str) -> bool | str:
        try:
            re.compile(pattern if isinstance(pattern, str) else "")
        except re.error as error:
            raise refused(f"not a valid regular expression: {error}") from None
        return pattern


class ItemExpect(Part):
    """Expectations for an item in the work queue."""

    status: ItemStatus = key("READY", "The item's status.")
    owner: str | None = key(None, "Who holds the claim; null: nobody.")
    error: str | None = key(None, "The recorded error text; null: none.")


class WorldExpect(Part):
    """Expectations for the world outside the jobs."""

    items: dict[str, ItemExpect] = key(dict, "Work queue items by id.")
    ledger: Items[str] = key((), "All lines in the ledger of side effects, in order.")


class EventsExpect(Part):
    """Expectations for the raw trace; an event matches if it has all the given keys with these values."""

    contains: Items[dict[str, JsonValue]] = key(
        (), "These events, in this order, possibly with others in between."
    )
    excludes: Items[dict[str, JsonValue]] = key((), "No event matches any of these.")


class RunError(Part):
    """The error with which the run itself must fail."""

    type: str = key("", "The name of the error class, such as `ScriptExhausted`.")
    contains: str = key("", "Part of its message.")

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise refused("expected type, contains or both")
        return self


class MetricsExpect(Part):
    """The run's metrics (harness document §7), as computed by `statek-sim metrics` from its trace; null: unknown."""

    steps_per_task: float | None = key(None, "Average number of steps per finished task.")
    tool_error_rate: float | None = key(None, "Fraction of executed calls that failed.")
    loop_detections: float | None = key(None, "Number of detected loops.")
    tokens_per_subtask: float | None = key(None, "Tokens per completed subtask.")
    completion_rate: float | None = key(None, "Fraction of finished tasks that were completed.")
    escalation_rate: float | None = key(None, "Escalated tasks per finished task.")
    checkpoint_restores: float | None = key(None, "Runs resumed from a checkpoint.")
    guard_blocks_per_task: float | None = key(None, "Guard blocks per finished task.")
    step_latency_p95: float | None = key(None, "95th percentile of step latency, in seconds.")


class Expect(Part):
    """Expectations for a whole run."""

    llm_calls: Count = key(0, "Requests sent by all jobs, including retries.")
    idle: bool = key(False, "The run ended with jobs still waiting.")
    jobs: dict[str, JobExpect] = key(dict, "Expectations by job name.")
    world: WorldExpect = key(WorldExpect, "Expectations for the world.")
    claims_leaked: Count = key(0, "Number of items still claimed even though every job is DONE.")
    handlers: Items[HandlerExpect] = key((), "Error handler calls in all jobs, in order.")
    usage: UsageExpect = key(UsageExpect, "The scenario's totals.")
    metrics: MetricsExpect = key(MetricsExpect, "The run's metrics.")
    events: EventsExpect = key(EventsExpect, "Conditions on the raw trace.")
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = key("", "The trace's SHA-256.")
    error: RunError | None = key(None, "The error with which the run must fail; null: it must not fail.")
