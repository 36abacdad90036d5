"""Built-in plugins for engine two. Scenarios refer to them by name, and they are examples of each kind of plugin."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from statek_sim.agent.effects import (
    PASS,
    Advice,
    Choice,
    Compaction,
    Reading,
    SideModel,
    Subject,
    TextWanted,
    ToolCall,
    ToolOutcome,
    TurnAhead,
    TurnFacts,
    TurnWatcher,
    Verdict,
    WrittenCall,
)
from statek_sim.agent.protection import BreakerSettings, LoopSettings
from statek_sim.agent.reliability import BreakerGate, loop_watcher, rescued
from statek_sim.errors import ContextOverflow
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, tool_call
from statek_sim.values import JSON, Message


def plain_json(text: str, offered: Mapping[str, Mapping[str, JSON]]) -> Reading:
    """Read a reply that is a JSON object with `name` and `parameters`; reject a reply that only starts like JSON."""
    if not text.lstrip().startswith("{"):
        return Reading(text=text, stages=("plain",))
    try:
        found = json.loads(text)
        call = WrittenCall("", str(found["name"]), json.dumps(found["parameters"]))
    except (ValueError, KeyError, TypeError) as error:
        return Reading(stages=("plain", "json"), refused=f"not a call: {error}")
    return Reading(calls=(call,), stages=("plain", "json"))


def no_secrets(subject: Subject) -> Verdict:
    """Block the word `forbidden`, and hide the word `secret`."""
    text = subject.text
    if "forbidden" in text:
        return Verdict(action="block", reason="it is forbidden")
    if "secret" in text:
        return Verdict(action="modify", reason="a secret", text=text.replace("secret", "[hidden]"))
    return PASS


async def slow_moderation(subject: Subject) -> Verdict:
    """Block text that contains `rude`, after two seconds: about as long as a moderation service takes."""
    await asyncio.sleep(2.0)
    return Verdict(action="block", reason="rude") if "rude" in subject.text else PASS


def read_before_write(ahead: TurnAhead) -> Choice:
    """Offer tools tagged `read` until a tool has been called, then tools tagged `write`."""
    return Choice(all_tags=["write" if ahead.called else "read"])


def by_first_word(ahead: TurnAhead) -> Choice | None:
    """Return the word before the colon in the user's message as the task type, or None if there is no colon."""
    task, colon, _ = ahead.message.partition(":")
    return Choice(task=task) if colon else None


def hide_clock() -> TurnWatcher:
    """Return a watcher that removes the tool `get_time` after the first turn."""

    def watch(turn: TurnFacts) -> Advice | None:
        if turn.turn > 1:
            return None
        return Advice(kind="fewer_tools", reason="Do without the clock.", tools=("get_time",))

    return watch


class SameTwice:
    """A watcher that nudges when a turn repeats the previous turn's calls, and stops the run the third time."""

    def __init__(self) -> None:
        self._before: list[object] = []

    def __call__(self, turn: TurnFacts) -> Advice | None:
        """Return a nudge or a stop if this turn repeats calls, otherwise None."""
        now = [(call.name, dict(call.arguments)) for call, _ in turn.calls]
        self._before.append(now)
        if self._before[-3:] == [now] * 3:
            return Advice(kind="stop", reason="the same calls three times")
        if self._before[-2:] == [now] * 2:
            return Advice(kind="nudge", reason="You called that before. Try something else.")
        return None

    def saved(self) -> object:
        """Return the calls in all turns so far, for a checkpoint."""
        return list(self._before)

    def restore(self, saved: Any) -> None:
        """Restore the calls returned by `saved`."""
        self._before = list(saved)


same_twice = SameTwice
"""Creates the watcher for one run."""


class OneCall:
    """A gate that admits one successful call per tool."""

    def __init__(self) -> None:
        self._called: set[str] = set()

    def admit(self, call: ToolCall, *, at: float) -> str | None:
        """Return a reason to reject the call if its tool was called successfully before, otherwise None."""
        return f"{call.name!r} was called before" if call.name in self._called else None

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        """Count a successful call to the tool."""
        if not outcome.failed:
            self._called.add(call.name)

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        """Do nothing: a call that was not executed does not count."""

    def saved(self) -> object:
        """Return the names of the tools already called, for a checkpoint."""
        return sorted(self._called)

    def restore(self, saved: Any) -> None:
        """Restore the names returned by `saved`."""
        self._called = set(saved)


def keep_last_exchange(messages: Sequence[Message], *, tokens: int) -> Compaction | None:
    """Shorten a prompt of more than 150 tokens to the system block, the task, and the last call with its results."""
    if tokens <= 150:
        return None
    last = max(at for at, message in enumerate(messages) if message.get("role") == "assistant")
    return Compaction(messages=[*messages[:2], *messages[last:]], strategy="last exchange")


def page(number: int, words: int = 100) -> str:
    """Return a page of a long document, with the given number of words.

    The same page number always gives the same page.
    """
    return f"Page {number}: " + " ".join(f"word{(number * 7 + at) % 97}" for at in range(words))


def no_history(messages: Sequence[Message], *, tokens: int) -> Compaction:
    """Raise `ContextOverflow` for every history."""
    raise ContextOverflow(f"{tokens} tokens are too many for this compactor")


def asked_summary(
    messages: Sequence[Message], *, tokens: int
) -> Generator[TextWanted, str | None, Compaction | None]:
    """Replace all but the newest exchange with a small model's summary, if the prompt exceeds 300 tokens."""
    if tokens <= 300:
        return None
    last = max(at for at, message in enumerate(messages) if message.get("role") == "assistant")
    wanted: Message = {"role": "user", "content": f"Summarise {last - 2} messages."}
    text = yield TextWanted(
        by=SideModel(model="qwen3:1.7b", role="scribe"), messages=(wanted,), max_tokens=50
    )
    note: Message = {"role": "user", "content": f"So far: {text or 'nobody knows'}"}
    return Compaction(messages=[*messages[:2], note, *messages[last:]], strategy="asked", summarised=1)


def half_wrong(request: ChatRequest) -> Reply:
    """Return a call to an unknown tool on odd turns, and a call with a new result on even turns."""
    if request.turn % 2:
        return tool_call("nowhere")
    return tool_call("tick", n=request.turn)


def patient_watcher() -> TurnWatcher:
    """Return a loop watcher that accepts five equal answers in a row from `poll`."""
    return loop_watcher(LoopSettings(polling={"poll": 5}))


def quick_breakers() -> BreakerGate:
    """Return circuit breakers that open for 30 virtual seconds after two failures."""
    return BreakerGate(BreakerSettings(failures=2, cooldown=30.0))


def reformatting_rescue(text: str, offered: Mapping[str, Mapping[str, JSON]]) -> Reading:
    """Read a reply with the rescue rules.

    If none applies, read the reply again after a simulated model has added colons.
    """
    return rescued(text, offered, reformat=lambda reply: re.sub(r'" (?=["{])', '": ', reply))
