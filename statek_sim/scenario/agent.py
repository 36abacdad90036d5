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
    """The layers of the system block after the agent's `prompt`, from general to specific (agent document §4)."""

    project: str = key("", "Project instructions, like the content of AGENTS.md.")
    files: dict[str, str] = key(
        dict, "Files of a project by their paths; AGENTS.md and CLAUDE.md among them follow `project`."
    )
    folder: str = key("", "With `files`: the project folder in which the agent works.")
    handoff: str = key("", "With `files`: the handoff file that is resumed; what it says follows `session`.")
    session: str = key("", "Constraints of the session.")
    environment: str = key("", "Information about the environment.")


class OfferText(Part):
    """Which tools are offered; all given conditions must match (harness document §2)."""

    task: str | None = key(None, "Type of task, one of `task_types`.")
    all_tags: Items[str] | None = key(None, "Tools with all of these tags.")
    any_tag: Items[str] | None = key(None, "Tools with at least one of these tags.")


class StepText(PartOrText):
    """One step of the workflow; a plain string is a required step with this tool."""

    text_key = "tool"

    tool: str = Field(description="The tool that has to succeed.")
    times: Positive = key(1, "How often.")
    required: bool = key(True, "Whether the final answer requires it.")
    after: Items[str] = key((), "Tools that must have succeeded before.")

    model_config = ConfigDict(json_schema_extra=also_text("StepText", "The tool that has to succeed."))


class StepsText(Part):
    """The steps of an agent's workflow (agent document §6)."""

    order: Literal["ordered", "any"] = key("ordered", "The allowed order of steps.")
    steps: Items[StepText] = key((), "The steps.")
    helpers: Items[str] | None = key(
        None, "Tools beside the steps that may be called while steps are open; null: all."
    )


class PricesText(Part):
    """A model's price, in US dollars per million tokens."""

    prompt_price: Annotated[float, Field(ge=0)] = Field(description="Of prompts.")
    completion_price: Annotated[float, Field(ge=0)] = Field(description="Of completions.")


class BudgetText(Part):
    """A run's budget (harness document §3.4); null means unlimited."""

    tokens: Count | None = key(None, "Tokens, prompts and completions.")
    cost: Annotated[float, Field(ge=0)] | None = key(None, "US dollars.")
    seconds: Seconds | None = key(None, "Virtual seconds.")
    steps: Count | None = key(None, "Requests and tool calls.")
    answer_tokens: Count = key(1024, "Tokens reserved for each answer.")
    prompt_price: Annotated[float, Field(ge=0)] | None = key(None, "US dollars per million prompt tokens.")
    completion_price: Annotated[float, Field(ge=0)] | None = key(
        None, "US dollars per million completion tokens."
    )

    model_prices: Mapping[str, PricesText] = key(
        {}, "Prices of other models that the run calls, by name: judges, a summarizer."
    )

    @model_validator(mode="after")
    def _money_has_prices(self) -> Self:
        if self.model_prices and (self.prompt_price is None or self.completion_price is None):
            raise refused("model_prices requires prompt_price and completion_price")
        if self.cost is not None and (self.prompt_price is None or self.completion_price is None):
            raise refused("cost requires prompt_price and completion_price")
        return self


class VramText(Part):
    """The graphics cards for a local model and its context, whose budget is what fits on them (agent document §5)."""

    model: str = Field(description="A model in the table of `statek-sim limits --card`.")
    free: Items[Count] = Field(min_length=1, description="Free MiB of each card.")
    kv: Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"] = key(
        "f16", "Data type of the KV cache."
    )


class ContextText(Part):
    """Limits of a prompt, in tokens, and how a longer history is shortened (agent document §5)."""

    budget: Positive = key(8192, "Tokens of a prompt and its answer.")
    vram: VramText | None = key(None, "Cards that determine the budget, instead of `budget`.")
    reserve: Count = key(1024, "The part of the budget reserved for the answer.")
    target: Positive | None = key(
        None, "Size to which a compaction reduces the prompt; null: half of the budget minus the reserve."
    )
    keep: Count = key(4, "Newest turns that stay unchanged as long as possible.")
    pinned: Items[Annotated[str, Field(min_length=1)]] = key(
        (), "Facts; a message that contains one of these texts is never changed."
    )
    steps: Items[CompactionStepName] = key(
        COMPACTION_STEP_NAMES, "The compaction steps, in order.", min_length=1
    )
    summary: str = key("rule", "Who writes summaries: `rule`, or an agent of this scenario.")
    max_summary: Positive = key(512, "Tokens of a summary.")

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
    """The question for a person before a call; a plain string is the question."""

    text_key = "question"

    question: str = key("", "The question, with the call's {arguments}; empty: whether it may be called.")
    within: Seconds | None = key(None, "Virtual seconds after which the call is refused; null: it waits.")

    model_config = ConfigDict(json_schema_extra=also_text("ApprovalText", "The question."))


class GuardText(PartOrText):
    """One guard: a shipped one by name with its settings, your own, or those in a TOML file.

    A plain string is the name of a shipped guard, or `module:attribute`.
    """

    text_key = "guard"

    guard: str = key("", "A shipped guard's name, or `module:attribute`.")
    file: str = key("", "A TOML file with tables [[guards]], relative to this scenario file.")

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
        """A shipped guard's name and settings, as in a TOML file."""
        return {"guard": self.guard, **(self.model_extra or {})}


class AudienceText(Part):
    """Who uses the agent, and where: guards may apply to some tiers and environments, calls to some roles."""

    role: str = key("", "The user's role.")
    tier: str = key("", "The user's tier; empty: unknown, and guards of all tiers apply.")
    environment: str = key(
        "", "Where the agent runs, like `production`; empty: unknown, and guards of all environments apply."
    )


class LevelText(Part):
    """One level of a ladder: a model, or a person if `model` is null."""

    name: str = Field(min_length=1, description="Name of the level.")
    model: str | None = key(None, "The model; null: a person, who is the last level.")
    attempts: Count = key(1, "How often the level is tried.")
    adds: str = key("", "Text added to the task: examples, or how to divide it.")
    carry: Literal["nothing", "reason", "best"] = key(
        "nothing",
        "What an attempt learns: nothing, why the previous one failed, or also the best answer so far.",
    )
    price: Annotated[float, Field(ge=0)] | None = key(None, "US dollars per million tokens of the model.")
    question: str = key("{task}", "The question for the person, with {task} and {attempts}.")
    within: Seconds | None = key(None, "Virtual seconds the person has; null: no limit.")


class SlotsText(Part):
    """How many runs a model serves at a time, and which is next (agent document §9)."""

    slots: Positive = key(1, "Runs that may work at a time.")
    waiting: Count | None = key(50, "How many more runs may wait; null: no limit.")
    aging: Seconds | None = key(
        60.0, "Virtual seconds of waiting that equal one level of priority; null: waiting does not count."
    )
    share: Seconds | None = key(
        1.0, "Virtual seconds by which a submitter's further waiting runs count as later; null: not at all."
    )
    preempts: Literal["never", "step"] = key(
        "step", "Whether a more urgent run gets the slot before a working run's next request."
    )
    full: Literal["displace", "refuse"] = key(
        "displace", "Which run is refused when too many wait: the last in order, or the new one."
    )


class EscalationText(Part):
    """Escalation when a task is not solved (harness document §5)."""

    levels: Items[LevelText] = Field(min_length=1, description="The levels, in order.")
    contains: Items[Annotated[str, Field(min_length=1)]] = key((), "Texts that a good answer contains.")
    checks: Items[CallableName] = key(
        (), "Judge of answers: `module:attribute`, called with the task and the answer."
    )
    backoff: Seconds = key(3.0, "Virtual seconds before an attempt after a temporary failure; they double.")
    longest: Seconds = key(60.0, "Maximum virtual seconds to wait.")


class HarnessText(Part):
    """Settings of the harness around an agent."""

    max_iterations: Positive = key(20, "Maximum iterations of the run.")
    nudges: Count = key(3, "Nudges before the run fails.")
    nudges_in_all: Count | None = key(12, "Total nudges of the run, regardless of progress; null: no limit.")
    tool_timeout: Seconds | None = key(30.0, "Default timeout of tools in virtual seconds; null: none.")
    retry_provider: bool = key(True, "Temporary failures of the provider are retried (behaviour 8).")
    budget: BudgetText = key(BudgetText, "The run's budget.")
    commits: bool = key(False, "The loop commits its state at every commit point.")
    guards: Items[GuardText] = key((), "Guards in this order: shipped ones by name, or `module:attribute`.")
    audience: AudienceText = key(AudienceText, "The user and the environment, for guards.")
    watchers: Items[CallableName] = key(
        (), "Watchers of turns: `module:attribute`, called once per run to create one."
    )
    gates: Items[CallableName] = key(
        (), "Gates before every call: `module:attribute`, called once per run to create one."
    )
    approvals: dict[str, ApprovalText] = key(
        dict, "Tools whose calls a person has to allow, with the question."
    )
    permissions: PermissionsText | None = key(None, "What calls may access; null: everything.")
    reader: ReaderName | None = key(None, "Reader of calls in text: `rescue`, or `module:attribute`.")
    dialect: str | None = key(
        None, "The format in which the model writes calls as text; null: known from its name, if at all."
    )
    chooser: CallableName | None = key(None, "Chooser of each turn's tools: `module:attribute`.")
    compactor: CallableName | None = key(None, "Compactor of the history: `module:attribute`.")
    context: ContextText | None = key(
        None, "A budget for prompts, kept by shortening the history; null: none."
    )
    escalation: EscalationText | None = key(None, "Escalation when a task is not solved; null: none.")


_ONE_END: Final[list[JsonValue]] = [{"required": ["result"]}, {"required": ["error"]}]


class ToolResultText(Part):
    """A scripted tool's answer to one call."""

    model_config = ConfigDict(json_schema_extra={"oneOf": _ONE_END})

    result: JsonValue = key(None, "The result; {$argument: NAME} and {$state: KEY} are replaced by values.")
    error: str = key("", "The exception it raises, `Type: message` or a message.")
    takes: Seconds = key(0.0, "Virtual seconds before the result.")
    when: dict[str, JsonValue] | None = key(
        None, "Use the result only for a call with these arguments; the call may have others too."
    )
    sets: dict[str, JsonValue] = key(dict, "Values for later results, as {$state: KEY}.")
    repeat: Repeat = key(1, "How often the result is used; 'forever': any number of times.")

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        exactly_one(self, ("result", "error"))
        return self


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


class ToolText(Part):
    """One tool of the registry: its description for the model, and its results as data or your own code."""

    description: str = key("", "Its description for the model.")
    parameters: dict[str, JsonValue] = key(_object, "JSON Schema (2020-12) of its arguments.")
    tags: Items[str] = key((), "Tags to select by.")
    timeout: Seconds | None = key(None, "Its timeout in seconds; null: the harness's.")
    server: str | None = key(None, "Its server; it is then named SERVER__NAME.")
    result: JsonValue = key(None, "Short for one result that repeats forever.")
    error: str = key("", "Short for one error that is raised forever.")
    takes: Seconds = key(0.0, "With `result` or `error`: virtual seconds before the result.")
    results: Items[ToolResultText] = key(
        (), "Results in this order; all must be used, and there must be enough."
    )
    call: CallableName = key("", "A function `module:attribute` that does the work.")
    asks: str = key("", "A question to a person, with the call's {arguments}; the answer is the result.")
    access: dict[str, Access] = key(
        dict, "Arguments that are paths, hosts or commands: `read`, `write`, `host` or `command`."
    )
    sandboxed: bool = key(False, "Its commands run in a sandbox.")
    within: Seconds | None = key(None, "With `asks`: virtual seconds to answer; null: no limit.")
    after_crash: Literal["ask", "again", "happened", "did_not_happen"] = key(
        "ask",
        "What to do about a call during which the process died: ask a person; call it again; "
        "or use the result of the tool's own check: happened, with its result, or not.",
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
    """An MCP server, for the tools with `server: NAME`: its list, its faults, its timeout.

    Without it, such a tool is registered like any other, under its full name.
    """

    listed: Items[str] | None = key(None, "The tools in its first list, by their own names; null: all.")
    faults: Items[str] = key((), "Faults, `KIND[:TOOL][@N][=VALUE]`, as for `statek-sim serve mcp --fault`.")
    prefix: str | None = key(None, "Prefix of its tools' names; empty: none; null: the server's name.")
    call: Annotated[float, Field(gt=0)] = key(20.0, "Timeout of one call in virtual seconds.")
    text: Positive = key(200_000, "Maximum characters of a result for the model.")
    restarts: Count = key(1, "How often the server is restarted after it died.")


class RefusedExpect(Part):
    """One call that was not executed; only given keys are compared."""

    name: str | None = key(None, "The tool's name.")
    failure: str | None = key(None, "The failure's name, like `unknown_tool`.")
    reason: str | None = key(None, "What the model reads as its result.")
