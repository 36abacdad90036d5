"""Parts of the format for engine two scenarios only: tools, offers, steps and harness settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from statek_sim.agent.option_names import COMPACTION_STEP_NAMES, Access, CompactionStepName
from statek_sim.scenario.part import (
    READER_PATTERN,
    CallableName,
    Count,
    Items,
    Part,
    PartOrText,
    Positive,
    Seconds,
    also_text,
    exactly_one,
    key,
    refused,
)
from statek_sim.scenario.permissions import PermissionsText
from statek_sim.scenario.reply import Repeat

AgentProfile = Literal["hardened"]
"""The only profile for agents, which have a single behaviour."""

ReaderName = Annotated[str, Field(pattern=READER_PATTERN)]

AgentStop = Literal[
    "max_iterations",
    "max_nudges",
    "tool_errors",
    "budget_tokens",
    "budget_cost",
    "budget_seconds",
    "budget_steps",
    "stuck",
    "blocked",
    "context_overflow",
    "unsolved",
]
"""Engine two's stop reasons besides `final`, `crash` and the harness limits."""


class LayersText(Part):
    """Layers added to the system block after the agent's `prompt`, from general to specific (agent document §4)."""

    project: str = key("", "Project instructions, such as the content of AGENTS.md.")
    files: dict[str, str] = key(
        dict, "A project's files by path; AGENTS.md and CLAUDE.md files are added after `project`."
    )
    folder: str = key("", "With `files`: the project folder in which the agent works.")
    handoff: str = key("", "With `files`: the handoff file to resume; its content is added after `session`.")
    session: str = key("", "Constraints for the session.")
    environment: str = key("", "Information about the environment.")


class OfferText(Part):
    """Selects the offered tools; all given conditions must match (harness document §2)."""

    task: str | None = key(None, "The task type, one of `task_types`.")
    all_tags: Items[str] | None = key(None, "Tools with all of these tags.")
    any_tag: Items[str] | None = key(None, "Tools with at least one of these tags.")


class StepText(PartOrText):
    """A step in the workflow; a plain string is a required step with this tool."""

    text_key = "tool"

    tool: str = Field(description="The tool that must succeed.")
    times: Positive = key(1, "How often the tool must succeed.")
    required: bool = key(True, "Whether the final answer requires this step.")
    after: Items[str] = key((), "Tools that must have succeeded before.")

    model_config = ConfigDict(json_schema_extra=also_text("StepText", "The tool that must succeed."))


class StepsText(Part):
    """The steps of an agent's workflow (agent document §6)."""

    order: Literal["ordered", "any"] = key("ordered", "The allowed order of steps.")
    steps: Items[StepText] = key((), "The steps.")
    helpers: Items[str] | None = key(None, "Other tools that may be called while steps are open; null: all.")


class PricesText(Part):
    """A model's price, in US dollars per million tokens."""

    prompt_price: Annotated[float, Field(ge=0)] = Field(description="Price of prompt tokens.")
    completion_price: Annotated[float, Field(ge=0)] = Field(description="Price of completion tokens.")


class BudgetText(Part):
    """A run's budget (harness document §3.4); null means unlimited."""

    tokens: Count | None = key(None, "Prompt and completion tokens.")
    cost: Annotated[float, Field(ge=0)] | None = key(None, "US dollars.")
    seconds: Seconds | None = key(None, "Virtual seconds.")
    steps: Count | None = key(None, "Requests and tool calls.")
    answer_tokens: Count = key(1024, "Tokens reserved for each answer.")
    prompt_price: Annotated[float, Field(ge=0)] | None = key(None, "US dollars per million prompt tokens.")
    completion_price: Annotated[float, Field(ge=0)] | None = key(
        None, "US dollars per million completion tokens."
    )

    model_prices: Mapping[str, PricesText] = key(
        {}, "Prices of other models that the run calls, such as judges or a summarizer, keyed by name."
    )

    @model_validator(mode="after")
    def _money_has_prices(self) -> Self:
        if self.model_prices and (self.prompt_price is None or self.completion_price is None):
            raise refused("model_prices requires prompt_price and completion_price")
        if self.cost is not None and (self.prompt_price is None or self.completion_price is None):
            raise refused("cost requires prompt_price and completion_price")
        return self


class VramText(Part):
    """The GPUs for a local model; their memory determines the context budget (agent document §5)."""

    model: str = Field(description="A model known to `statek-sim limits --card`.")
    free: Items[Count] = Field(min_length=1, description="Free memory per GPU, in MiB.")
    kv: Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"] = key(
        "f16", "Data type of the KV cache."
    )


class ContextText(Part):
    """Token limits for prompts, and how longer histories are shortened (agent document §5)."""

    budget: Positive = key(8192, "Tokens for a prompt and its answer.")
    vram: VramText | None = key(None, "GPUs that determine the budget; replaces `budget`.")
    reserve: Count = key(1024, "The part of the budget reserved for the answer.")
    target: Positive | None = key(
        None, "Size to which a compaction reduces the prompt; null: half of the budget minus the reserve."
    )
    keep: Count = key(4, "Number of newest turns that stay unchanged as long as possible.")
    pinned: Items[Annotated[str, Field(min_length=1)]] = key(
        (), "Messages that contain one of these strings are never changed."
    )
    steps: Items[CompactionStepName] = key(
        COMPACTION_STEP_NAMES, "The compaction steps, in order.", min_length=1
    )
    summary: str = key("rule", "Who writes summaries: `rule`, or an agent in this scenario.")
    max_summary: Positive = key(512, "Maximum tokens in a summary.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.vram is not None and self.said("budget"):
            raise refused("expected either budget or vram, not both")
        room = self.budget - self.reserve
        # The room in cards is known only when the model is read.
        if self.vram is None and room < 1:
            raise refused(f"reserve {self.reserve} leaves no room in the budget {self.budget} for a prompt")
        if self.vram is None and self.target is not None and self.target > room:
            raise refused(f"target {self.target} exceeds the budget minus the reserve, {room}")
        if self.said("summary") and "summarise" not in self.steps:
            raise refused("`summary` requires the step `summarise` in `steps`")
        return self


class ApprovalText(PartOrText):
    """The question that a person must answer before a call; a plain string is the question."""

    text_key = "question"

    question: str = key(
        "", "The question, with the call's {arguments}; empty: asks whether the tool may be called."
    )
    within: Seconds | None = key(None, "Virtual seconds after which the call is denied; null: no deadline.")

    model_config = ConfigDict(json_schema_extra=also_text("ApprovalText", "The question."))


class GuardText(PartOrText):
    """A built-in guard with its settings, your own guard, or the guards in a TOML file.

    A plain string is the name of a built-in guard, or `module:attribute`.
    """

    text_key = "guard"

    guard: str = key("", "A built-in guard's name, or `module:attribute`.")
    file: str = key("", "A TOML file with [[guards]] tables, relative to this scenario file.")

    model_config = ConfigDict(
        extra="allow", json_schema_extra=also_text("GuardText", "A shipped guard, or module:attribute.")
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.guard) == bool(self.file):
            raise refused("expected exactly one of guard, file")
        others = ", ".join(self.model_extra or ())
        if others and (self.file or self.is_own):
            raise refused(f"{others} is only allowed with a shipped guard")
        return self

    @property
    def is_own(self) -> bool:
        """Whether the guard is a user's `module:attribute`."""
        return ":" in self.guard

    @property
    def entry(self) -> dict[str, Any]:
        """A built-in guard's name and settings, as in a TOML file."""
        return {"guard": self.guard, **(self.model_extra or {})}


class AudienceText(Part):
    """Who uses the agent, and where; guards can be limited to tiers and environments, and calls to roles."""

    role: str = key("", "The user's role.")
    tier: str = key("", "The user's tier; empty: unknown, so guards for all tiers apply.")
    environment: str = key(
        "",
        "Where the agent runs, such as `production`; empty: unknown, so guards for all environments apply.",
    )


class LevelText(Part):
    """A level in a ladder: a model, or a person if `model` is null."""

    name: str = Field(min_length=1, description="Name of the level.")
    model: str | None = key(None, "The model; null: a person, which must be the last level.")
    attempts: Count = key(1, "Number of attempts at this level.")
    adds: str = key("", "Text added to the task, such as examples or instructions for dividing it.")
    carry: Literal["nothing", "reason", "best"] = key(
        "nothing",
        "What an attempt is given: nothing, why the previous attempt failed, or also the best answer so far.",
    )
    price: Annotated[float, Field(ge=0)] | None = key(
        None, "The model's price, in US dollars per million tokens."
    )
    question: str = key("{task}", "The question for the person, with {task} and {attempts}.")
    within: Seconds | None = key(None, "Virtual seconds for the person's answer; null: no limit.")


class SlotsText(Part):
    """How many runs can use a model at the same time, and which one goes next (agent document §9)."""

    slots: Positive = key(1, "Number of runs that can work at the same time.")
    waiting: Count | None = key(50, "Maximum number of waiting runs; null: no limit.")
    aging: Seconds | None = key(
        60.0, "Virtual seconds of waiting that equal one priority level; null: waiting doesn't count."
    )
    share: Seconds | None = key(
        1.0, "Delay in virtual seconds for each additional waiting run from the same submitter; null: none."
    )
    preempts: Literal["never", "step"] = key(
        "step", "Whether a more urgent run takes the slot before a working run's next request."
    )
    full: Literal["displace", "refuse"] = key(
        "displace", "Which run is rejected when too many wait: the last in order, or the new one."
    )


class EscalationText(Part):
    """Escalation if a task is not solved (harness document §5)."""

    levels: Items[LevelText] = Field(min_length=1, description="The levels, in order.")
    contains: Items[Annotated[str, Field(min_length=1)]] = key(
        (), "Strings that a correct answer must contain."
    )
    checks: Items[CallableName] = key(
        (), "Functions that check answers, as `module:attribute`, called with the task and the answer."
    )
    backoff: Seconds = key(3.0, "Virtual seconds to wait after a temporary failure, doubled each time.")
    longest: Seconds = key(60.0, "Maximum wait, in virtual seconds.")


class HarnessText(Part):
    """Settings for the harness around an agent."""

    max_iterations: Positive = key(20, "Maximum number of iterations.")
    nudges: Count = key(3, "Consecutive nudges before the run fails.")
    nudges_in_all: Count | None = key(
        12, "Maximum number of nudges in the run, regardless of progress; null: no limit."
    )
    tool_timeout: Seconds | None = key(30.0, "Default timeout for tools, in virtual seconds; null: none.")
    retry_provider: bool = key(True, "Whether temporary provider failures are retried (behaviour 8).")
    budget: BudgetText = key(BudgetText, "The run's budget.")
    commits: bool = key(False, "Whether the loop commits its state at every commit point.")
    guards: Items[GuardText] = key(
        (), "Guards, in this order: built-in guards by name, or `module:attribute`."
    )
    audience: AudienceText = key(AudienceText, "The user and the environment, for guards.")
    watchers: Items[CallableName] = key(
        (), "Watchers: `module:attribute`, called once per run to create the watcher."
    )
    gates: Items[CallableName] = key((), "Gates: `module:attribute`, called once per run to create the gate.")
    approvals: dict[str, ApprovalText] = key(
        dict, "Tools whose calls a person must allow, with the question."
    )
    permissions: PermissionsText | None = key(None, "What calls may access; null: everything.")
    reader: ReaderName | None = key(
        None, "The reader for calls written as text: `rescue`, or `module:attribute`."
    )
    dialect: str | None = key(
        None, "The format in which the model writes calls as text; null: derived from its name, if known."
    )
    chooser: CallableName | None = key(
        None, "The function that chooses each turn's tools: `module:attribute`."
    )
    compactor: CallableName | None = key(None, "The function that shortens the history: `module:attribute`.")
    context: ContextText | None = key(
        None, "The prompt budget, enforced by shortening the history; null: none."
    )
    escalation: EscalationText | None = key(None, "Escalation if a task is not solved; null: none.")


_ONE_END: Final[list[JsonValue]] = [{"required": ["result"]}, {"required": ["error"]}]


class ToolResultText(Part):
    """A scripted tool's answer to a call."""

    model_config = ConfigDict(json_schema_extra={"oneOf": _ONE_END})

    result: JsonValue = key(
        None, "The result; {$argument: NAME} and {$state: KEY} are replaced by their values."
    )
    error: str = key("", "The exception to raise, as `Type: message` or a message.")
    takes: Seconds = key(0.0, "Virtual seconds before the result.")
    when: dict[str, JsonValue] | None = key(
        None, "Use the result only for calls with these arguments; other arguments are ignored."
    )
    sets: dict[str, JsonValue] = key(dict, "Values that later results can use as {$state: KEY}.")
    repeat: Repeat = key(1, "How often the result is used; 'forever': any number of times.")

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        exactly_one(self, ("result", "error"))
        return self


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


class ToolText(Part):
    """A tool: its description for the model, and its results as data or your own code."""

    description: str = key("", "The description for the model.")
    parameters: dict[str, JsonValue] = key(_object, "JSON Schema (2020-12) for the arguments.")
    tags: Items[str] = key((), "Tags for selecting tools.")
    timeout: Seconds | None = key(None, "Timeout in virtual seconds; null: the harness's `tool_timeout`.")
    server: str | None = key(None, "The tool's MCP server; the tool is then named SERVER__NAME.")
    result: JsonValue = key(None, "Shorthand for a single result that repeats forever.")
    error: str = key("", "Shorthand for a single error that is always raised.")
    takes: Seconds = key(0.0, "With `result` or `error`: virtual seconds before the result.")
    results: Items[ToolResultText] = key(
        (), "Results, in this order; each must be used, and there must be enough for all calls."
    )
    call: CallableName = key("", "A function, `module:attribute`, that implements the tool.")
    asks: str = key("", "A question for a person, with the call's {arguments}; the answer is the result.")
    access: dict[str, Access] = key(
        dict, "Arguments that are paths, hosts or commands: `read`, `write`, `host` or `command`."
    )
    sandboxed: bool = key(False, "Whether the tool's commands run in a sandbox.")
    within: Seconds | None = key(None, "With `asks`: virtual seconds for the answer; null: no limit.")
    after_crash: Literal["ask", "again", "happened", "did_not_happen"] = key(
        "ask",
        "What to do if the process died during a call: ask a person; call the tool again; or act as if "
        "the tool's own check had found that the call happened (with its result) or did not happen.",
    )

    @model_validator(mode="after")
    def _one_behaviour(self) -> Self:
        given = exactly_one(self, ("result", "error", "results", "call", "asks"))
        if self.said("within") and given != "asks":
            raise refused("within requires asks")
        properties = self.parameters.get("properties")
        for name in self.access:
            if not isinstance(properties, dict) or name not in properties:
                raise refused(f"access names {name!r}, which is not a parameter")
        if self.said("takes") and given not in ("result", "error"):
            raise refused("takes requires result or error; otherwise, give it in each entry of results")
        return self


class ServerText(Part):
    """An MCP server for tools with `server: NAME`: its tool list, faults and timeout.

    If no such server is declared, these tools are registered like any others, under their full names.
    """

    listed: Items[str] | None = key(
        None, "The tools that the server lists at first, by their own names; null: all."
    )
    faults: Items[str] = key((), "Faults, `KIND[:TOOL][@N][=VALUE]`, as for `statek-sim serve mcp --fault`.")
    prefix: str | None = key(None, "Prefix for the tools' names; empty: none; null: the server's name.")
    call: Annotated[float, Field(gt=0)] = key(20.0, "Timeout per call, in virtual seconds.")
    text: Positive = key(200_000, "Maximum number of characters in a result for the model.")
    restarts: Count = key(1, "How often the server is restarted after it dies.")


class RefusedExpect(Part):
    """A call that was not executed; only the given keys are compared."""

    name: str | None = key(None, "The tool's name.")
    failure: str | None = key(None, "The failure's name, such as `unknown_tool`.")
    reason: str | None = key(None, "What the model receives as the result.")
