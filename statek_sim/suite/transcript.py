"""Renders a run as readable lines that show, in order, who said, called or printed what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from statek_sim import trace as events
from statek_sim.backends.record import FUTURE_TEXT
from statek_sim.providers.mismatch import shorten
from statek_sim.trace import Event
from statek_sim.values import Message

WIDTH: Final = 100
"""The maximum length of a line, in characters; the middle of a longer line is left out."""

_HEAD, _TAIL = 5, 3


@dataclass(frozen=True, slots=True)
class Line:
    """One line about an event at virtual second `at`; `job` is empty if the event concerns no job."""

    at: float
    job: str
    who: str
    text: str


def transcript(trace: Iterable[Event], *, job: str | None = None) -> Iterator[Line]:
    """Yield a run's lines; with `job`, only lines that concern this job or no job at all."""
    return (line for _, line in numbered(trace) if job is None or line.job in ("", job))


def numbered(trace: Iterable[Event]) -> Iterator[tuple[int, Line]]:
    """Yield a run's lines, each with the position of its event in the trace."""
    seen: dict[str, _Seen] = {}
    for seq, event in enumerate(trace):
        for who, text in _lines(event, seen.setdefault(event.job, _Seen())):
            yield seq, Line(event.at, event.job, who, text)


def place(instruction: str) -> str:
    """Describe where a waiting job will continue; statements count from 0 in the trace and from 1 here."""
    if instruction.isdecimal():
        return f"statement {int(instruction) + 1}"
    return (
        f"python_cli at {instruction}"
        if instruction.startswith("(")
        else f"a place that was lost: {instruction}"
    )


def formatted(lines: Sequence[Line], *, name_jobs: bool) -> list[str]:
    """Return lines as text: time, job (with `name_jobs`), actor and action; long strings are shortened."""
    width = max((len(line.job) for line in lines), default=0) if name_jobs else 0
    shown: list[str] = []
    last: float | None = None
    for line in lines:
        time = f"{line.at:g}s" if line.at != last else ""
        job = f"{line.job:<{width}}  " if name_jobs else ""
        head = f"{time:>7}  {job}{line.who:<9}  "
        first, *rest = _shortened(line.text)
        shown.append((head + first).rstrip())
        shown.extend((" " * len(head) + more).rstrip() for more in rest)
        last = line.at
    return shown


class _Seen:
    """The text already shown for a job, which a request's lines do not repeat."""

    __slots__ = ("code", "console", "pushed")

    def __init__(self) -> None:
        self.console: list[str] = []
        self.pushed: list[str] = []
        self.code = ""


def _lines(event: Event, seen: _Seen) -> Iterator[tuple[str, str]]:
    """Yield the actor and text for an event; steps and status changes yield nothing."""
    match event:
        case events.LLMRequested():
            yield from _request(event, seen)
        case events.LLMReplied():
            seen.code = "\n".join((event.text, *event.tool_calls))
            if event.text or not event.tool_calls:
                yield "assistant", event.text or "(empty)"
            for call in event.tool_calls:
                yield "assistant", f"[calls {call}]"
        case events.CodeExecuted():
            # The model's code was shown as its reply; what remains is warmup and messages that are code.
            if event.source.strip() not in seen.code and repr(event.source)[1:-1] not in seen.code:
                yield "code", event.source
            if event.outcome in ("waiting", "contained"):
                yield "code", f"({event.outcome})"
        case events.UserMessage():
            seen.pushed.append(event.text)
            yield "user", event.text
        case events.ConsoleLine():
            seen.console.append(event.text)
            yield "console", event.text
        case events.ToolCalled():
            yield "tool", f"{event.name}({event.arguments})"
        case events.ToolReturned():
            ended = f"-> {_result(event)}" if event.error is None else f"raised {event.error}"
            yield "tool", f"{event.name} {ended}"
        case _:
            yield from _note(event)


def _note(event: Event) -> Iterator[tuple[str, str]]:
    """Yield the actor and text for an event that can be understood without other events."""
    match event:
        case events.StatusChanged() | events.StepStarted():
            return
        case events.LLMRequested() | events.LLMReplied() | events.CodeExecuted() | events.UserMessage():
            return  # See `_lines`.
        case events.ConsoleLine() | events.ToolCalled() | events.ToolReturned():
            return
        case events.JobCreated():
            parent = f", child of {event.parent}" if event.parent else ""
            yield "job", f"{event.job}: agent {event.role} on {event.model}{parent}"
        case events.Waiting():
            yield "job", f"waits in {place(event.instruction)}"
        case events.Released():
            yield "job", "the awaited future is ready"
        case events.ExitCalled():
            yield "exit", event.status
        case events.RequestFailed():
            again = "gives up" if event.retry_in is None else f"retry in {event.retry_in:g}s"
            yield "provider", f"{event.error} ({again})"
        case events.Delivered():
            yield "delivered", event.body if event.media is None else f"{event.body} [media {event.media}]"
        case events.HandlerRegistered():
            yield "handler", f"{event.name} registered for {event.context}"
        case events.HandlerRan():
            failed = f", raised {event.failed}" if event.failed else ""
            yield "handler", f"{event.name}(context={event.context}, error={event.error}){failed}"
        case events.JobStopped():
            yield "stopped", event.reason + (f": {event.detail}" if event.detail else "")
        case events.Reactivated():
            yield "job", f"active again, by {event.by}"
        case events.Notified():
            yield "notice", event.text + (" (queued)" if event.queued else "")
        case events.SubtaskCompleted():
            ended = f"failed: {event.error}" if event.error is not None else f"-> {event.result}"
            yield "subtask", f"{event.subtask} {ended}"
        case events.DifficultyRaised():
            yield "job", f"difficulty is now {event.difficulty}, at {event.tokens} tokens"
        case events.WorldChanged():
            yield "world", f"{event.subject}: {event.change}"
        case events.StoreRemark():
            yield "store", event.told
        case _:
            yield from _harness(event)


def _harness(event: events.AgentEvent) -> Iterator[tuple[str, str]]:
    """Yield the actor and text for an engine two event."""
    match event:
        case events.ToolsOffered():
            sent = "" if event.sent else " (not sent to the model)"
            yield "tools", f"{', '.join(event.names) or 'none'}{sent}"
        case events.ReplyRead():
            found = f"refused: {event.refused}" if event.refused is not None else ", ".join(event.calls)
            yield "rescue", f"[{' > '.join(event.stages)}] {found or 'no calls'}"
        case events.CallRefused():
            yield "refused", f"{event.name}({event.arguments}): {event.reason}"
        case events.Nudged():
            yield "nudge", f"{event.failure}, {event.number} of {event.limit}"
        case events.StepMoved():
            left = f"; open: {', '.join(event.open)}" if event.open else "; none open"
            yield "step", f"{event.step} {event.change}{left}"
        case events.Compacted():
            before = f"{event.messages_before} messages, {event.tokens_before} tokens"
            after = f"{event.messages_after} messages, {event.tokens_after} tokens"
            yield "compacted", f"{event.strategy}: {before} -> {after}; {_lost_words(event)}"
        case events.HarnessSpoke():
            yield event.part, f"{event.action}: {event.detail}"
        case events.PersonAsked():
            until = "" if event.deadline is None else f" (until {event.deadline:g} s)"
            yield "asked", f"{event.question}{until}"
        case events.PersonAnswered():
            yield "person", f"{event.kind}: {event.text}" if event.text else event.kind
        case events.AttemptEnded():
            spent = f"{event.tokens} tokens" + ("" if event.cost is None else f", ${event.cost}")
            why = f": {event.detail}" if event.detail else ""
            yield "attempt", f"{event.level} #{event.number}, {spent}: {event.cause}{why}"
        case events.Escalated():
            task = "" if event.task_type is None else f" ({event.task_type})"
            yield "escalated", f"{event.from_level} -> {event.to_level or 'nobody'}{task}: {event.cause}"
        case events.Committed():
            yield "commit", f"{event.point}, iteration {event.iteration}, {event.messages} messages"
        case events.ProcessKilled():
            yield "killed", "the process died"
        case events.RunResumed():
            where = f"{event.point}, iteration {event.iteration}"
            yield "resumed", f"from the commit of {event.committed:g} s: {where}"
        case events.CallRecalled():
            yield "recalled", f"{event.name} ({event.how}): {event.detail}"
        case _:
            assert_never(event)


def _lost_words(event: events.Compacted) -> str:
    """Return what a compaction removed, and the number of unchanged tokens in the prompt."""
    done = {
        "results cleared": event.cleared,
        "turns summarised": event.summarised,
        "messages dropped": event.dropped,
        "results cut": event.cut,
    }
    counted = [f"{number} {what}" for what, number in done.items() if number]
    return ", ".join([*counted, f"the first {event.prefix_tokens} tokens as before"])


def _request(event: events.LLMRequested, seen: _Seen) -> Iterator[tuple[str, str]]:
    """Yield the role and text of new messages in a request, without those already shown."""
    for message in event.new:
        content = _content(message)
        role = str(message.get("role"))
        known = content in seen.pushed or _is_console(content, seen.console)
        if role not in ("assistant", "tool") and content and not known:
            yield role, content
    seen.console.clear()
    seen.pushed.clear()


def _is_console(content: str, console: Sequence[str]) -> bool:
    """Return whether a message shows console lines only; chat styles differ in prefix and frame."""
    printed = {line for text in console for line in text.splitlines()}
    lines = [line.removeprefix("> ") for line in content.splitlines()]
    if len(lines) > 2 and lines[0].startswith("<") and lines[-1].startswith("</"):
        lines = lines[1:-1]
    return bool(printed) and all(line in printed for line in lines)


def _result(event: events.ToolReturned) -> str:
    """Return a tool's result; the private fields of a future are left out, because agents never see them."""
    return "a future" if FUTURE_TEXT.match(event.result or "") else str(event.result)


def _content(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def _shortened(text: str) -> list[str]:
    """Return the lines of a string; long lines are shortened, and the middle of a long string is left out."""
    lines = text.splitlines() or [""]
    if len(lines) > _HEAD + _TAIL + 1:
        left_out = len(lines) - _HEAD - _TAIL
        lines = [*lines[:_HEAD], f"... {left_out} more lines ...", *lines[-_TAIL:]]
    return [shorten(line, WIDTH) for line in lines]
