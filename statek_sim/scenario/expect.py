"""Expectations in a scenario. Only keys that the file gives are checked: use `part.said(key)`, not defaults."""

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
    """Partial expectations on a job's console."""

    contains: Items[str] = key((), "Each of these is in some line.")
    excludes: Items[str] = key((), "None of these is in any line.")
    lines: Count = key(0, "Number of lines.")


class HistoryExpect(Part):
    """Partial expectations on the messages of a job's last request."""

    roles: Items[str] = key((), "The messages' roles, in order.")
    contains: Items[str] = key((), "Each of these is in some message's content.")
    excludes: Items[str] = key((), "None of these is in any message's content.")


class ToolFailure(Part):
    """A tool log entry of a tool that raised."""

    error: str = Field(description="The recorded error, like `ValueError: text`.")


class HandlerExpect(Part):
    """One call of an error handler; only given keys are compared."""

    name: str = Field(description="Name of the handler.")
    context: str | None = key(None, "The context as text (null: called with None).")
    error: str | None = key(None, "The error as text (null: called with None).")
    job: Name = key("", "The job whose handler it was.")


class Delivery(Part):
    """One message delivered to the user; only given keys are compared."""

    body: str | None = key(None, "The text.")
    media: JsonValue = key(None, "The media that came with it.")


class UsageExpect(Part):
    """Expected usage of a job or of the whole scenario."""

    bytes_sent: Count = key(0, "Bytes of all request bodies, as STATEK counts them.")
    bytes_received: Count = key(0, "Bytes of all response bodies.")
    approx_tokens: Count = key(0, "(bytes_sent + bytes_received) // 4.")
    measured_tokens: Count = key(0, "Tokens by the tokenizer, prompt and completion.")
    measured_prompt: Count = key(0, "Prompt tokens by the tokenizer.")
    measured_completion: Count = key(0, "Completion tokens by the tokenizer.")
    reported_tokens: Count | None = key(None, "Tokens the provider reported; null: none.")
    tokenizer: str = key("", "Name of the tokenizer, like `o200k_base` or `o200k_base (proxy)`.")


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
    """Expectations on one job."""

    status: JobStatusName = key("DONE", "Status at the end of the run.")
    stop: StopReason | None = key(None, "Why the last unit of work ended; null: it did not.")
    exit: JsonValue = key(None, "The job's exit status; null: none.")
    error: str | None = key(None, "Message of the job's error; null: none.")
    definition_errors: Items[str] = key((), "Messages of the job definition's errors.")
    llm_calls: Count = key(0, "Requests sent for this job, retries included.")
    turns: Count = key(0, "LLM turns as the harness counts them.")
    exceptions: Count = key(0, "Exceptions of LLM turns, in total.")
    streak: Count = key(0, "Longest streak of failing LLM turns.")
    completions: Count | None = key(None, "Completed units of work; null: never completed one.")
    steps: Count = key(0, "Job steps.")
    console: Console = key((), "The console's lines, or conditions on them.")
    locals: dict[str, JsonValue] = key(
        dict, "Local variables; a value that is not plain as its LLM representation."
    )
    absent_locals: Items[str] = key((), "Names that are not among the local variables.")
    history: History = key((), "Messages of the last request, or conditions on them.")
    tool_log: Items[Items[ToolLogEntry]] = key((), "Tool results, one list per LLM turn.")
    tool_calls: Items[dict[str, JsonValue]] = key(
        (), "All tool calls in order; of each only the given keys are compared."
    )
    expect_calls: CallsExpect = key((), "The calls: a list for these and no others, or with an `order`.")
    never_called: Items[str] = key(
        (), "No tool with one of these names, or patterns such as `delete_*`, is called.", min_length=1
    )
    at_most: dict[str, Count] = key(
        dict, "How often tools may be called at most, by name or pattern.", min_length=1
    )
    within: WithinExpect = key(WithinExpect.model_construct, "A budget of tokens, turns and cost.")
    answer_quotes_results: Literal[True] | str = key(
        True, "Every number in the answer, or every match of this regular expression, is in a tool's result."
    )
    handlers: Items[HandlerExpect] = key((), "Error handler calls, in order.")
    delivered: Items[Delivery] = key((), "Messages delivered to the user, in order.")
    subtasks: dict[str, SubtaskStatus] = key(dict, "State of subtasks by id.")
    usage: UsageExpect = key(UsageExpect, "This job's usage.")
    answer: str | None = key(None, "Engine agent: the final answer; null: none.")
    offered: Items[str] = key((), "Engine agent: the tools offered last.")
    lint: Items[str] = key(
        (), "Engine agent: what is wrong with the tools offered last, `tool: rule: reason`."
    )
    refused: Items[RefusedExpect] = key((), "Engine agent: calls that were not executed, in order.")
    nudges: Items[str] = key((), "Engine agent: the failures that were nudged, in order.")
    steps_done: Items[str] = key((), "Engine agent: tools of the steps done, in order.")
    steps_open: Items[str] = key((), "Engine agent: tools of required steps still open.")
    cached_share: Annotated[float, Field(ge=0, le=1)] | None = key(
        None,
        "Engine agent: share of prompt tokens that a prefix cache would hit, to 3 decimals; null: "
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
    """Expectations on one item of the work queue."""

    status: ItemStatus = key("READY", "Status of the item.")
    owner: str | None = key(None, "Who holds the claim; null: nobody.")
    error: str | None = key(None, "Recorded error text; null: none.")


class WorldExpect(Part):
    """Expectations on the world outside the jobs."""

    items: dict[str, ItemExpect] = key(dict, "Work queue items by id.")
    ledger: Items[str] = key((), "All lines of the ledger of side effects, in order.")


class EventsExpect(Part):
    """Expectations on the raw trace; an event matches if it has all given keys with these values."""

    contains: Items[dict[str, JsonValue]] = key(
        (), "These events, in this order, possibly with others between."
    )
    excludes: Items[dict[str, JsonValue]] = key((), "No event matches any of these.")


class RunError(Part):
    """The error with which the run itself must fail."""

    type: str = key("", "Name of the error class, like `ScriptExhausted`.")
    contains: str = key("", "Part of its message.")

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise refused("expected type, contains or both")
        return self


class MetricsExpect(Part):
    """Metrics of the run (harness document §7) as `statek-sim metrics` computes them from its trace; null: unknown."""

    steps_per_task: float | None = key(None, "Steps of a task that ended.")
    tool_error_rate: float | None = key(None, "Calls that failed, of those executed.")
    loop_detections: float | None = key(None, "Number of detected loops.")
    tokens_per_subtask: float | None = key(None, "Tokens per completed subtask.")
    completion_rate: float | None = key(None, "Tasks completed, of those that ended.")
    escalation_rate: float | None = key(None, "Tasks that were escalated.")
    checkpoint_restores: float | None = key(None, "Runs resumed from a checkpoint.")
    guard_blocks_per_task: float | None = key(None, "Texts that guards blocked.")
    step_latency_p95: float | None = key(None, "Seconds of a step, its 95th percentile.")


class Expect(Part):
    """Expectations on a whole run."""

    llm_calls: Count = key(0, "Requests sent over all jobs, retries included.")
    idle: bool = key(False, "The run ended with jobs still waiting.")
    jobs: dict[str, JobExpect] = key(dict, "Expectations by job name.")
    world: WorldExpect = key(WorldExpect, "Expectations on the world.")
    claims_leaked: Count = key(0, "Items still claimed though every job is DONE.")
    handlers: Items[HandlerExpect] = key((), "Error handler calls over all jobs, in order.")
    usage: UsageExpect = key(UsageExpect, "Totals of the scenario.")
    metrics: MetricsExpect = key(MetricsExpect, "Metrics of the run.")
    events: EventsExpect = key(EventsExpect, "Conditions on the raw trace.")
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = key("", "SHA-256 of the trace.")
    error: RunError | None = key(None, "The run must fail with this error; null: must not fail.")
