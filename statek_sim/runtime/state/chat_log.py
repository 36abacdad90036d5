"""The items in a job's chat log, tool calls and code blocks ("Jobs", History and Logs).

An agent that displays a stored STATEK object sees the object's members, including private ones. The functions
`..._members` return the members that STATEK's classes have; attributes that exist only in this package are
not displayed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from statek_sim.runtime.state.access import FULL, access, ended_in, recorded
from statek_sim.runtime.state.context import current
from statek_sim.runtime.stored.containers import inside
from statek_sim.runtime.stored.ordering import SOMETHING, Shows, in_store_order, shown_members
from statek_sim.values import JSON

PYTHON_CLI: Final = "python_cli"
"""The name of the tool with which DIRECT agents run Python code."""


@recorded("id", "func_name", "args", "kwargs")
@dataclass(frozen=True, slots=True)
class CallSpec:
    """A requested tool call.

    `id` is sent back unchanged; it is a string unless the provider sent something else. `bind` names the
    local variables to which the result is assigned. Only warmup under the `docs` profile sets it ("Error
    Handling", Warmup Failures).
    """

    id: JSON
    func_name: str
    args: Sequence[object] = field(default_factory=list)
    kwargs: Mapping[str, object] = field(default_factory=dict)
    bind: str | tuple[str, ...] | None = None

    def format(self) -> str:
        """Return the call as Python would write it."""
        given = [repr(value) for value in self.args]
        given += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        return f"{self.func_name}({', '.join(given)})"


def stored_call(call: CallSpec) -> CallSpec:
    """Return a call in stored form: its values are stored values, and its keywords are in the store's order.

    Raises dbzero's error for a rejected value, and SystemError for a damaged value, such as an integer beyond
    64 bits.
    """
    try:
        kwargs = {str(inside(name)): inside(value) for name, value in call.kwargs.items()}
        args = [inside(value) for value in call.args]
    except (OverflowError, UnicodeEncodeError) as damage:
        raise ended_in("CallSpec.__init__") from damage
    return replace(call, args=args, kwargs={name: kwargs[name] for name in in_store_order(kwargs)})


@recorded(
    "code",
    tool_calls=lambda block: list(block.tool_calls),
    metadata=lambda block: block.metadata or None,
)
@dataclass(frozen=True, slots=True)
class CodeBlock:
    """The code in a warmup block or reply, and the tool calls requested with it.

    `code` is None if a reply had no text. `metadata` comes from `#STATEK: key = value` lines.
    """

    code: str | None = None
    tool_calls: tuple[CallSpec, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def cli_calls(self) -> tuple[CallSpec, ...]:
        """The `python_cli` calls, in order."""
        return tuple(self.get_cli_tool_calls() or ())

    def get_tool_calls(self, filter_fn: Callable[[CallSpec], object]) -> list[CallSpec] | None:
        """Return the calls for which `filter_fn` returns a true value, or None if there are none."""
        return [call for call in self.tool_calls if filter_fn(call)] or None

    def get_cli_tool_calls(self) -> list[CallSpec] | None:
        """Return the `python_cli` calls, or None if there are none."""
        return self.get_tool_calls(lambda call: call.func_name == PYTHON_CLI)

    def get_regular_tool_calls(self) -> list[CallSpec] | None:
        """Return all calls except `python_cli` calls, or None if there are none."""
        return self.get_tool_calls(lambda call: call.func_name != PYTHON_CLI)

    def get_tool_call_id(self, call_spec: CallSpec) -> int | None:
        """Return the position of a call, or None if it is not one of this block's."""
        return next((place for place, call in enumerate(self.tool_calls) if call is call_spec), None)

    @property
    def hidden(self) -> bool:
        """Whether a metadata line spelled exactly `hidden = True` keeps this block out of the conversation."""
        return self.metadata.get("hidden") is True


def job_members(
    job: Any, shows: Shows, written: Mapping[str, object] = MappingProxyType({})
) -> dict[str, object]:
    """Return a job's displayed members; `written` are members that other code added to the job."""
    with access(FULL):
        members = {
            "job_def": job.job_def,
            "agent": job.agent,
            "parent_job": job.parent_job,
            "job_status": SOMETHING,
            "py_env": job.py_env,
            "chat_log": list(job.chat_log),
            "awaited_result": job.awaited_result,
            "next_instr_num": job.next_instr_num,
            "warmup_block_num": job.warmup_block_num,
            "error": job.error,
            "created_at": job.created_at,
            "error_handlers": list(job.error_handlers),
            "_Job__last_difficulty": (job.raised_difficulty and SOMETHING) if _newest() else None,
            "usage": job.usage,
            "num_completions": job.num_completions,
            "_Job__ext_ref": None,
            "_Job__pending_chat_log": job.inbox.pending,
            "_Job__shared_context": job.shared_names,
            **written,
        }
    return shown_members(members, shows)


def definition_members(definition: Any, shows: Shows) -> dict[str, object]:
    """Return a job definition's displayed members."""
    with access(FULL):
        # An application's `chat_style` falls back to the settings; `_chat_style` does not.
        style = definition._chat_style if hasattr(definition, "_chat_style") else definition.chat_style
        members = {
            "agent": definition.agent,
            "metadata": dict(definition.metadata),
            "job_params": definition.job_params or None,
            "warmup_code": _warmup(definition.blocks),
            "_chat_style": style and SOMETHING,
            "locale": definition.locale,
            "post_processing": definition.post_processing,
            "provider_config": None,
        }
    if _newest():
        members["extra_resources"] = None
    return shown_members(members, shows)


def _warmup(blocks: Any) -> object:
    """Return warmup code as STATEK stores it: a string for a single code-only block, else a list."""
    if len(blocks) != 1:
        return list(blocks) or None
    block = blocks[0]
    return SOMETHING if block.tool_calls or block.metadata else block.code


def reply_members(item: Any, shows: Shows) -> dict[str, object]:
    """Return the displayed members of an `LLM_LogItem`."""
    members = {
        "console_pos": item.console_pos,
        "tool_log": item.tool_log,
        "timestamp": item.timestamp,
        "llm_resp": item.llm_resp,
        "llm_reasoning_payload": item.llm_reasoning_payload,
    }
    if _newest():
        members["request_difficulty"] = item.request_difficulty and SOMETHING
        members["cumulative_token_usage"] = item.cumulative_token_usage
    return shown_members(members, shows)


def warmup_members(item: Any, shows: Shows) -> dict[str, object]:
    """Return the displayed members of a `WarmupLogItem`."""
    names = ("console_pos", "tool_log", "timestamp", "warmup_block_num")
    return shown_members({name: getattr(item, name) for name in names}, shows)


def _newest() -> bool:
    """Return whether the current job follows the 1.4 rules, whose classes have additional members."""
    job: Any = current("job")
    return job is None or job.host.profile.difficulty_extends_tokens


@recorded("err_message")
@dataclass(frozen=True, slots=True)
class ToolError:
    """A tool call that failed: `err_message` is `Type: message`."""

    err_message: str


ToolResult = str | ToolError

_CONSOLE: Final = ("console_pos", "tool_log", "timestamp")


class Reasoning(NamedTuple):
    """A reply's reasoning fields, which later requests to the same `provider` must repeat.

    Requests to other providers omit them.
    """

    provider: str
    fields: Mapping[str, JSON]


@recorded("message", "timestamp")
@dataclass(slots=True)
class UserLogItem:
    """A user message in the dialog styles."""

    message: str
    timestamp: datetime


class Executed:
    """A chat log item that ran code or tools."""

    __slots__ = ()
    tool_log: list[ToolResult] | None

    def get_tool_result(self, tool_call_id: int) -> ToolResult:
        """Return the result of the tool call at a position; raises KeyError if there is none."""
        if self.tool_log is None:
            raise KeyError(tool_call_id)
        return self.tool_log[tool_call_id]


@recorded(*_CONSOLE, "warmup_block_num")
@dataclass(slots=True)
class WarmupLogItem(Executed):
    """One entry or re-entry into a warmup block; `console_pos` is the console's length before it ran."""

    console_pos: int
    timestamp: datetime
    warmup_block_num: int
    tool_log: list[ToolResult] | None = None
    errors: int = 0

    __store_members__ = warmup_members


@recorded(*_CONSOLE, "llm_resp", "llm_reasoning_payload", "request_difficulty", "cumulative_token_usage")
@dataclass(slots=True)
class LLM_LogItem(Executed):  # noqa: N801  # STATEK's own name
    """One LLM turn. `llm_resp` is None for a reactivated job's placeholder turn (behaviour 2)."""

    console_pos: int
    timestamp: datetime
    llm_resp: str | CodeBlock | None
    tool_log: list[ToolResult] | None = None
    errors: int = 0
    cumulative_token_usage: int | None = None
    llm_reasoning_payload: Reasoning | None = None
    request_difficulty: object = None

    __store_members__ = reply_members


class ReminderLike(Protocol):
    """The reminder interface that the chat log uses."""

    text: str


class SubTaskLike(Protocol):
    """The subtask handler interface that the chat log uses."""

    id: str | None

    def get_log_message(self) -> str:
        """Return the notice shown to the model."""


@recorded(*_CONSOLE, "reminder")
@dataclass(slots=True)
class ReminderLogItem:
    """A reminder that fired and kept the dialog from ending."""

    console_pos: int
    timestamp: datetime
    reminder: ReminderLike
    tool_log: None = None


@recorded(*_CONSOLE, "post_processor", "message")
@dataclass(slots=True)
class PostProcessedItem:
    """A post-processor's message to the model, sent instead of or together with its reply."""

    console_pos: int
    timestamp: datetime
    post_processor: object
    message: str
    tool_log: None = None


@recorded(*_CONSOLE, "handler")
@dataclass(slots=True)
class SubTaskLogItem:
    """A completed subtask; `tool_log` is its result, or None if it failed. Agents that print it see these members."""

    console_pos: int
    tool_log: str | None
    timestamp: datetime
    handler: SubTaskLike


@recorded(*_CONSOLE, "message")
@dataclass(slots=True)
class NotificationLogItem:
    """A plain text notification (since 1.4.0)."""

    console_pos: int
    timestamp: datetime
    message: str

    @property
    def tool_log(self) -> str:
        """The result of the call that shows the notification to the model."""
        return f"[{self.__llm_repr__()}]"

    def __llm_repr__(self) -> str:
        """Return the text shown to agent code."""
        return f"NotificationLogItem(message={self.message!r})"


@recorded(*_CONSOLE, "previous_difficulty", "difficulty", "cumulative_token_usage")
@dataclass(slots=True)
class DifficultyChangeLogItem:
    """An increase in the job's difficulty (since 1.4.1); not shown in the conversation."""

    console_pos: int
    timestamp: datetime
    previous_difficulty: object
    difficulty: object
    cumulative_token_usage: int
    tool_log: None = None


ExecutionItem = WarmupLogItem | LLM_LogItem
"""The items that ran code or tools."""

ConsoleItem = (
    WarmupLogItem | LLM_LogItem | ReminderLogItem | PostProcessedItem | SubTaskLogItem | NotificationLogItem
)
"""The items that begin a new part of the console."""

CONSOLE_ITEMS: Final = (
    LLM_LogItem,
    WarmupLogItem,
    ReminderLogItem,
    PostProcessedItem,
    SubTaskLogItem,
    NotificationLogItem,
)
"""The classes in `ConsoleItem`, for `isinstance` (checking a tuple is three times faster than a union)."""

ChatItem = str | UserLogItem | ConsoleItem | DifficultyChangeLogItem
"""The items that a chat log may contain; a str is the first message of a dialog."""
