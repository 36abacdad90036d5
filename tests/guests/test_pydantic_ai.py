"""pydantic-ai's histories and ours: there and back, and what its processors may lose."""

from __future__ import annotations

from itertools import product

import pytest

from statek_sim.agent.context.contract import check_compaction
from statek_sim.agent.context.contract import history_of as history_with

pytest.importorskip("pydantic_ai", reason="it comes with the dev extra")

from pydantic_ai.messages import ModelRequest, RetryFeedbackPart, RetryInfo

from statek_sim.errors import ContractViolation
from statek_sim.guests.pydantic_ai import compaction_of, history_of, processor_of

UNITS = ("text", "call", "batch", "large", "nudge", "user", "pinned")


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_history_comes_back_as_it_was(length: int) -> None:
    same = compaction_of(lambda history: history)
    for words in product(UNITS, repeat=length):
        assert same(history_with(words)) == history_with(words)


def test_everything_between_two_answers_is_one_request_of_pydantic_ai() -> None:
    kinds = [type(message).__name__ for message in history_of(history_with(["batch", "user", "text"]))]
    assert kinds == ["ModelRequest", "ModelResponse", "ModelRequest", "ModelResponse"]


def test_a_correction_of_pydantic_ai_is_a_message_of_the_user() -> None:
    feedback = RetryFeedbackPart("answer in JSON", retry=RetryInfo(cause="validation_error"))
    (message,) = compaction_of(lambda history: [ModelRequest(parts=[feedback])])([])
    assert (message["role"], "answer in JSON" in str(message["content"])) == ("user", True)


def test_the_newest_five_may_be_too_many() -> None:
    with pytest.raises(ContractViolation, match="exceeds the budget without an error"):
        check_compaction(lambda limits: compaction_of(lambda history: history[-5:]))


def test_a_compactor_that_gives_nothing_leaves_the_history() -> None:
    history = history_of(history_with(["call"]))
    assert processor_of(lambda messages: None)(history) is history
