"""The scenario file format `statek-sim/scenario@1` as types.

`ScenarioFile` describes a file as written. `load_paths` returns `Scenario`s: each has its file's defaults merged in, an
agent for every job, and its position in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, TypeAlias, get_args

from pydantic import ConfigDict, Field, JsonValue, SkipValidation

from statek_sim import semantics
from statek_sim.clock import FOREVER
from statek_sim.harness.limits import MAX_EXTENSION, MAX_LIMIT
from statek_sim.scenario.agent import (
    AgentProfile,
    HarnessText,
    LayersText,
    OfferText,
    ServerText,
    SlotsText,
    StepsText,
    ToolText,
)
from statek_sim.scenario.events import Deviation, Event
from statek_sim.scenario.expect import Expect, ItemStatus
from statek_sim.scenario.part import (
    Count,
    Id,
    Items,
    Moment,
    Name,
    Part,
    PartOrText,
    Positive,
    ToolName,
    also_text,
    key,
)
from statek_sim.scenario.reply import Reply

FORMAT: Final = "statek-sim/scenario@1"

Engine = Literal["statek", "agent"]
AGENT_PROFILES: Final[tuple[AgentProfile, ...]] = get_args(AgentProfile)
STATEK_PROFILES: Final[tuple[str, ...]] = tuple(semantics.PROFILES)
PROFILES: Final[tuple[str, ...]] = (*STATEK_PROFILES, *AGENT_PROFILES)
"""STATEK's behaviour profiles, then the agents' profile."""

if TYPE_CHECKING:
    Profile: TypeAlias = str
else:
    # A type created from a table: pydantic understands it, type checkers do not.
    Profile = Literal[PROFILES]

DEFAULT_PROFILES: Final = semantics.DEFAULT_PROFILES
ChatStyle = Literal["CONSOLE", "MARKDOWN", "MD_DIALOG", "DIRECT"]
Scalar = str | int | float | bool | None
Limit = Annotated[int, Field(ge=0, le=MAX_LIMIT)]
ServedName = Annotated[str, Field(min_length=1)]
Extension = Annotated[float, Field(ge=0, le=MAX_EXTENSION)]


class Limits(Part):
    """Harness limits that override the preset's; null: unlimited.

    Source: "Completion-Based Extension" in "Harness Policies".
    """

    max_turns: Limit | None = key(None, "Maximum number of LLM turns per job; null: unlimited.")
    max_exceptions: Limit | None = key(None, "Maximum number of exceptions per job; null: unlimited.")
    max_consecutive_exceptions: Limit | None = key(
        None, "Maximum number of consecutive LLM turns with an exception; null: unlimited."
    )
    max_token_usage: Limit | None = key(None, "Maximum number of estimated tokens per job; null: unlimited.")
    limit_extension_per_completion: Extension = key(
        0.0, "Extension of the limits per completed unit of work."
    )


class Budget(Part):
    """Overrides the limits on each block of model-written code."""

    loop_iterations: Positive = key(1_000_000, "Loop iterations.")
    allocation: Positive = key(64_000_000, "Estimated bytes that a block may create.")
    call_depth: Positive = key(250, "Maximum depth of nested calls.")


class QueueItem(PartOrText):
    """One item of the work queue; a plain string is an item with this id, ready and unowned."""

    text_key = "id"

    id: str = Field(description="The item's id.")
    status: ItemStatus = key("READY", "Initial status.")
    owner: str | None = key(None, "Initial owner of the claim.")

    model_config = ConfigDict(json_schema_extra=also_text("QueueItem", "The item's id."))


class Queue(Part):
    """The built-in world's durable work queue."""

    owner: str = key("worker-1", "The id of the built-in world's `owner` object.")
    items: Items[QueueItem] = key((), "Work items, in the order in which they are claimed.")


class World(Part):
    """The work queue and external events, which exist outside the jobs."""

    queue: Queue | None = key(None, "A durable work queue with owners and claims.")
    futures: Items[Name] = key((), "Names of external events that tools can wait for.")


class ReminderText(Part):
    """A reminder added to the conversation."""

    text: str = Field(description="Text of the reminder.")
    min_dialog_len: Count | None = key(None, "Minimum dialog length before the reminder is sent.")
    recurring: Literal[True] = key(
        True, "Whether it is sent after every final text; STATEK supports only `true`."
    )


class AgentText(Part):
    """An agent."""

    prompt: str = key("", "System prompt.")
    model: str = key("gpt-4o", "Model name, as in the agent's metadata.")
    chat_style: ChatStyle | None = key(
        None, "Chat style; null: the one in the settings, or the default for this kind of agent."
    )
    dialog: bool = key(False, "Whether this is a dialog agent, whose replies are delivered to the user.")
    tools: Items[ToolName] = key((), "Tools: names from the built-in world, or `module:attribute`.")
    tools_scope: str | None = key(None, "The LLM_TOOLS_SCOPE metadata, such as `ALL -panic`.")
    temperature: Annotated[float, Field(ge=0, le=1)] | None = key(None, "Sampling temperature.")
    warmup: str | None = key(None, "The agent's warmup, with blocks separated by `#----------` lines.")
    answer_tool: bool = key(True, "Whether a dialog agent has the `answer` tool.")
    reminder: ReminderText | None = key(None, "A reminder to the model.")
    metadata: dict[str, Scalar] = key(dict, "Additional prompt metadata, keyed by KEY.")
    layers: LayersText = key(LayersText, "Engine agent: layers added to the system block after `prompt`.")
    offer: OfferText = key(OfferText, "Engine agent: which tools to offer; default: all.")
    workflow: StepsText = key(StepsText, "Engine agent: steps required before the final answer.")
    harness: HarnessText = key(HarnessText, "Engine agent: harness settings.")


class JobText(Part):
    """A declared job."""

    agent: str | None = key(None, "The agent's role; optional if there is only one agent.")
    message: str | None = key(None, "First user message.")
    locals: dict[str, JsonValue] = key(
        dict,
        "Variables; {$world: owner|owner:ID|queue|item:ID|future:NAME} and {$job: NAME} refer to objects.",
    )
    warmup: str | None = key(None, "Dynamic warmup, run before the agent's.")
    parent: str | None = key(None, "The job that delegated this one, which must be declared earlier.")
    subtask: str | None = key(None, "Id of the parent's subtask that this job performs.")
    at: Moment = key(0.0, "Virtual second at which the job is created, unless a `start` event creates it.")
    priority: Annotated[int, Field(ge=1, le=10)] = key(
        5, "Engine agent, with `slots`: 1 (urgent) to 10 (background)."
    )
    submitter: str = key("", "Engine agent, with `slots`: who submitted the job; default: the job's name.")


class Shared(Part):
    """Keys that are allowed in both `defaults` and scenarios."""

    engine: Engine = key(
        "statek", "The engine that runs the scenario: STATEK jobs, or the tool-calling agent."
    )
    source: str = key("", "The document and section that the scenario is based on.")
    tags: Items[str] = key((), "Tags for selecting scenarios.")
    profiles: Items[Profile] = key(
        DEFAULT_PROFILES,
        f"Behaviour profiles under which the scenario runs; {', '.join(semantics.PART_OF)} only if named. "
        "Engine agent: only `hardened`.",
        min_length=1,
    )
    preset: str = key("default", "default, local, interactive, batch, or the path to a .env file.")
    limits: Limits = key(Limits, "Harness limits that override the preset.")
    settings: dict[str, Scalar] = key(dict, "Other STATEK settings, keyed by field name.")
    seed: int = key(0, "Seed for everything random.")
    order: Literal["fifo", "newest", "shuffled"] = key("fifo", "Order in which jobs run their steps.")
    max_concurrency: Positive = key(100, "Maximum number of concurrent job steps.")
    until: Annotated[float, Field(gt=0)] = key(
        FOREVER,
        "Virtual second at which the run ends, even if work remains; default: when nothing is left to do.",
    )
    budget: Budget = key(Budget, "Limits on model-written code.")
    world: World = key(World, "The work queue and the external events.")
    tools: dict[ServedName, ToolText] = key(dict, "Engine agent: tools, keyed by name.")
    servers: dict[Name, ServerText] = key(
        dict, "Engine agent: MCP servers, keyed by the name given in a tool's `server`."
    )
    task_types: dict[str, Items[str]] = key(dict, "Engine agent: tool names for each task type.")
    slots: SlotsText | None = key(
        None, "Engine agent: slots shared by its runs; null: runs don't wait for each other."
    )
    agents: dict[Name, AgentText] = key(dict, "Agents, keyed by role.")
    jobs: dict[Name, JobText] = key(
        dict,
        "Jobs, keyed by name, created in this order. Default without `loops`: `main`, for the only agent.",
    )
    loops: Items[Name] = key(
        (), "Roles of agents with an agentic loop, which creates a job per READY item in the queue."
    )
    script: dict[str, Items[Reply]] = key(dict, "Scripted replies per agent role, or per job as `job:NAME`.")
    events: Items[Event] = key((), "External events.")
    goes_bad: dict[Name, Positive] = key(
        dict,
        "Runaway jobs: maps a job's name to the LLM turn from which the job does more harm than good "
        "(1: from the start). The gate counts from that turn; the run itself is not affected.",
    )
    expect: Expect = key(Expect, "Expectations; only the given keys are checked.")
    expect_in: dict[Profile, Expect] = key(dict, "Expectations per profile, merged over `expect`.")


class Defaults(Shared):
    """A partial scenario that is merged into every scenario in the file."""


class ScenarioText(Shared):
    """A scenario as written, after the defaults are merged in."""

    id: Id = Field(description="Unique among all loaded scenarios.")
    title: Annotated[str, Field(min_length=1)] = Field(
        description="What the scenario shows, in one sentence."
    )
    proves: Items[str] = key((), "Ids of the normative statements that the scenario proves.")
    deviations: Items[Deviation] = key(
        (), "Deviations from the uninterrupted run, as written by `statek-sim explore`."
    )
    violates: str = key("", "The violated invariant, which `explore --replay` checks.")


class Scenario(ScenarioText):
    """A validated scenario, with an agent for every job and its position in a file."""

    suite: str = Field(description="The file's suite.")
    path: SkipValidation[Path] = Field(description="The file.")
    line: int = Field(description="Line of the scenario in the file, starting from 1.")
    file_digest: str = Field(description="SHA-256 of the file as it was read.")

    @classmethod
    def placed(
        cls,
        text: ScenarioText,
        jobs: Mapping[str, JobText],
        *,
        suite: str,
        path: Path,
        line: int,
        file_digest: str,
    ) -> Self:
        """Return the scenario for a validated `text`, with its jobs and its position in a file."""
        place = {"suite": suite, "path": path, "line": line, "file_digest": file_digest}
        if text.engine == "agent" and not text.said("profiles"):
            text = text.model_copy(update={"profiles": AGENT_PROFILES})
        values = {**text.__dict__, "jobs": dict(jobs), **place}
        return cls.model_construct(_fields_set={*text.model_fields_set, *place}, **values)

    @property
    def place(self) -> str:
        """The prefix of messages about the scenario: file, line and id."""
        return f"{self.path}:{self.line}: scenario {self.id!r}"

    def under(self, profile: Profile) -> Profile | None:
        """Return the profile for this scenario in a run of many scenarios under `profile`, or None if it has none.

        Commands that run many scenarios use `docs` by default; engine two's scenarios then run under `hardened`.
        """
        own: Profile = "hardened" if self.engine == "agent" and profile == "docs" else profile
        return own if own in self.profiles else None

    def compared_under(self, profile: Profile) -> bool:
        """Return whether this scenario is used to compare two runtimes under `profile`.

        A scenario for a release line is also used for a release in that line that has its own profile.
        """
        return profile in self.profiles or semantics.PART_OF.get(profile) in self.profiles


class FileHead(Part):
    """A scenario file without its scenarios; these are validated after the defaults are merged in."""

    suite: Id = key("", "Name of the suite.")
    defaults: Defaults = key(Defaults, "Defaults for every scenario.")
    scenarios: Items[dict[str, object]] = Field(
        min_length=1, description="The scenarios, before the defaults are merged in."
    )


class ScenarioFile(Part):
    """A scenario file as the published schema describes it."""

    suite: Id = key("", "The suite's name; default: the name of the folder that contains the file.")
    defaults: Defaults = key(Defaults, "Defaults for every scenario in the file.")
    scenarios: Items[ScenarioText] = Field(min_length=1, description="The scenarios.")
