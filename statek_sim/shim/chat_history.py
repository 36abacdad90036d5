"""STATEK's `Job.get_chat_history`: a job's conversation without its system prompt and chat-style markup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from statek_sim.runtime.agents.dialog import LoggedJob
from statek_sim.runtime.agents.history import (
    NOTIFICATION_CODE,
    block_of,
    call_result,
    cli_call,
    end_position,
    first_message,
    hinted,
    notification_call_id,
    pushed_between,
    subtask_call,
)
from statek_sim.runtime.state.chat_log import (
    CallSpec,
    CodeBlock,
    LLM_LogItem,
    NotificationLogItem,
    PostProcessedItem,
    ReminderLogItem,
    SubTaskLogItem,
    UserLogItem,
    WarmupLogItem,
    stored_call,
)
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.shim.memo import enum

ChatRole: Final = enum("ChatRole", ["SYSTEM", "USER", "ASSISTANT", "TOOL"])
ContentSource: Final = enum("ContentSource", ["SYSTEM", "USER", "ASSISTANT", "CONSOLE"])


@dataclass
class ChatHistoryItem:
    """One element in a conversation; `content_src` is where `content` comes from."""

    role: Any
    content: str | None = None
    content_src: Any = None
    tool_calls: Any = None
    provider_reasoning_payload: Any = None


def chat_history(job: LoggedJob) -> Iterator[ChatHistoryItem]:
    """Yield the conversation of `job`, oldest element first."""
    first = first_message(job)
    if first is not None:
        yield _by_user(first)
    for index, item in enumerate(job.chat_log):
        if isinstance(item, UserLogItem):
            if item.message:
                yield _by_user(hinted(job, item.message))
        elif isinstance(item, PostProcessedItem | ReminderLogItem):
            text = item.message if isinstance(item, PostProcessedItem) else item.reminder.text
            if text:
                yield ChatHistoryItem(ChatRole.SYSTEM, text, ContentSource.SYSTEM)
        elif isinstance(item, SubTaskLogItem):
            yield ChatHistoryItem(ChatRole.SYSTEM, item.handler.get_log_message(), ContentSource.SYSTEM)
            if item.tool_log is not None:
                yield from _call(subtask_call(job, item, index), item.tool_log)
        elif isinstance(item, NotificationLogItem):
            yield from _call(cli_call(notification_call_id(job, index), NOTIFICATION_CODE), item.tool_log)
        elif isinstance(item, LLM_LogItem | WarmupLogItem):
            yield from _turn(job, item, end_position(job, index))


def _turn(job: LoggedJob, item: LLM_LogItem | WarmupLogItem, end: int) -> Iterator[ChatHistoryItem]:
    block = block_of(job, item)
    if isinstance(block, CodeBlock) and block.hidden:
        return
    code = block.code if isinstance(block, CodeBlock) else block
    calls = block.tool_calls if isinstance(block, CodeBlock) else ()
    is_warmup, start = isinstance(item, WarmupLogItem), item.console_pos
    source = ContentSource.SYSTEM if is_warmup else ContentSource.ASSISTANT
    reasoning = item.llm_reasoning_payload if isinstance(item, LLM_LogItem) else None
    console = "\n".join(job.py_env.lines[start:end])
    if calls:
        shown = [stored_call(call) for call in calls] if is_warmup else list(calls)
        yield ChatHistoryItem(ChatRole.ASSISTANT, code or None, source, shown, reasoning)
        for position, call in enumerate(shown):
            yield _result(call_result(item, position), call)
    elif isinstance(item, WarmupLogItem) and code and job.chat_style is ChatStyle.DIRECT:
        yield from _call(cli_call(f"STATEK-WARMUP-{item.warmup_block_num:03d}", code), console)
    else:
        if code:
            yield ChatHistoryItem(ChatRole.ASSISTANT, code, source, None, reasoning)
        elif reasoning is not None:
            yield ChatHistoryItem(ChatRole.ASSISTANT, provider_reasoning_payload=reasoning)
        if end > start:
            yield ChatHistoryItem(ChatRole.USER, console, ContentSource.CONSOLE)
    for text in pushed_between(job, start, end):
        yield _by_user(text)


def _by_user(text: str) -> ChatHistoryItem:
    return ChatHistoryItem(ChatRole.USER, text, ContentSource.USER)


def _call(call: CallSpec, result: str) -> Iterator[ChatHistoryItem]:
    yield ChatHistoryItem(ChatRole.ASSISTANT, None, ContentSource.SYSTEM, [call])
    yield _result(result, [call])


def _result(text: str, calls: CallSpec | list[CallSpec]) -> ChatHistoryItem:
    return ChatHistoryItem(ChatRole.TOOL, text, ContentSource.CONSOLE, calls)
