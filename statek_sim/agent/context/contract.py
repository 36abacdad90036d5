"""A public checker that every compactor passes, ours or a user's.

def test_my_compactor_keeps_the_contract() -> None:
    check_compaction(lambda limits: lambda messages: my_trim(messages, limits.budget, limits.count))
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Final

from statek_sim.adapters import Trial, checked, findings
from statek_sim.agent.context.history import (
    Count,
    Unit,
    call_ids,
    messages_of,
    open_from,
    texts_of,
    units_of,
)
from statek_sim.agent.context.wire_check import wire_faults
from statek_sim.errors import BadInput, ContextOverflow
from statek_sim.providers.wire.request import FormatName
from statek_sim.usage.messages import message_tokens
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.values import Message

PINNED: Final = "the budget is 4711 euros"
"""The fact that is pinned in every history that has one."""

_TASK: Final = "Task: find out who broke the build"
_SYSTEM: Final = "System: never delete anything"
_ALPHABET: Final = ("text", "call", "batch", "large", "nudge", "user", "pinned")
_SHARES: Final = (1.0, 0.9, 0.6, 0.35, 0.15)
"""Budgets that are tried, as shares of the history's tokens."""

Made = Sequence[Message]
Compact = Callable[[list[Message]], Made | None]
"""Takes a history and returns a shorter one; None, or the same, where it may stay."""


class Finding(StrEnum):
    """What can be wrong with a compactor."""

    MUTATES = "changes the history that it was given"
    RANDOM = "gives something else the second time"
    BREAKS = "raises something else than an overflow"
    TORN = "tears calls and results apart"
    INVALID = "leaves what a provider refuses"
    SYSTEM_LOST = "loses the system prompt"
    TASK_LOST = "loses the task"
    PIN_LOST = "loses a pinned fact"
    OPEN_LOST = "loses what has to be answered"
    REORDERED = "changes the order"
    OVER = "is over the budget without an error"
    GIVES_UP = "gives up though there is room"
    RESTLESS = "changes its own result again"
    NEEDLESS = "changes a history that fits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a compactor has to keep to: `budget` tokens of messages by `count`, and the texts that are pinned."""

    budget: int
    pinned: tuple[str, ...]
    count: Callable[[Sequence[Message]], int]
    wire: FormatName = "openai"


MakeCompact = Callable[[Limits], Compact]
"""Returns a fresh compactor for these limits."""


_Wrong = tuple[Finding, str]


def check_compaction(
    make_compact: MakeCompact,
    *,
    wire: FormatName = "openai",
    overflow: type[Exception] | tuple[type[Exception], ...] = ContextOverflow,
    count: Count | None = None,
    most: int = 3,
) -> int:
    """Try a compactor on every history of up to `most` units and five budgets each; return how many were tried.

    Units are a text of the model, a call with its result, a batch of two calls, one with a large result, a correction,
    a later message of the user, and a fact that is pinned. `overflow`: what it raises for a history that cannot be
    made to fit. `count`: tokens of a message, o200k_base without it. Raises `ContractViolation` with the smallest
    history that is torn, refused by a provider of the format `wire`, without the system prompt, the task, a pinned
    fact or what has to be answered, reordered, over the budget, given up for no reason, changed where it fits,
    changed again when it is given back, changed in place, or not the same twice.
    """
    return checked(_cases(make_compact, wire, overflow, count, most))


def compaction_findings(
    make_compact: MakeCompact,
    *,
    wire: FormatName = "openai",
    overflow: type[Exception] | tuple[type[Exception], ...] = ContextOverflow,
    count: Count | None = None,
    most: int = 3,
) -> dict[Finding, str]:
    """Return everything that is wrong with a compactor, each with the sentence of its smallest history."""
    return findings(_cases(make_compact, wire, overflow, count, most))


def _cases(
    make_compact: MakeCompact,
    wire: FormatName,
    overflow: type[Exception] | tuple[type[Exception], ...],
    count: Count | None,
    most: int,
) -> Iterator[Trial[Finding]]:
    """Yield, for every history and budget, the first thing that is wrong, None for nothing; small histories first."""
    if most < 1:
        raise BadInput(f"histories have up to {most} units, expected 1 or more")
    tokenizer = tokenizer_for_model("gpt-4o").tokenizer
    measured: Count = count or (lambda message: message_tokens(message, tokenizer))
    for length in range(1, most + 1):
        for words in product(_ALPHABET, repeat=length):
            history = history_of(words)
            if wire_faults(history, wire):
                continue
            whole = sum(measured(message) for message in history)
            for share in _SHARES:
                tried = _Case(history, words, max(1, int(whole * share)), measured, wire, overflow)
                yield tried.wrong(make_compact) or (None, "")


# -- histories ---------------------------------------------------------------------------------------------------


def history_of(words: Sequence[str]) -> list[Message]:
    """Return a history of these units behind a system prompt and a task; every message is one of a kind."""
    messages: list[Message] = [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": _TASK},
    ]
    for number, word in enumerate(words, 1):
        messages += _unit(word, number)
    return messages


def _unit(word: str, number: int) -> list[Message]:
    match word:
        case "text":
            return [{"role": "assistant", "content": f"Thought {number}: {_filling(number, 6)}"}]
        case "nudge":
            return [{"role": "user", "content": f"[CORRECTION REQUIRED] {number}: {_filling(number, 6)}"}]
        case "user":
            return [{"role": "user", "content": f"Wish {number}: {_filling(number, 6)}"}]
        case "pinned":
            return _turn(number, 1, f"{PINNED}, says page {number}")
        case "large":
            return _turn(number, 1, f"Page {number}: {_filling(number, 120)}")
        case "batch":
            return _turn(number, 2, f"Page {number}: {_filling(number, 12)}")
        case _:
            return _turn(number, 1, f"Page {number}: {_filling(number, 12)}")


def _turn(number: int, calls: int, result: str) -> list[Message]:
    ids = [f"call_{number}_{which}" for which in range(1, calls + 1)]
    turn: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": "read", "arguments": f'{{"page": {number}}}'},
            }
            for call_id in ids
        ],
    }
    return [
        turn,
        *({"role": "tool", "content": f"{call_id} {result}", "tool_call_id": call_id} for call_id in ids),
    ]


def _filling(number: int, words: int) -> str:
    return " ".join(f"word{(number * 7 + at) % 90}" for at in range(words))


# -- one case ----------------------------------------------------------------------------------------------------


class _Case:
    """One history under one budget."""

    def __init__(
        self,
        history: list[Message],
        words: Sequence[str],
        budget: int,
        count: Count,
        wire: FormatName,
        overflow: type[Exception] | tuple[type[Exception], ...],
    ) -> None:
        self.history, self.words, self.budget = history, words, budget
        self._count, self._wire, self._overflow = count, wire, overflow
        self._units = units_of(history, count, (PINNED,))

    def wrong(self, make_compact: MakeCompact) -> _Wrong | None:
        """Return the first thing that is wrong, in the order of what explains the others."""
        limits = Limits(budget=self.budget, pinned=(PINNED,), count=self._sum, wire=self._wire)
        given = copy.deepcopy(self.history)
        try:
            result = make_compact(limits)(given)
        except self._overflow:
            return self._given_up()
        except Exception as error:  # noqa: BLE001  # a user's compactor
            return self._found(Finding.BREAKS, f"it raised {type(error).__name__}: {error}")
        if given != self.history:
            return self._found(Finding.MUTATES, "the list that it was given is not what it was")
        if result is not None and not isinstance(result, Iterable):
            return self._found(Finding.BREAKS, f"it gave a {type(result).__name__}, expected messages")
        made = self.history if result is None else list(result)
        return self._made_wrong(made) or self._again(make_compact, limits, made)

    def _made_wrong(self, made: list[Message]) -> _Wrong | None:
        if self._sum(self.history) <= self.budget:
            if made != self.history:
                return self._found(
                    Finding.NEEDLESS, f"it has {self._sum(self.history)} tokens and was changed"
                )
            return None
        return self._torn(made) or self._lost(made) or self._other(made)

    def _torn(self, made: list[Message]) -> _Wrong | None:
        for unit in units_of(made, self._count):
            ids = call_ids(unit.messages[0])
            answers = [
                message.get("tool_call_id") for message in unit.messages if message.get("role") == "tool"
            ]
            if answers != ids:
                shown = f"calls {ids} with results {answers}" if ids else f"results {answers} without calls"
                return self._found(Finding.TORN, f"there are {shown}")
        faults = wire_faults(made, self._wire)
        return self._found(Finding.INVALID, faults[0].sentence) if faults else None

    def _lost(self, made: list[Message]) -> _Wrong | None:
        texts = [text for message in made for text in texts_of(message)]
        system = [text for message in made if message.get("role") == "system" for text in texts_of(message)]
        if not any(_SYSTEM in text for text in system):
            return self._found(Finding.SYSTEM_LOST, f"no message of the system says {_SYSTEM!r}")
        if not any(
            _TASK in text for message in made if message.get("role") == "user" for text in texts_of(message)
        ):
            return self._found(Finding.TASK_LOST, f"no message of the user says {_TASK!r}")
        if "pinned" in self.words and not any(PINNED in text for text in texts):
            return self._found(Finding.PIN_LOST, f"nothing says {PINNED!r}")
        last = self._units[-1]
        if last.kind in ("user", "nudge"):
            kept = last.messages[0] in made
        else:
            ids = call_ids(last.messages[0])
            kept = last.messages[0] in made if not ids else any(call_ids(message) == ids for message in made)
        return None if kept else self._found(Finding.OPEN_LOST, f"the newest, {_short(last)}, is not there")

    def _other(self, made: list[Message]) -> _Wrong | None:
        places = [self.history.index(message) for message in made if message in self.history]
        if places != sorted(set(places)):
            return self._found(Finding.REORDERED, f"messages come in the order {places}")
        tokens = self._sum(made)
        if tokens > self.budget:
            return self._found(Finding.OVER, f"{tokens} tokens are left and nothing is raised")
        return None

    def _again(self, make_compact: MakeCompact, limits: Limits, made: list[Message]) -> _Wrong | None:
        try:
            second = make_compact(limits)(copy.deepcopy(self.history))
            settled = make_compact(limits)(copy.deepcopy(made))
        except Exception as error:  # noqa: BLE001  # a user's compactor
            return self._found(Finding.RANDOM, f"the second time it raised {type(error).__name__}: {error}")
        if list(self.history if second is None else second) != made:
            return self._found(Finding.RANDOM, "the same history gave two results")
        if list(made if settled is None else settled) != made:
            return self._found(
                Finding.RESTLESS, "its own result, which fits, is changed when it is given back"
            )
        return None

    def _given_up(self) -> _Wrong | None:
        at = open_from(self._units)
        must = [unit for position, unit in enumerate(self._units) if unit.stays or position >= at]
        least = self._sum(messages_of(must))
        if wire_faults(messages_of(must), self._wire):
            # What is in between may be needed, so that there is more to keep than that.
            return None
        if least > self.budget:
            return None
        needed = f"the system prompt, the task, pinned facts and what has to be answered are {least} tokens"
        return self._found(Finding.GIVES_UP, f"it raised an overflow, and {needed}")

    def _sum(self, messages: Sequence[Message]) -> int:
        return sum(self._count(message) for message in messages)

    def _found(self, finding: Finding, why: str) -> _Wrong:
        parts = ", ".join(("system", "task", *self.words))
        sentence = f"the compactor {finding.value}: of [{parts}] with {self.budget} tokens allowed, {why}"
        return finding, sentence


def _short(unit: Unit) -> str:
    return f"{unit.kind} of {len(unit.messages)} messages"
