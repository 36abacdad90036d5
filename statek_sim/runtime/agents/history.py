"""Builds the messages that a model sees from a job's chat log (behaviour 6.5).

STATEK rebuilds all messages for every request. Here, a job's messages are kept: chat items that can no longer
change are converted once, so the cost of a turn depends only on its new items. An event that changes the
past, such as a message pushed at an old console position, triggers a rebuild.

For a job with a locale, STATEK adds rules and hints about the answer language (`languages.toml`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from statek_sim.runtime.agents.dialog import (
    LoggedJob,
    assistant_calls,
    assistant_code,
    console_message,
    system_message,
    tool_message,
    user_message,
)
from statek_sim.runtime.state.chat_log import (
    CONSOLE_ITEMS,
    CallSpec,
    ChatItem,
    CodeBlock,
    LLM_LogItem,
    NotificationLogItem,
    PostProcessedItem,
    ReminderLogItem,
    SubTaskLogItem,
    ToolError,
    UserLogItem,
    WarmupLogItem,
    stored_call,
)
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.usage.conversation import MessageMeter, MeteredConversation
from statek_sim.values import JSON, Message, in_common

NOTIFICATION_CODE: Final = "print(get_pending_notifications())"


class _Reader(NamedTuple):
    """The provider for which messages are built, and whether the provider's format needs `plain` messages."""

    name: str
    provider: str
    plain: bool

    def reasoning(self, item: ChatItem) -> Mapping[str, JSON]:
        """Return a reply's reasoning fields, which requests to this provider must repeat."""
        kept = item.llm_reasoning_payload if isinstance(item, LLM_LogItem) else None
        return kept.fields if kept is not None and kept.provider == self.provider else {}


_OPENAI: Final = _Reader("", "", plain=False)


class HistoryProjection:
    """A job's messages, updated before each request.

    The first `_projected` chat items have been converted; -1 means that not even the opening messages exist.
    Of these items, only the newest console item (the tail) can still change, because its console output grows
    until the next item.
    """

    __slots__ = (
        "_conversation",
        "_kept",
        "_projected",
        "_prompt",
        "_reader",
        "_sent",
        "_tail",
        "_tail_end",
        "_tail_start",
    )

    def __init__(self, meter: MessageMeter) -> None:
        self._conversation = MeteredConversation(meter)
        self._kept = 0
        self._prompt: str | None = None
        self._reader = _OPENAI
        self._sent: Sequence[Message] | None = None
        self._projected = -1
        self._tail = -1
        self._tail_end = -1
        self._tail_start = 0

    def in_pieces(self) -> tuple[Sequence[Message], dict[str, object]]:
        """Return the messages and, separately, the rest of the projection's state.

        To build the argument for `resume`, add the messages to this state under `messages`, as JSON strings.
        """
        return self._conversation.view(), {
            "sent": None if self._sent is None else [message_text(message) for message in self._sent],
            "reader": (self._reader.name, self._reader.provider, self._reader.plain),
            "places": (self._kept, self._projected, self._tail, self._tail_end, self._tail_start),
        }

    def resume(self, saved: Mapping[str, Any], meter: MessageMeter) -> None:
        """Restore the state saved by another process."""
        sent = saved["sent"]
        self._conversation = MeteredConversation(meter, map(json.loads, saved["messages"]))
        self._sent = None if sent is None else [json.loads(message) for message in sent]
        self._prompt = None
        self._reader = _Reader(*saved["reader"])
        self._kept, self._projected, self._tail, self._tail_end, self._tail_start = saved["places"]

    @property
    def current(self) -> MeteredConversation:
        """The messages from the last `refresh`."""
        return self._conversation

    def take_kept(self) -> int:
        """Return how many leading messages were already in the previous request, and reset the count."""
        kept, self._kept = self._kept, len(self._conversation)
        if self._sent is not None:
            # The messages were rebuilt, but most of them are usually unchanged.
            kept += in_common(self._sent[kept:], self._conversation.view()[kept:])
            self._sent = None
        return kept

    def measure_with(self, meter: MessageMeter) -> None:
        """Measure messages with another tokenizer after a model change."""
        if self._conversation.meter is not meter:
            self._conversation = self._conversation.with_meter(meter)

    def read_by(self, provider: str, *, plain: bool) -> None:
        """Build messages for another provider after a model change."""
        if provider == self._reader.name and plain == self._reader.plain:
            return
        self._reader = _Reader(provider, provider.casefold(), plain)
        self._forget_from(-1, 0)

    def pushed(self, position: int) -> None:
        """Record that a message was pushed at console `position`.

        If the position is in the past, rebuild the messages. After a lost step, there is no tail, so any
        position may be in the past.
        """
        if self._tail < 0 or position <= self._tail_end or position == 0:
            self._forget_from(-1, 0)

    def step_lost(self) -> None:
        """Discard the newest item's messages, because the item's tool calls will run again."""
        if self._tail >= 0:
            self._forget_from(self._tail, self._tail_start)

    def refresh(self, job: LoggedJob) -> MeteredConversation:
        """Return the messages for the next request; the list is the same object as before unless the past changed."""
        if self._tail >= 0 and end_position(job, self._tail) != self._tail_end:
            self._forget_from(self._tail, self._tail_start)
        prompt = job.system_prompt()
        if self._prompt not in (None, prompt):
            self._forget_from(-1, 0)
        self._prompt = prompt
        conversation, log = self._conversation, job.chat_log
        if self._projected < 0:
            self._projected = 0
            for message in _opening(job, prompt):
                conversation.append(message)
        for index in range(self._projected, len(log)):
            item = log[index]
            if isinstance(item, str):
                continue
            end = end_position(job, index)
            if isinstance(item, CONSOLE_ITEMS):
                self._tail, self._tail_end, self._tail_start = index, end, len(conversation)
            for message in _project(job, item, index, end, self._reader):
                conversation.append(message)
        self._projected = len(log)
        return conversation

    def _forget_from(self, item: int, messages: int) -> None:
        """Discard the messages from index `messages` on; they belong to the chat items from index `item` on."""
        if messages < self._kept and self._sent is None:
            self._sent = self._conversation.view()[: self._kept]
        if messages < len(self._conversation):
            self._conversation = self._conversation.truncated(messages)
        self._kept = min(self._kept, messages)
        self._projected = item
        self._tail, self._tail_end, self._tail_start = -1, -1, 0


def message_text(message: Message) -> str:
    """Return a message as JSON text."""
    return json.dumps(message, default=dict, separators=(",", ":"))


def end_position(job: LoggedJob, index: int) -> int:
    """Return where item `index`'s console output ends: where the next console item starts, or at the last line."""
    log = job.chat_log
    for later in range(index + 1, len(log)):
        item = log[later]
        if isinstance(item, CONSOLE_ITEMS):
            return item.console_pos
    return job.console_pos


def _opening(job: LoggedJob, prompt: str) -> Iterator[Message]:
    """Yield the system prompt and the first user message, if there are any."""
    definition = job.job_def
    rules = with_rule(prompt, definition.locale, definition.metadata)
    if rules:
        yield system_message(rules)
    first = first_message(job)
    if first is not None:
        yield user_message(first)


def first_message(job: LoggedJob) -> str | None:
    """Return the first user message, including messages pushed before anything was printed."""
    first = [job.chat_log[0]] if job.chat_log and isinstance(job.chat_log[0], str) and job.chat_log[0] else []
    pushed = job.py_env.pushed.get(0)
    texts = [*first, str(pushed)] if pushed else first
    return "\n".join(hinted(job, text) for text in texts) if texts else None


def hinted(job: LoggedJob, message: str) -> str:
    """Return a user message with the language hint for the job's locale."""
    return with_hint(message, job.job_def.locale, job.job_def.metadata)


def _project(job: LoggedJob, item: ChatItem, index: int, end: int, reader: _Reader) -> Iterator[Message]:
    if isinstance(item, LLM_LogItem | WarmupLogItem):
        yield from _execution(job, item, end, reader)
    elif isinstance(item, UserLogItem):
        if item.message:
            yield user_message(hinted(job, item.message))
    elif isinstance(item, ReminderLogItem):
        if item.reminder.text and not reader.plain:
            yield system_message(item.reminder.text)
    elif isinstance(item, PostProcessedItem):
        if item.message and not reader.plain:
            yield system_message(item.message)
    elif isinstance(item, SubTaskLogItem):
        yield from _subtask(job, item, index, reader)
    elif isinstance(item, NotificationLogItem):
        call = cli_call(notification_call_id(job, index), NOTIFICATION_CODE)
        yield from _call_and_result(job, call, item.tool_log, reader)


def notification_call_id(job: LoggedJob, index: int) -> str:
    """Return the id of the call that shows a notification to the model."""
    return f"STATEK-NOTIFICATION-{_shown_index(job, index):03d}"


def _shown_index(job: LoggedJob, index: int) -> int:
    """Return an item's number for use in synthetic tool call ids; a dialog's first message is not counted."""
    return index - isinstance(job.chat_log[0], str)


def _subtask(job: LoggedJob, item: SubTaskLogItem, index: int, reader: _Reader) -> Iterator[Message]:
    if not reader.plain:
        yield system_message(item.handler.get_log_message())
    if item.tool_log is not None:
        yield from _call_and_result(job, subtask_call(job, item, index), item.tool_log, reader)


def subtask_call(job: LoggedJob, item: SubTaskLogItem, index: int) -> CallSpec:
    """Return the call that shows a subtask's result to the model."""
    arguments = "" if item.handler.id is None else f"id={item.handler.id!r}"
    call_id = f"STATEK-SUBTASK-{_shown_index(job, index):03d}"
    return cli_call(call_id, f"print(find_sub_task_handler({arguments}))")


def _execution(
    job: LoggedJob, item: WarmupLogItem | LLM_LogItem, end: int, reader: _Reader
) -> Iterator[Message]:
    """Yield a turn's messages: text or code, tool results, console output, and user messages pushed during the turn."""
    block = block_of(job, item)
    if isinstance(block, CodeBlock) and block.hidden:
        return
    code = block.code if isinstance(block, CodeBlock) else block
    calls = block.tool_calls if isinstance(block, CodeBlock) else ()
    if job.py_env.stores and isinstance(item, WarmupLogItem):
        calls = tuple(stored_call(call) for call in calls)
    style, start = job.chat_style, item.console_pos
    console = "\n".join(job.py_env.lines[start:end]) if end > start else ""
    if calls:
        reasoning = reader.reasoning(item)
        # Reasoning that is sent back contains the calls, which are then not converted to JSON again.
        yield {**assistant_calls(code, calls, plain=reader.plain and not reasoning), **reasoning}
        for position, call in enumerate(calls):
            result = call_result(item, position)
            yield tool_message(result, call.id, style, job.host.console_tag, plain=reader.plain)
    elif style is ChatStyle.DIRECT and isinstance(item, WarmupLogItem) and code:
        call = cli_call(f"STATEK-WARMUP-{item.warmup_block_num:03d}", code)
        yield from _call_and_result(job, call, console, reader)
    else:
        reasoning = reader.reasoning(item)
        if code:
            message = assistant_code(code, style)
            yield {**message, **reasoning} if reasoning else message
        elif reasoning:
            yield {"role": "assistant", "content": None, **reasoning}
        if end > start:
            yield console_message(console, style, job.host.console_tag)
    for text in pushed_between(job, start, end):
        yield user_message(text)


def pushed_between(job: LoggedJob, start: int, end: int) -> Iterator[str]:
    """Yield the user messages that were pushed after console position `start`, up to `end`."""
    pushed = job.py_env.pushed
    for position in sorted(pushed) if pushed else ():
        if position and start < position <= end:
            yield hinted(job, str(pushed[position]))


def block_of(job: LoggedJob, item: WarmupLogItem | LLM_LogItem) -> str | CodeBlock | None:
    """Return the reply or warmup block that `item` ran."""
    if isinstance(item, LLM_LogItem):
        return item.llm_resp
    blocks = job.job_def.blocks
    return blocks[item.warmup_block_num] if item.warmup_block_num < len(blocks) else None


def call_result(item: WarmupLogItem | LLM_LogItem, position: int) -> str:
    """Return the result or error message of one of `item`'s tool calls."""
    if item.tool_log is None or position >= len(item.tool_log):
        return ""
    result = item.tool_log[position]
    return result.err_message if isinstance(result, ToolError) else result


def cli_call(call_id: str, code: str) -> CallSpec:
    """Return a synthetic `python_cli` call."""
    return CallSpec(call_id, "python_cli", [], {"code": code})


def _call_and_result(job: LoggedJob, call: CallSpec, result: str, reader: _Reader) -> Iterator[Message]:
    yield assistant_calls(None, (call,), plain=reader.plain)
    yield tool_message(result, call.id, job.chat_style, job.host.console_tag, plain=reader.plain)


@cache
def language_texts() -> Mapping[str, Mapping[str, str]]:
    """Return STATEK's `rules` and `hints` for the answer language, each keyed by language code."""
    return tomllib.loads((files("statek_sim.runtime.agents") / "languages.toml").read_text("utf-8"))


def with_rule(prompt: str, locale: Any, metadata: Mapping[str, str]) -> str:
    """Return the system prompt with the language rule for the locale, unless AUTO_LANG_RULE is FALSE.

    Raises AttributeError for a locale that is not a `StatekLocale`, as in STATEK.
    """
    if locale is None or _is_off(metadata, "AUTO_LANG_RULE"):
        return prompt
    rule = language_texts()["rules"].get(str(locale.lang_code))
    return f"{prompt}\n\n{rule}" if rule else prompt


def with_hint(message: str, locale: Any, metadata: Mapping[str, str]) -> str:
    """Return a user message with the language hint for the locale, unless AUTO_LANG_HINT is FALSE."""
    if not message or locale is None or _is_off(metadata, "AUTO_LANG_HINT"):
        return message
    hint = language_texts()["hints"].get(str(locale.lang_code))
    return f"{message} ({hint})" if hint else message


def _is_off(metadata: Mapping[str, str], key: str) -> bool:
    return str(metadata.get(key, "")).upper() == "FALSE"
