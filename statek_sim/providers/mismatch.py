"""Error messages for requests without a scripted reply, and for replies that were never used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from statek_sim.did_you_mean import closest
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import (
    Answer,
    Chat,
    Computed,
    HttpError,
    NoAnswer,
    RawBody,
    RawStream,
    Reply,
    Vector,
)
from statek_sim.providers.wire.request import calls_of, text_in
from statek_sim.values import Message, printable

_TAIL = 3
_LISTED = 10


@dataclass(slots=True, eq=False)
class Entry:
    """A reply, its one-based `position` in the script under `key`, and how often it was `used`."""

    key: str
    position: int
    reply: Reply
    used: int = 0

    def __str__(self) -> str:
        name = f"reply {self.position}" + (f" of {self.key!r}" if self.key else "")
        return f"{name}: {describe(self.reply)}{_uses(self.reply, self.used)}"


def exhausted_text(request: ChatRequest, key: str, total: int) -> str:
    """Return the error message for a request after all `total` replies under `key` were used."""
    return "\n".join(
        (
            f"{_who(request)} asked for one more reply, but {_script(key)} has {_count(total)}, all used",
            *conversation_tail(request.messages),
            f"add a reply to {_script(key)}, or {_end(request)}",
        )
    )


def _end(request: ChatRequest) -> str:
    """Return advice on how the script can end the job before this request."""
    if request.ends_by == "exit":
        return f"end the job before turn {request.turn} with exit(...)"
    return f"make a reply before turn {request.turn} the final answer: text without tool calls"


def unmatched_text(request: ChatRequest, key: str, pending: Sequence[Entry]) -> str:
    """Return the error message for a request that matches none of the `pending` replies under `key`."""
    return "\n".join(
        (
            f"{_who(request)} asked for a reply, but none of the {len(pending)} left in {_script(key)} matches",
            *conversation_tail(request.messages),
            *_listing(pending),
            "change a condition, or add a reply without a condition",
        )
    )


def no_script_text(request: ChatRequest, keys: Iterable[str]) -> str:
    """Return the error message for a request from a job without a script; `keys` lists the keys of all scripts."""
    names = list(keys)
    known = ", ".join(map(repr, names)) or "nobody"
    near = closest(request.role, names)
    hint = f"; or is {near!r} a typo?" if near else ""
    return "\n".join(
        (
            f"{_who(request)} asked for a reply, but there are scripts only for {known}",
            *conversation_tail(request.messages),
            f"add a script for {request.role!r} or 'job:{request.job_id}'{hint}",
        )
    )


def unused_text(pending: Sequence[Entry]) -> str:
    """Return the error message for replies that were never used."""
    return "\n".join(
        (
            _never_used(len(pending)),
            *_listing(pending),
            "remove them, or let the agent run longer",
        )
    )


def conversation_tail(messages: Sequence[Message], plain: Callable[[str], str] = str) -> list[str]:
    """Return a shortened line for each of the last three messages; `plain` redacts strings."""
    return [f"  {_message_line(message, plain)}" for message in messages[-_TAIL:]] or ["  (no messages yet)"]


def describe(reply: Reply) -> str:
    """Return a short description of a reply's answer, job and condition."""
    limits = [f"for job {reply.job!r}"] if reply.job is not None else []
    limits += [f"when {reply.condition}"] if reply.condition is not None else []
    return " ".join((_describe_answer(reply.answer), *limits))


def shorten(content: str, limit: int = 80) -> str:
    """Return `content` on one line; the middle is omitted if it has more than `limit` characters."""
    line = printable(content)
    if len(line) <= limit:
        return line
    half = (limit - 5) // 2
    return f"{line[:half]} ... {line[-half:]}"


def _describe_answer(answer: Answer) -> str:
    match answer:
        case Chat(text=text, code=code, calls=calls):
            parts = [f"text '{shorten(text)}'"] if text is not None else []
            parts += [f"code '{shorten(code)}'"] if code is not None else []
            parts += [f"tool call {call.name!r}" for call in calls]
            return " and ".join(parts) or "an empty message"
        case HttpError(status=status):
            return f"HTTP {status}"
        case NoAnswer():
            return "timeout"
        case RawBody(body=body):
            return f"body '{shorten(body.decode(errors='replace'))}'"
        case RawStream(pieces=pieces):
            return f"a stream of {len(pieces)} pieces"
        case Vector(values=values):
            return f"an embedding of {len(values)} numbers"
        case Computed(function=function):
            return f"callable {getattr(function, '__qualname__', type(function).__qualname__)!r}"


def _message_line(message: Message, plain: Callable[[str], str]) -> str:
    content = message.get("content")
    text = plain(text_in(content))
    parts = [shorten(text)] if text else []
    if isinstance(content, list):
        silent = sum(not (isinstance(part, dict) and isinstance(part.get("text"), str)) for part in content)
        parts += [f"[{silent} part{'s' * (silent > 1)} without text]"] if silent else []
    parts += [f"[calls {name} {shorten(plain(str(arguments)))}]" for _, name, arguments in calls_of(message)]
    return f"{message.get('role')}: {' '.join(parts)}"


def _listing(pending: Sequence[Entry]) -> list[str]:
    lines = [f"  {entry}" for entry in pending[:_LISTED]]
    if len(pending) > _LISTED:
        lines.append(f"  ... and {len(pending) - _LISTED} more")
    return lines


def _uses(reply: Reply, used: int) -> str:
    if reply.repeat is None:
        return f" (repeats forever, used {used} times)"
    return f" (used {used} of {reply.repeat} times)" if reply.repeat > 1 else ""


def _who(request: ChatRequest) -> str:
    return f"job {request.job_id!r} (agent {request.role!r}, turn {request.turn}, attempt {request.attempt})"


def _script(key: str) -> str:
    return f"script {key!r}" if key else "the script"


def _count(total: int) -> str:
    return "1 reply" if total == 1 else f"{total} replies"


def _never_used(total: int) -> str:
    return "1 scripted reply was never used" if total == 1 else f"{total} scripted replies were never used"
