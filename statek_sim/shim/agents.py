"""`statek.agents` for the reference runtime: agents with STATEK's constructors and fields."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from statek_sim.runtime.agents import agent as runtime
from statek_sim.runtime.agents.warmup_source import (
    WarmupSource,
    codes_of,
    get_referenced_locals,
    parse_warmup,
    parse_warmup_code,
    unparsed_blocks,
)
from statek_sim.runtime.execution.job_registry import equals_itself
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.state.access import FULL, current_access, denied, missing
from statek_sim.runtime.stored.storable_types import KEEPER
from statek_sim.runtime.tools.documentation import docstr
from statek_sim.shim.covered_names import NotCovered
from statek_sim.shim.internal_attrs import check_reader, dataclass_there
from statek_sim.shim.memo import memo
from statek_sim.shim.prompts import SystemPrompt, are_equal, give_prompt, make_system_prompt, prompt_text
from statek_sim.shim.queries import find
from statek_sim.shim.settings import get_statek_settings
from statek_sim.shim.tools import create_tool

Tool = Callable[..., Any]
_DOCSTRINGS: Final = tomllib.loads((files("statek_sim.shim") / "agents.toml").read_text("utf-8"))


class _NoPlace:
    """The keeper for `Metadata` objects, which run stores save although they have no location in the shim's store."""

    def made(self, kind: type[dict[str, str]]) -> Any:
        """Return an empty dict without attributes."""
        return dict.__new__(kind)

    def place(self, _value: Any) -> None:
        """Return None, because these objects have no location."""

    def adopt(self, _value: Any, _place: int) -> None:
        """Do nothing, because these objects have no location."""


class Metadata(dict[str, str]):
    """An agent's metadata; reading a missing MODEL raises STATEK's ValueError.

    Raises `NotCovered` for EXTRA_RESOURCES.
    """

    def __init__(self, role: str, values: Mapping[str, Any]) -> None:
        if values.get("EXTRA_RESOURCES") is not None:
            raise NotCovered(
                f"EXTRA_RESOURCES={values['EXTRA_RESOURCES']!r} in the metadata of agent {role!r}"
            )
        super().__init__((key, value) for key, value in values.items() if key != "MODEL" or value is not None)
        self._role = role

    def __missing__(self, key: str) -> str:
        if key == "MODEL":
            raise ValueError(f"Agent '{self._role}' is missing required metadata field 'MODEL'")
        raise KeyError(key)


setattr(Metadata, KEEPER, _NoPlace())


@dataclass_there
@memo
@dataclass
class WarmupDef:
    """An agent's warmup code."""

    warmup_code: Any = None
    metadata: Any = None

    @property
    def hidden(self) -> bool:
        """Return whether the combined metadata of the warmup blocks contain `hidden = True`."""
        return self.metadata is not None and self.metadata.get("hidden") is True


def _warmup_code(agent: Any) -> WarmupSource:
    definition: WarmupDef | None = getattr(agent, "warmup_def", None)
    return None if definition is None else definition.warmup_code


@dataclass_there
@memo
@dataclass(eq=False)
class Agent(runtime.Agent):
    """An agent with STATEK's fields; the runtime's view is derived from them."""

    role: str
    _system_prompt: SystemPrompt | None
    _tools: list[Tool]
    _tools_by_name: list[str] | None = field(default_factory=list)
    _internal_tools: list[Tool] | None = field(default_factory=list)
    _internal_tools_by_name: list[str] | None = field(default_factory=list)
    _metadata: dict[str, str] | None = None
    _X__context: dict[str, Any] | None = None
    _description: str | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Raise the error for a missing attribute; for `context`, the error names the attribute that stores it."""
            raise missing(self, "_X__context" if name == "context" else name)

    def __post_init__(self) -> None:
        settings = get_statek_settings()
        settings.load_prompts()
        prompt = settings.get_prompt_def(self.role)
        if prompt is not None:
            give_prompt(self, prompt)
        for function in [tool for tool in self._tools if tool.__name__.startswith("_")]:
            self._tools.remove(function)
            self._internal().append(function)

    def _internal(self) -> list[Tool]:
        if self._internal_tools is None:
            self._internal_tools = []
        return self._internal_tools

    # -- the runtime's view ------------------------------------------------------------------------------------

    @property
    def prompt(self) -> str:  # type: ignore[override]  # made of a field of STATEK's
        """The system prompt as text."""
        check_reader(self, "prompt")
        return self._intro()

    def _intro(self) -> str:
        return "" if self._system_prompt is None else self._system_prompt.intro

    @property
    def metadata(self) -> dict[str, str]:  # type: ignore[override]  # made of a field of STATEK's
        """The metadata; reading a missing MODEL raises STATEK's ValueError."""
        check_reader(self, "metadata")
        return Metadata(self.role, self._metadata or {})

    @property
    def warmup(self) -> WarmupSource:  # type: ignore[override]  # made of a field of STATEK's
        """The warmup code, whose text is not parsed again; raises its SyntaxError or ValueError if it is invalid."""
        check_reader(self, "warmup")
        code = _warmup_code(self)
        parse_warmup(code, bind_assignments=False)
        return unparsed_blocks(code)

    @property
    def chat_style(self) -> str | None:  # type: ignore[override]  # STATEK's agents have none
        """Always None: the style belongs to the agent's job definitions."""
        check_reader(self, "chat_style")
        return None

    @property
    def context(self) -> dict[str, Any]:  # type: ignore[override]  # made of a field of STATEK's
        """Names that agent code sees in addition to the tools. They are not stored, and agent code cannot read them."""
        if current_access() != FULL:
            raise denied("_X__context")
        if self._X__context is None:
            self.init_context()
        context = self._X__context
        return {} if context is None else context

    @property
    def tools(self) -> list[Tool]:  # type: ignore[override]  # as STATEK's
        """The tools that may be offered to the model."""
        return [*self._tools, *self._named(self._tools_by_name)]

    @property
    def all_tools(self) -> list[Tool]:  # type: ignore[override]  # made of a field of STATEK's
        """All tools, internal ones last."""
        return [*self.tools, *(self._internal_tools or ()), *self._named(self._internal_tools_by_name)]

    def _named(self, names: Sequence[str] | None) -> list[Tool]:
        return [self.context[name] for name in names or () if name in self.context]

    def system_prompt(
        self,
        task_difficulty: object,
        job_params: Mapping[str, Any] | None = None,
        available_tools: Any = None,
        **kwargs: Any,
    ) -> str:
        """Return the prompt for a difficulty, with its placeholders filled."""
        tools = self.tools if available_tools is None else available_tools
        return prompt_text(self._system_prompt, task_difficulty, {**(job_params or {}), **kwargs}, tools)

    # -- the application's interface ---------------------------------------------------------------------------

    @property
    def description(self) -> str | None:
        """A description of the agent's purpose."""
        return self._description

    def init_context(self) -> None:
        """Create the context; subclasses extend it."""
        if self._X__context is None:
            self._X__context = {}

    def update_system_prompt(self, new_prompt: str | SystemPrompt) -> bool:
        """Replace the prompt; return whether it changed.

        Raises AttributeError for a string if the prompt was already set.
        """
        if self._system_prompt is not None and are_equal(self._system_prompt, new_prompt):
            return False
        self._system_prompt = make_system_prompt(new_prompt)
        return True

    def update_metadata(self, new_metadata: dict[str, str]) -> bool:
        """Replace the metadata; return whether they changed."""
        if self._metadata == new_metadata:
            return False
        self._metadata = dict(new_metadata)
        return True

    def update_description(self, new_description: str) -> bool:
        """Replace the description; return whether it changed."""
        if self._description == new_description:
            return False
        self._description = new_description
        return True

    def get_examples(self) -> list[str]:
        """Return the names of the agent's examples, of which a test has none."""
        return []

    def _find_tool(self, name: str) -> Tool | None:
        return next((tool for tool in self._tools if tool.__name__ == name), None)

    def append_tool(self, tool_or_name: Tool | str) -> None:
        """Add a tool, either directly or by its name in the context."""
        name = tool_or_name if isinstance(tool_or_name, str) else tool_or_name.__name__
        internal = name.startswith("_")
        if not isinstance(tool_or_name, str):
            if "<" not in tool_or_name.__qualname__:
                (self._internal() if internal else self._tools).append(tool_or_name)
                return
            # A function that the store cannot import is stored by its name.
            self.context[name] = tool_or_name
        names = self._internal_tools_by_name if internal else self._tools_by_name
        if names is not None:
            names.append(name)


@dataclass_there
@memo
@dataclass(eq=False)
class SupervisedAgent(Agent):
    """An agent with its own warmup code, for which jobs can be created."""

    warmup_def: WarmupDef | None = None
    _X__ref_locals: list[str] | None = None

    @property
    def referenced_locals(self) -> list[str]:
        """The names that the agent's warmup code reads but does not bind."""
        return get_referenced_locals("\n".join(codes_of(_warmup_code(self) or ())))

    def create_job_def(
        self,
        tools: Any = None,
        warmup_code: WarmupSource = None,
        shared_vars: Mapping[str, Any] | None = None,
        locale: Any = None,
        post_processing: Any = None,
        provider_config: Any = None,
        extra_resources: Any = None,
        **job_params: Any,
    ) -> Any:
        """Create a new definition; the names in `shared_vars` become a prompt parameter."""
        if provider_config is not None or extra_resources is not None:
            raise NotCovered("create_job_def with a provider_config or extra_resources")
        if shared_vars:
            job_params["shared_vars"] = list(shared_vars)
        style = job_params.pop("chat_style", None) if isinstance(self, runtime.DialogAgent) else None
        return current_runtime().book.define(
            self, warmup_code, style, locale, job_params, post_processing, shared=False
        )

    def update_warmup_def(self, unparsed_warmup_def: str | None) -> bool:
        """Replace the warmup code; return whether it changed."""
        bind = current_runtime().profile.as_tool_binds_assignment
        blocks = parse_warmup(unparsed_warmup_def, bind_assignments=bind)
        is_known = [*blocks] == unparsed_blocks(_warmup_code(self))
        if is_known and all(equals_itself(call) for block in blocks for call in block.tool_calls):
            return False
        metadata = {key: value for block in blocks for key, value in block.metadata.items()}
        code = parse_warmup_code(unparsed_warmup_def, bind_assignments=bind)
        self.warmup_def = None if code is None else WarmupDef(code, metadata or None)
        return True


def update_warmup_defs(path: Path, agents: Iterable[SupervisedAgent] | None = None) -> None:
    """Give agents (by default, all) the warmup code in the folder's `ROLE.py` files."""
    by_role = {agent.role: agent for agent in (find(SupervisedAgent) if agents is None else agents)}
    for file in path.glob("*.py"):
        if file.stem in by_role:
            by_role[file.stem].update_warmup_def(file.read_text(encoding="utf-8"))


@dataclass_there
@memo
@dataclass(eq=False)
class Reminder(runtime.RecurringReminder):
    """A text that keeps a dialog going; subclasses define the condition in `fire_ready`."""

    text: str

    def __post_init__(self) -> None:
        if type(self).fire_ready is Reminder.fire_ready:
            raise TypeError(f"Can't instantiate abstract class {type(self).__name__}")

    def fire_ready(self, job: runtime.InDialog) -> bool:
        """Return whether the reminder is due."""
        raise NotImplementedError


@dataclass_there
@memo
@dataclass(eq=False)
class RecurringReminder(Reminder):
    """Fires on every final text once the dialog has `min_dialog_len` messages."""

    min_dialog_len: int | None = None

    def fire_ready(self, job: runtime.InDialog) -> bool:
        """Return whether the reminder is due."""
        return runtime.RecurringReminder.fire_ready(self, job)


@dataclass_there
@memo
class DialogAgent(SupervisedAgent, runtime.DialogAgent):
    """An agent that talks to one user through `send_message(body, media=None)`."""

    def __init__(
        self,
        send_message: Tool,
        tools: Iterable[Tool] | None = None,
        role: str = "dialog_agent",
        add_answer_tool: bool = True,
        _metadata: dict[str, str] | None = None,
    ) -> None:
        # The runtime's dialog agent creates the tools that call `send_message`; the context has them, as in STATEK.
        made = runtime.DialogAgent(send_message, role, add_answer_tool=add_answer_tool)
        self._X__made = made
        self.send_message = send_message
        self.additional_tools = list(tools or ())
        self.add_answer_tool = add_answer_tool
        self._reminder: Reminder | None = None
        SupervisedAgent.__init__(self, role, None, list(self.additional_tools), _metadata=_metadata)
        self.append_tool("_send_message")
        if add_answer_tool:
            self.append_tool("answer")

    def __getattribute__(self, name: str) -> Any:
        # The runtime calls this attribute, which records each delivery in the trace.
        if name == "send_message":
            return vars(super().__getattribute__("_X__made"))["send_message"]
        return super().__getattribute__(name)

    def init_context(self) -> None:
        """Add the tools that send messages to the context."""
        if self._X__context is None:
            super().init_context()
            self.context.update({function.__name__: function for function in self._X__made.all_tools})

    @property
    def reminder(self) -> Reminder | None:  # type: ignore[override]  # read by the runtime
        """The reminder, or None."""
        return self._reminder

    def set_new_reminder(self, text: str, type: str = "RECURRING", **kwargs: Any) -> Reminder:  # noqa: A002
        """Create and set a reminder."""
        if type.upper() not in ("RECURRING", "RECURSIVE"):
            raise ValueError(f"Unsupported reminder type: {type}")
        self._reminder = RecurringReminder(text, **kwargs)
        return self._reminder

    def set_reminder(self, reminder: Reminder) -> Reminder:
        """Set a reminder."""
        if not isinstance(reminder, Reminder):
            raise TypeError("reminder must be a Reminder instance")
        self._reminder = reminder
        return reminder


@memo
class Researcher(SupervisedAgent):
    """An agent that asks and answers its user with the tools `ask` and `answer`, created from `send_message`.

    If the application has its own tools with these names, they are used instead.
    """

    send_message: Any = None
    additional_tools: Any = None

    def __init__(
        self, send_message: Tool | None = None, tools: Iterable[Tool] | None = None, role: str = "researcher"
    ) -> None:
        self.send_message = send_message
        self.additional_tools = [] if tools is None else tools
        SupervisedAgent.__init__(self, role, None, [docstr, *self.additional_tools])
        self.append_tool("ask")
        self.append_tool("answer")

    def init_context(self) -> None:
        """Add both tools to the context; without `send_message`, the application must provide both."""
        if self._X__context is not None:
            return
        super().init_context()
        own = {tool.__name__: tool for tool in self._tools if tool.__name__ in ("ask", "answer")}
        if self.send_message is None and len(own) < 2:
            raise ValueError(
                "send_message is required when custom 'ask' and/or 'answer' tools are not both provided in tools"
            )
        self.context.update({"ask": self._ask(), "answer": self._answer(), **own})

    def _ask(self) -> Tool:
        def ask(question: str) -> Any:
            return self.send_message(question)

        ask.__doc__ = _DOCSTRINGS["ask"]
        ask.__annotations__.pop("return")
        return ask

    def _answer(self) -> Tool:
        def answer(content: str) -> Any:
            return self._answer_impl(content)

        answer.__doc__ = _DOCSTRINGS["answer"]
        answer.__annotations__.pop("return")
        return answer

    def _answer_impl(self, content: str) -> None:
        # Agent code cannot call this: STATEK blocks an object's private methods.
        self.send_message(content)
        sys.exit("Success")


@memo
class MessageDispatcher(SupervisedAgent):
    """An agent that assigns a message to its thread, using three functions from the application."""

    chat_history: Any = None
    start_new_thread: Any = None
    dispatch_to: Any = None

    def __init__(
        self, chat_history: Tool, start_new_thread: Tool, dispatch_to: Tool, role: str = "message_dispatcher"
    ) -> None:
        self.chat_history = chat_history
        self.start_new_thread = start_new_thread
        self.dispatch_to = dispatch_to
        SupervisedAgent.__init__(self, role, None, [docstr, chat_history, start_new_thread, dispatch_to])

    def init_context(self) -> None:
        """Add tools without arguments to the context, each wrapping one of the functions."""
        if self._X__context is not None:
            return
        super().init_context()
        for name, function in (
            ("chat_history", self.chat_history),
            ("start_new_chat_thread", self.start_new_thread),
            ("dispatch_to", self.dispatch_to),
        ):
            create_tool(name, function, _DOCSTRINGS[name], self.context)
