"""What only scenarios of engine two say: tools, what is offered, steps, settings of the harness, what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from statek_sim.agent.words import STEP_NAMES, Access, TierName
from statek_sim.scenario.part import (
    READER_PATTERN,
    CallableName,
    Count,
    Items,
    Part,
    Positive,
    Seconds,
    also_text,
    refused,
)
from statek_sim.scenario.permissions import PermissionsText
from statek_sim.scenario.reply import Repeat

AgentProfile = Literal["hardened"]
"""What takes the place of behaviour profiles for agents: they have one behaviour."""

ReaderName = Annotated[str, Field(pattern=READER_PATTERN)]

AGENT_STOPS: Final = (
    "max_iterations",
    "max_nudges",
    "budget_tokens",
    "budget_cost",
    "budget_seconds",
    "budget_steps",
    "stuck",
    "blocked",
    "context_overflow",
    "unsolved",
)
"""Why a run of engine two may end, beside `final`, `crash` and the limits of the harness."""


class LayersText(Part):
    """The layers of the system block after the agent's `prompt`, from general to specific (agent document §4)."""

    project: str = Field(default="", description="Project instructions, like the content of AGENTS.md.")
    files: dict[str, str] = Field(
        default_factory=dict,
        description="Files of a project by their paths; AGENTS.md and CLAUDE.md among them follow `project`.",
    )
    folder: str = Field(default="", description="With `files`: the folder of the project that is worked in.")
    handoff: str = Field(
        default="",
        description="With `files`: the handoff file that is resumed; what it says follows `session`.",
    )
    session: str = Field(default="", description="Constraints of the session.")
    environment: str = Field(default="", description="Information about the environment.")


class OfferText(Part):
    """Which tools are offered; everything that is said must fit (harness document §2)."""

    task: str | None = Field(default=None, description="Type of task, one of `task_types`.")
    all_tags: Items[str] | None = Field(default=None, description="Tools that have all of these tags.")
    any_tag: Items[str] | None = Field(default=None, description="Tools that have one of these tags.")


class StepText(Part):
    """One step of the workflow; a plain text is a required step of this tool."""

    tool: str = Field(description="The tool that has to succeed.")
    times: Positive = Field(default=1, description="How often.")
    required: bool = Field(default=True, description="The final answer waits for it.")
    after: Items[str] = Field(default=(), description="Tools that must have succeeded before.")

    model_config = ConfigDict(json_schema_extra=also_text("StepText", "The tool that has to succeed."))

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"tool": value} if isinstance(value, str) else value


class StepsText(Part):
    """The steps of an agent's workflow (agent document §6)."""

    order: Literal["ordered", "any"] = Field(default="ordered", description="In which order steps may come.")
    steps: Items[StepText] = Field(default=(), description="The steps.")
    helpers: Items[str] | None = Field(
        default=None, description="Tools beside the steps that may be called while steps are open; null: all."
    )


class PricesText(Part):
    """What a model costs, in US dollars per million tokens."""

    prompt_price: Annotated[float, Field(ge=0)] = Field(description="Of prompts.")
    completion_price: Annotated[float, Field(ge=0)] = Field(description="Of completions.")


class BudgetText(Part):
    """What a run may use (harness document §3.4); null: as much as it likes."""

    tokens: Count | None = Field(default=None, description="Tokens, prompts and completions.")
    cost: Annotated[float, Field(ge=0)] | None = Field(default=None, description="US dollars.")
    seconds: Seconds | None = Field(default=None, description="Virtual seconds.")
    steps: Count | None = Field(default=None, description="Requests and tool calls.")
    answer_tokens: Count = Field(default=1024, description="Room that is reserved for each answer.")
    prompt_price: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="US dollars per million prompt tokens."
    )
    completion_price: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="US dollars per million completion tokens."
    )

    model_prices: Mapping[str, PricesText] = Field(
        default={},
        description="Prices of other models that the run asks, by their names: judges, one that sums up.",
    )

    @model_validator(mode="after")
    def _money_has_prices(self) -> Self:
        if self.model_prices and (self.prompt_price is None or self.completion_price is None):
            raise refused("model_prices needs prompt_price and completion_price")
        if self.cost is not None and (self.prompt_price is None or self.completion_price is None):
            raise refused("cost needs prompt_price and completion_price")
        return self


class VramText(Part):
    """The cards that a local model and its context share: the budget is what fits (agent document §5)."""

    model: str = Field(description="A model of the table of `statek-sim limits --card`.")
    free: Items[Count] = Field(min_length=1, description="Free MiB of each card.")
    kv: Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"] = Field(
        default="f16", description="Type of the cache's numbers."
    )


class ContextText(Part):
    """What a prompt may have, in tokens, and how a history is made shorter that has more (agent document §5)."""

    budget: Positive = Field(default=8192, description="Tokens of a prompt and the room for its answer.")
    vram: VramText | None = Field(default=None, description="Cards that the budget is made of, in its place.")
    reserve: Count = Field(default=1024, description="Of these, the room for the answer.")
    target: Positive | None = Field(
        default=None,
        description="Tokens that a step comes down to; null: half of the budget less the reserve.",
    )
    keep: Count = Field(
        default=4, description="Newest turns that stay as they are while there is anything else."
    )
    pinned: Items[Annotated[str, Field(min_length=1)]] = Field(
        default=(), description="Facts; what holds one of these texts is never touched."
    )
    steps: Items[TierName] = Field(default=STEP_NAMES, min_length=1, description="The steps in their order.")
    summary: str = Field(
        default="rule", description="Who writes summaries: `rule`, or an agent of this scenario."
    )
    max_summary: Positive = Field(default=512, description="Tokens of a summary.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.vram is not None and self.said("budget"):
            raise refused("budget and vram both say how much fits; expected one of them")
        room = self.budget - self.reserve
        # How much fits into cards is known when the model is read.
        if self.vram is None and room < 1:
            raise refused(f"reserve {self.reserve} leaves nothing of budget {self.budget} for a prompt")
        if self.vram is None and self.target is not None and self.target > room:
            raise refused(f"target {self.target} is over budget less reserve, {room}")
        if self.said("summary") and "summarise" not in self.steps:
            raise refused("summary goes with the step summarise, which steps does not have")
        return self


class ApprovalText(Part):
    """What a person is asked before a call; a plain text is the question."""

    question: str = Field(
        default="", description="The question, with the call's {arguments}; empty: whether it may be called."
    )
    within: Seconds | None = Field(
        default=None, description="Virtual seconds after which the call is refused; null: it waits."
    )

    model_config = ConfigDict(json_schema_extra=also_text("ApprovalText", "The question."))

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"question": value} if isinstance(value, str) else value


class GuardText(Part):
    """One guard: a shipped one by name with its settings, one of your own, or those of a TOML file.

    A plain text is the name of a shipped one, or `module:attribute`.
    """

    guard: str = Field(default="", description="A shipped guard's name, or `module:attribute`.")
    file: str = Field(
        default="", description="A TOML file with tables [[guards]], from the folder of this scenario file."
    )

    model_config = ConfigDict(
        extra="allow", json_schema_extra=also_text("GuardText", "A shipped guard, or module:attribute.")
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"guard": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.guard) == bool(self.file):
            raise refused("expected exactly one of guard, file")
        others = ", ".join(self.model_extra or ())
        if others and (self.file or self.is_own):
            raise refused(f"{others} goes with a shipped guard")
        return self

    @property
    def is_own(self) -> bool:
        """Whether it is `module:attribute`."""
        return ":" in self.guard

    @property
    def entry(self) -> dict[str, Any]:
        """A shipped guard's name and settings, as in a TOML file."""
        return {"guard": self.guard, **(self.model_extra or {})}


class AudienceText(Part):
    """Who uses the agent, and where: guards may be for some tiers and environments, calls for some roles."""

    role: str = Field(default="", description="The user's role.")
    tier: str = Field(
        default="", description="The user's tier; empty: unknown, and guards of all tiers apply."
    )
    environment: str = Field(
        default="",
        description="Where the agent runs, like `production`; empty: unknown, and guards of everywhere apply.",
    )


class LevelText(Part):
    """One level of a ladder: a model, or a person where `model` is null."""

    name: str = Field(min_length=1, description="What the level is called.")
    model: str | None = Field(default=None, description="The model; null: a person, who is the last level.")
    attempts: Count = Field(default=1, description="How often the level is tried.")
    adds: str = Field(default="", description="What is added to the task: examples, or how to take it apart.")
    carry: Literal["nothing", "reason", "best"] = Field(
        default="nothing",
        description="What an attempt is told: nothing, why the one before failed, or the best answer so far too.",
    )
    price: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="US dollars per million tokens of the model."
    )
    question: str = Field(
        default="{task}", description="What the person is asked, with {task} and {attempts}."
    )
    within: Seconds | None = Field(
        default=None, description="Virtual seconds the person has; null: as long as it takes."
    )


class SlotsText(Part):
    """How many runs a model serves at a time, and who is next (agent document §9)."""

    slots: Positive = Field(default=1, description="Runs that may work at a time.")
    waiting: Count | None = Field(default=50, description="Runs that may wait beside them; null: any number.")
    aging: Seconds | None = Field(
        default=60.0,
        description="Virtual seconds of waiting that are worth one level of priority; null: none are.",
    )
    share: Seconds | None = Field(
        default=1.0,
        description="Virtual seconds by which a submitter's next waiting run counts as later; null: none.",
    )
    preempts: Literal["never", "step"] = Field(
        default="step",
        description="Whether a more urgent run has the slot before the next request of one that works.",
    )
    full: Literal["displace", "refuse"] = Field(
        default="displace",
        description="Who goes when one too many waits: who would be last, or the newcomer.",
    )


class EscalationText(Part):
    """Who is asked next when a task is not solved (harness document §5)."""

    levels: Items[LevelText] = Field(min_length=1, description="The levels, the first one first.")
    contains: Items[Annotated[str, Field(min_length=1)]] = Field(
        default=(), description="Texts that a good answer has."
    )
    checks: Items[CallableName] = Field(
        default=(), description="What judges answers: `module:attribute`, given the task and the answer."
    )
    backoff: Seconds = Field(
        default=3.0,
        description="Virtual seconds before an attempt after a failure that time may cure; they double.",
    )
    longest: Seconds = Field(default=60.0, description="Virtual seconds that are waited at most.")


class HarnessText(Part):
    """Settings of the harness around an agent."""

    max_iterations: Positive = Field(default=20, description="Iterations before the run is given up.")
    nudges: Count = Field(default=3, description="Nudges before the run fails.")
    nudges_in_all: Count | None = Field(
        default=12, description="Nudges of the run in all, whatever progress it makes; null: any number."
    )
    tool_timeout: Seconds | None = Field(
        default=30.0, description="Virtual seconds a tool may take that says nothing itself; null: for ever."
    )
    retry_provider: bool = Field(
        default=True, description="Temporary failures of the provider are tried again (behaviour 8)."
    )
    budget: BudgetText = Field(default_factory=BudgetText, description="What the run may use.")
    commits: bool = Field(default=False, description="The loop commits its state at every commit point.")
    guards: Items[GuardText] = Field(
        default=(), description="Guards in this order: shipped ones by name, or `module:attribute`."
    )
    audience: AudienceText = Field(
        default_factory=AudienceText, description="Whom and where the guards have before them."
    )
    watchers: Items[CallableName] = Field(
        default=(), description="What looks at every turn: `module:attribute`, called once per run for one."
    )
    gates: Items[CallableName] = Field(
        default=(),
        description="What stands before every call: `module:attribute`, called once per run for one.",
    )
    approvals: dict[str, ApprovalText] = Field(
        default_factory=dict, description="Tools whose calls a person has to allow, with what is asked."
    )
    permissions: PermissionsText | None = Field(
        default=None, description="What calls may touch; null: everything that is offered."
    )
    reader: ReaderName | None = Field(
        default=None, description="What finds calls in text: `rescue`, or `module:attribute`."
    )
    dialect: str | None = Field(
        default=None,
        description="The format in which the model writes calls as text; null: the one that its name says, if any.",
    )
    chooser: CallableName | None = Field(
        default=None, description="What chooses each turn's tools: `module:attribute`."
    )
    compactor: CallableName | None = Field(
        default=None, description="What makes the history shorter: `module:attribute`."
    )
    context: ContextText | None = Field(
        default=None, description="A budget for prompts, held by making the history shorter; null: none."
    )
    escalation: EscalationText | None = Field(
        default=None, description="Who is asked next when a task is not solved; null: nobody."
    )


_ONE_END: Final[list[JsonValue]] = [{"required": ["result"]}, {"required": ["error"]}]


class ToolResultText(Part):
    """What a scripted tool answers to one call."""

    model_config = ConfigDict(json_schema_extra={"oneOf": _ONE_END})

    result: JsonValue = Field(
        default=None, description="The result; {$argument: NAME} and {$state: KEY} stand for values."
    )
    error: str = Field(default="", description="The exception it raises, `Type: message` or a message.")
    takes: Seconds = Field(default=0.0, description="Virtual seconds until then.")
    when: dict[str, JsonValue] | None = Field(
        default=None, description="Only for a call with these arguments; others may come with them."
    )
    sets: dict[str, JsonValue] = Field(
        default_factory=dict, description="Values that later results can show as {$state: KEY}."
    )
    repeat: Repeat = Field(default=1, description="How often it is given; 'forever' for as long as asked.")

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.said("result") == self.said("error"):
            raise refused("expected exactly one of result, error")
        return self


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


class ToolText(Part):
    """One tool of the registry: what the model reads, and what it does: results as data, or code of your own."""

    description: str = Field(default="", description="What the model reads about it.")
    parameters: dict[str, JsonValue] = Field(
        default_factory=_object, description="JSON Schema (2020-12) of its arguments."
    )
    tags: Items[str] = Field(default=(), description="Tags to select by.")
    timeout: Seconds | None = Field(default=None, description="Seconds it may take; null: the harness's.")
    server: str | None = Field(
        default=None, description="The server it comes from; its name is SERVER__NAME then."
    )
    result: JsonValue = Field(default=None, description="Short for one result that is given forever.")
    error: str = Field(default="", description="Short for one error that is raised forever.")
    takes: Seconds = Field(default=0.0, description="With `result` or `error`: seconds until then.")
    results: Items[ToolResultText] = Field(
        default=(), description="Results in this order; all must be used, and none may be missing."
    )
    call: CallableName = Field(default="", description="A function `module:attribute` that does the work.")
    asks: str = Field(
        default="",
        description="A person is asked this, with the call's {arguments}; the answer is the result.",
    )
    access: dict[str, Access] = Field(
        default_factory=dict,
        description="Arguments that are paths, hosts or commands: `read`, `write`, `host` or `command`.",
    )
    sandboxed: bool = Field(default=False, description="Its commands run in a sandbox.")
    within: Seconds | None = Field(
        default=None, description="With `asks`: virtual seconds to answer; null: as long as it takes."
    )
    after_crash: Literal["ask", "again", "happened", "did_not_happen"] = Field(
        default="ask",
        description="What becomes of a call that the process died in: a person is asked; it is called again; "
        "or the tool's own check says that it happened, with the result it gave, or did not.",
    )

    @model_validator(mode="after")
    def _one_behaviour(self) -> Self:
        ways = ("result", "error", "results", "call", "asks")
        given = [key for key in ways if self.said(key)]
        if len(given) != 1:
            raise refused(f"expected exactly one of {', '.join(ways)}; got {' and '.join(given) or 'none'}")
        if self.said("within") and given[0] != "asks":
            raise refused("within goes with asks")
        properties = self.parameters.get("properties")
        for name in self.access:
            if not isinstance(properties, dict) or name not in properties:
                raise refused(f"access names {name!r}, which is none of the parameters")
        if self.said("takes") and given[0] not in ("result", "error"):
            raise refused("takes goes with result or error; say it in each of results")
        return self


class ServerText(Part):
    """An MCP server that the tools with `server: NAME` come from: what it lists, what goes wrong, how long it may take.

    Without it such a tool is registered as any other, under its whole name.
    """

    listed: Items[str] | None = Field(
        default=None, description="Its tools that are listed at first, by their own names; null: all."
    )
    faults: Items[str] = Field(
        default=(),
        description="What goes wrong, `KIND[:TOOL][@N][=VALUE]`, as `statek-sim serve mcp --fault` takes it.",
    )
    prefix: str | None = Field(
        default=None,
        description="What goes before its tools' names; empty: nothing; null: the server's name.",
    )
    call: Annotated[float, Field(gt=0)] = Field(default=20.0, description="Virtual seconds of one call.")
    text: Positive = Field(default=200_000, description="Characters of a result that the model reads.")
    restarts: Count = Field(default=1, description="How often it is started again when it died.")


class RefusedExpect(Part):
    """One call that was not executed; only what is said is compared."""

    name: str | None = Field(default=None, description="The tool's name.")
    failure: str | None = Field(default=None, description="The failure's name, like `unknown_tool`.")
    reason: str | None = Field(default=None, description="What the model reads as its result.")
