"""Checks compactors, built-in or your own.

def test_my_compactor_keeps_the_contract() -> None:
    check_compaction(lambda limits: lambda messages: my_trim(messages, limits.budget, limits.count))
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from statek_sim.agent.context.history import call_ids, messages_of, open_from, texts_of, units_of
from statek_sim.agent.context.wire_check import wire_faults
from statek_sim.errors import BadInput, ContextOverflow, ContractViolation
from statek_sim.providers.wire.request import FormatName
from statek_sim.usage.messages import message_tokens
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.values import Message

PINNED: Final = "the budget is 4711 euros"
"""The fact pinned in the checker's histories."""

_TASK: Final = "Task: find out who broke the build"
_SYSTEM: Final = "System: never delete anything"
_ALPHABET: Final = ("text", "call", "batch", "large", "nudge", "user", "pinned")
_SHARES: Final = (1.0, 0.9, 0.6, 0.35, 0.15)
"""Budgets to try, as fractions of the history's token count."""

Compact = Callable[[list[Message]], Sequence[Message] | None]
"""Takes a history and returns a shorter one; None or an equal history means no change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for a compactor: a token `budget` for the messages, as measured by `count`, and the pinned facts."""

    budget: int
    pinned: tuple[str, ...]
    count: Callable[[Sequence[Message]], int]
    wire: FormatName = "openai"


MakeCompact = Callable[[Limits], Compact]
"""Takes limits and returns a new compactor that obeys them."""


def check_compaction(
    make_compact: MakeCompact,
    *,
    wire: FormatName = "openai",
    overflow: type[Exception] | tuple[type[Exception], ...] = ContextOverflow,
    most: int = 3,
) -> int:
    """Check a compactor on every history of up to `most` units, with five budgets each; return how many were tried.

    A unit is a text message from the model, a call with its result, a batch of two calls, a call with a large result, a
    correction, a later user message, or a pinned fact. `overflow` is what the compactor raises for a history that
    cannot fit. Raises `ContractViolation` with the smallest history for which the compactor breaks a rule. The result
    must not separate calls from their results, reorder messages, exceed the budget, or be rejected by a provider that
    uses the format `wire`. The system prompt, the task, pinned facts and the message to answer must stay. A history
    that fits must not change, one that can be made to fit must not be rejected, and a second run must give the same
    result.
    """
    if most < 1:
        raise BadInput(f"expected `most` to be 1 or more units, got {most}")
    tried = 0
    for words, history in _histories(most, wire):
        for share in _SHARES:
            limits = Limits(
                budget=max(1, int(_tokens(history) * share)), pinned=(PINNED,), count=_tokens, wire=wire
            )
            wrong = _wrong(make_compact, history, limits, overflow)
            if wrong is not None:
                parts = ", ".join(("system", "task", *words))
                raise ContractViolation(
                    f"the compactor {wrong[0]}: for [{parts}] with {limits.budget} tokens allowed, {wrong[1]}"
                )
            tried += 1
    return tried


def _histories(most: int, wire: FormatName) -> Iterator[tuple[tuple[str, ...], list[Message]]]:
    """Yield the histories that a provider accepts, from short to long."""
    for length in range(1, most + 1):
        for words in product(_ALPHABET, repeat=length):
            history = history_of(words)
            if not wire_faults(history, wire):
                yield words, history


def _one(message: Message) -> int:
    return message_tokens(message, tokenizer_for_model("gpt-4o").tokenizer)


def _tokens(messages: Sequence[Message]) -> int:
    return sum(map(_one, messages))


# -- one history under one budget ----------------------------------------------------------------------------------

_Wrong = tuple[str, str]
"""A compactor's fault, and the evidence for it."""


def _wrong(
    make_compact: MakeCompact,
    history: list[Message],
    limits: Limits,
    overflow: type[Exception] | tuple[type[Exception], ...],
) -> _Wrong | None:
    """Return a compactor's first fault on a history; faults that cause others come first."""
    made = []
    for _ in range(2):
        try:
            result = make_compact(limits)(copy.deepcopy(history))
        except overflow:
            return _given_up(history, limits)
        except Exception as error:  # noqa: BLE001  # a user's compactor
            return "raises an error other than ContextOverflow", f"it raised {type(error).__name__}: {error}"
        if result is not None and not isinstance(result, Iterable):
            return "does not return messages", f"it returned a {type(result).__name__}"
        made.append(history if result is None else list(result))
    if made[0] != made[1]:
        return "is not deterministic", "the same history gave two different results"
    if limits.count(history) <= limits.budget:
        fits = f"it has {limits.count(history)} tokens, which fits, and was changed"
        return None if made[0] == history else ("changes a history that already fits", fits)
    return _torn(made[0], limits) or _lost(made[0], history, limits) or _other(made[0], history, limits)


def _given_up(history: list[Message], limits: Limits) -> _Wrong | None:
    units = units_of(history, _one, limits.pinned)
    at = open_from(units)
    must = messages_of([unit for position, unit in enumerate(units) if unit.stays or position >= at])
    # The provider may require messages in between, so that more has to stay.
    if wire_faults(must, limits.wire) or limits.count(must) > limits.budget:
        return None
    needed = f"the system prompt, the task, pinned facts and the message to answer take {limits.count(must)} tokens"
    return "gives up although there is room", f"it raised an overflow, but {needed}"


def _torn(made: list[Message], limits: Limits) -> _Wrong | None:
    for unit in units_of(made, _one):
        ids = call_ids(unit.messages[0])
        answers = [message.get("tool_call_id") for message in unit.messages if message.get("role") == "tool"]
        if answers != ids:
            shown = f"calls {ids} with results {answers}" if ids else f"results {answers} without calls"
            return "separates calls from their results", f"there are {shown}"
    faults = wire_faults(made, limits.wire)
    return ("produces messages that a provider rejects", faults[0].sentence) if faults else None


def _lost(made: list[Message], history: list[Message], limits: Limits) -> _Wrong | None:
    def said(fact: str, messages: Sequence[Message], *roles: str) -> bool:
        chosen = [one for one in messages if not roles or one.get("role") in roles]
        return any(fact in text for message in chosen for text in texts_of(message))

    if not said(_SYSTEM, made, "system"):
        return "loses the system prompt", f"no system message contains {_SYSTEM!r}"
    if not said(_TASK, made, "user"):
        return "loses the task", f"no user message contains {_TASK!r}"
    if said(PINNED, history) and not said(PINNED, made):
        return "loses a pinned fact", f"no message contains {PINNED!r}"
    newest = units_of(history, _one)[-1]
    ids = call_ids(newest.messages[0])
    kept = any(call_ids(message) == ids for message in made) if ids else newest.messages[0] in made
    return None if kept else ("loses the message to answer", f"the newest, a {newest.kind}, is missing")


def _other(made: list[Message], history: list[Message], limits: Limits) -> _Wrong | None:
    places = [history.index(message) for message in made if message in history]
    if places != sorted(set(places)):
        return "changes the order of messages", f"messages come in the order {places}"
    tokens = limits.count(made)
    if tokens > limits.budget:
        return "exceeds the budget without an error", f"{tokens} tokens remain, but no error is raised"
    return None


# -- histories ---------------------------------------------------------------------------------------------------


def history_of(words: Sequence[str]) -> list[Message]:
    """Return a history of these units after a system prompt and a task; every message is unique."""
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
