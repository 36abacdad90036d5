"""Small histories for tests of the context manager, and how their tokens are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from statek_sim.agent.context.contract import Compact, Limits, MakeCompact
from statek_sim.agent.context.manager import ContextSettings, compacted
from statek_sim.agent.conversation import Envelopes
from statek_sim.agent.effects import SideModel, TextWanted
from statek_sim.values import Message

METER = Envelopes().meter("gpt-4o")
HEAD: list[Message] = [{"role": "system", "content": "You work."}, {"role": "user", "content": "Find it."}]


def count(message: Message) -> int:
    return METER.measure(message)[1]


def tokens(messages: Sequence[Message]) -> int:
    return sum(map(count, messages))


def turn(number: int, *results: str, text: str | None = None) -> list[Message]:
    ids = [f"call_{number}_{at}" for at in range(len(results))]
    calls: Message = {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {
                "id": one,
                "type": "function",
                "function": {"name": "read", "arguments": f'{{"page": {number}}}'},
            }
            for one in ids
        ],
    }
    answers: list[Message] = [
        {"role": "tool", "content": result, "tool_call_id": one}
        for one, result in zip(ids, results, strict=True)
    ]
    return [calls, *answers]


def words(number: int) -> str:
    return " ".join(f"word{at % 89}" for at in range(number))


def ours(
    *,
    keep: int = 1,
    summary: SideModel | None = None,
    answer: Callable[[TextWanted], str | None] | None = None,
) -> MakeCompact:
    """Return our compactor for the checker."""

    def make(limits: Limits) -> Compact:
        settings = ContextSettings(
            budget=limits.budget, reserve=0, keep=keep, pinned=limits.pinned, summary=summary
        )

        def compact(messages: list[Message]) -> Sequence[Message] | None:
            def one(message: Message) -> int:
                return limits.count([message])

            made = compacted(messages, settings, one, wire=limits.wire, summary=answer)
            return None if made is None else made.messages

        return compact

    return make
