"""The items of a job's chat log (001, History and Logs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from statek_sim.runtime.state.calls import CodeBlock
from statek_sim.runtime.state.own_members import reply_members, warmup_members
from statek_sim.values import JSON


@dataclass(frozen=True, slots=True)
class ToolError:
    """A tool call that failed: `err_message` is `Type: message`."""

    err_message: str


ToolResult = str | ToolError


class Reasoning(NamedTuple):
    """What a provider wants back with a turn: `fields` of its message. Other providers do not get it."""

    provider: str
    fields: Mapping[str, JSON]


@dataclass(slots=True)
class UserLogItem:
    """A user's message in the dialog styles."""

    message: str
    timestamp: datetime


@dataclass(slots=True)
class WarmupLogItem:
    """One (re)entry of a warmup block; `console_pos` is the console's length before it ran."""

    console_pos: int
    timestamp: datetime
    warmup_block_num: int
    tool_log: list[ToolResult] | None = None
    errors: int = 0

    __store_members__ = warmup_members


@dataclass(slots=True)
class LLM_LogItem:  # noqa: N801  # STATEK's own name
    """One LLM turn. `llm_resp` None is the placeholder of a reactivated job (behaviour 2)."""

    console_pos: int
    timestamp: datetime
    llm_resp: str | CodeBlock | None
    tool_log: list[ToolResult] | None = None
    errors: int = 0
    cumulative_token_usage: int | None = None
    reasoning: Reasoning | None = None

    __store_members__ = reply_members


class ReminderLike(Protocol):
    """The part of a reminder that the chat log shows."""

    text: str


class SubTaskLike(Protocol):
    """The part of a subtask handler that the chat log shows."""

    id: str | None

    def get_log_message(self) -> str:
        """Return the notice shown to the model."""


@dataclass(slots=True)
class ReminderLogItem:
    """A reminder that fired instead of ending the dialog."""

    console_pos: int
    timestamp: datetime
    reminder: ReminderLike


@dataclass(slots=True)
class PostProcessedItem:
    """What a post-processor told the model in place of taking its reply, or beside it."""

    console_pos: int
    timestamp: datetime
    post_processor: object
    message: str


@dataclass(slots=True)
class SubTaskLogItem:
    """A completed subtask; `tool_log` is its result, None when it failed. Agents that print it see these members."""

    console_pos: int
    tool_log: str | None
    timestamp: datetime
    handler: SubTaskLike


@dataclass(slots=True)
class NotificationLogItem:
    """A plain text notification (from 1.4.0)."""

    console_pos: int
    timestamp: datetime
    message: str

    def __llm_repr__(self) -> str:
        """Return the text that agent code sees."""
        return f"NotificationLogItem(message={self.message!r})"


ExecutionItem = WarmupLogItem | LLM_LogItem
"""Items that ran code or tools."""

ConsoleItem = (
    WarmupLogItem | LLM_LogItem | ReminderLogItem | PostProcessedItem | SubTaskLogItem | NotificationLogItem
)
"""Items that own a slice of the console."""

CONSOLE_ITEMS: Final = (
    LLM_LogItem,
    WarmupLogItem,
    ReminderLogItem,
    PostProcessedItem,
    SubTaskLogItem,
    NotificationLogItem,
)
"""The classes of `ConsoleItem`, for `isinstance` (a tuple is checked three times faster than a union)."""

ChatItem = str | UserLogItem | ConsoleItem
"""Everything a chat log may hold; a bare str is a dialog's first message."""
