"""What the checker of compactors finds, and that ours pass it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from statek_sim.agent.context.contract import PINNED, Compact, Limits, MakeCompact, history_of
from statek_sim.agent.context.history import messages_of, open_from, texts_of, units_of
from statek_sim.checks import check_compaction
from statek_sim.errors import BadInput, ContextOverflow, ContractViolation
from statek_sim.providers.wire.request import FormatName
from statek_sim.values import Message
from tests.context.histories import count, ours
from tests.says import line_with
from tests.tables import table_test


@pytest.mark.parametrize("keep", [0, 2, *(pytest.param(keep, marks=pytest.mark.slow) for keep in (1, 4))])
def test_ours_passes_whatever_it_keeps(keep: int) -> None:
    assert check_compaction(ours(keep=keep)) == 399 * 5


@pytest.mark.parametrize("wire", ["responses", "anthropic", "gemini"])
def test_ours_passes_for_every_format(wire: FormatName) -> None:
    assert check_compaction(ours(keep=2), wire=wire) > 1_000


# -- planted faults ---------------------------------------------------------------------------------------------


def last_messages(limits: Limits) -> Compact:
    """Keep as many messages from the end as fit: the usual one-liner."""

    def compact(messages: list[Message]) -> list[Message]:
        kept: list[Message] = []
        for message in reversed(messages):
            if limits.count([message, *kept]) > limits.budget:
                break
            kept.insert(0, message)
        return kept

    return compact


def sorting(limits: Limits) -> Compact:
    """Put the messages of the user together."""

    def compact(messages: list[Message]) -> list[Message]:
        if limits.count(messages) <= limits.budget:
            return messages
        made = ours()(limits)(messages) or messages
        units = units_of(made, count)
        first = sorted(units[2:-1], key=lambda unit: unit.kind == "turn")
        return messages_of([*units[:2], *first, units[-1]])

    return compact


def unpinned(limits: Limits) -> Compact:
    """Forget that anything is pinned."""
    made = Limits(budget=limits.budget, pinned=(), count=limits.count, wire=limits.wire)
    return ours()(made)


def giving_up(limits: Limits) -> Compact:
    """Raise an overflow as soon as it is over the budget."""

    def compact(messages: list[Message]) -> list[Message]:
        if limits.count(messages) > limits.budget:
            raise ContextOverflow("too long")
        return messages

    return compact


def silent(limits: Limits) -> Compact:
    """Leave what does not fit."""
    inner = ours()(limits)

    def compact(messages: list[Message]) -> Sequence[Message] | None:
        try:
            return inner(messages)
        except ContextOverflow:
            return messages

    return compact


def chancy(limits: Limits) -> Compact:
    """Write a number into the note."""
    inner, chance = ours()(limits), random.Random()

    def compact(messages: list[Message]) -> Sequence[Message] | None:
        made = inner(messages)
        if made is None:
            return None
        return [
            one if one.get("role") != "tool" else {**one, "content": str(chance.random())} for one in made
        ]

    return compact


def without_the_newest(limits: Limits) -> Compact:
    """Drop from the end."""

    def compact(messages: list[Message]) -> list[Message]:
        units = units_of(messages, count, limits.pinned)
        while limits.count(messages_of(units)) > limits.budget and len(units) > 2:
            units.pop(next((at for at in range(len(units) - 1, 1, -1) if not units[at].stays), -1))
        return messages_of(units)

    return compact


def shrinking(limits: Limits) -> Compact:
    """Take something away each time it is asked, whether it has to or not."""
    inner = ours()(limits)

    def compact(messages: list[Message]) -> Sequence[Message]:
        made = list(inner(messages) or messages)
        units = units_of(made, count, limits.pinned)
        at = next((at for at in range(open_from(units)) if not units[at].stays), None)
        over = any("call_1" in text for text in texts_of(made[-1])) or len(made) > 6
        return made if at is None or not over else messages_of([*units[:at], *units[at + 1 :]])

    return compact


def half_batches(limits: Limits) -> Compact:
    """Keep the first result of each batch only."""
    inner = ours()(limits)

    def compact(messages: list[Message]) -> Sequence[Message] | None:
        made = inner(messages)
        return made and [one for one in made if not str(one.get("tool_call_id", "")).endswith("_2")]

    return compact


def system_again(limits: Limits) -> Compact:
    """Put a summary into a second system message."""

    def compact(messages: list[Message]) -> Sequence[Message] | None:
        made = ours()(limits)(messages)
        if made is None:
            return None
        return [
            {**one, "role": "system"} if str(one.get("content")).startswith("[CONTEXT SUMMARY") else one
            for one in made
        ]

    return compact


@table_test(
    ("planted", "finding"),
    [
        (last_messages, "loses the system prompt"),
        (sorting, "changes the order of messages"),
        (unpinned, "loses a pinned fact"),
        (giving_up, "gives up although there is room"),
        (silent, "exceeds the budget without an error"),
        (chancy, "is not deterministic"),
        (without_the_newest, "loses the message to answer"),
        (shrinking, "changes a history that already fits"),
        (half_batches, "separates calls from their results"),
    ],
)
def test_a_planted_fault_is_found(planted: MakeCompact, finding: str) -> None:
    with pytest.raises(ContractViolation, match=f"^the compactor {finding}: for "):
        check_compaction(planted)


def test_a_summary_that_anthropic_never_sees_is_found() -> None:
    check_compaction(system_again)
    with pytest.raises(
        ContractViolation,
        match=r"produces messages that a provider rejects: .* which anthropic cannot express$",
    ):
        check_compaction(system_again, wire="anthropic")


def test_the_counterexample_is_the_smallest_and_reads_as_a_sentence() -> None:
    with pytest.raises(
        ContractViolation,
        match=r"^the compactor gives up although there is room: for \[system, task, text, text\] with 54 "
        r"tokens allowed, "
        r"it raised an overflow, but the system prompt, the task, pinned facts and the message to answer take 41 "
        r"tokens$",
    ):
        check_compaction(giving_up)


def test_an_error_that_is_none_of_the_overflows_is_a_finding() -> None:
    def broken(limits: Limits) -> Compact:
        return lambda messages: messages[9:10][0]  # type: ignore[return-value]  # that is the fault

    with pytest.raises(
        ContractViolation, match=r"raises an error other than ContextOverflow: .* it raised IndexError"
    ):
        check_compaction(broken)


def test_an_overflow_of_ones_own_may_be_named() -> None:
    def mine(limits: Limits) -> Compact:
        inner = ours()(limits)

        def compact(messages: list[Message]) -> Sequence[Message] | None:
            try:
                return inner(messages)
            except ContextOverflow as error:
                raise MemoryError(str(error)) from None

        return compact

    assert check_compaction(mine, overflow=MemoryError) == 399 * 5
    with pytest.raises(ContractViolation, match="MemoryError"):
        check_compaction(mine)


def test_histories_of_no_unit_are_refused() -> None:
    with pytest.raises(BadInput, match=line_with("`most`", "1 or more", "got 0")):
        check_compaction(ours(), most=0)


def test_a_history_with_a_pin_says_it() -> None:
    assert any(PINNED in text for one in history_of(["text", "pinned"]) for text in texts_of(one))
