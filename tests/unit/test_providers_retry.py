"""When STATEK's client tries again, and how long it waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from statek_sim.errors import ProviderFailure, ProviderHTTPError, ProviderTimeout
from statek_sim.providers.contract import example_requests
from statek_sim.providers.protocol import (
    CLIENT_TIMEOUT,
    MAX_ATTEMPTS,
    ChatRequest,
    RawReply,
    ask,
    retry_delay,
)
from tests.tables import table_test


@dataclass(frozen=True)
class Answering:
    """A provider with one answer."""

    answer: Callable[[], RawReply]

    def complete(self, request: ChatRequest) -> RawReply:
        return self.answer()


def failing(failure: ProviderFailure) -> Callable[[], RawReply]:
    def fail() -> RawReply:
        raise failure

    return fail


@table_test("status", [408, 429, 500, 503, 599])
def test_a_temporary_status_is_tried_again_after_3_and_15_seconds_and_then_given_up(status: int) -> None:
    failure = ProviderHTTPError("x", status=status)
    assert [retry_delay(failure, attempt) for attempt in (1, 2, 3)] == [3.0, 15.0, None]
    assert MAX_ATTEMPTS == 3


def test_a_timeout_is_tried_again() -> None:
    assert retry_delay(ProviderTimeout(""), 1) == 3.0


@table_test("status", [400, 401, 404, 409, 422, 499])
def test_a_lasting_status_is_not_tried_again(status: int) -> None:
    assert retry_delay(ProviderHTTPError("x", status=status), 1) is None


def test_a_failure_of_unknown_kind_is_not_tried_again() -> None:
    assert retry_delay(ProviderFailure("no idea"), 1) is None


def test_attempts_count_from_one() -> None:
    with pytest.raises(ValueError, match=r"^attempts start at 1, got 0$"):
        retry_delay(ProviderTimeout(""), 0)


def test_an_answer_within_the_client_timeout_arrives() -> None:
    reply = RawReply(b"x", CLIENT_TIMEOUT)
    assert ask(Answering(lambda: reply), example_requests()[0]) is reply


def test_an_answer_after_the_client_timeout_is_a_timeout_with_an_empty_text() -> None:
    with pytest.raises(ProviderTimeout) as caught:
        ask(Answering(lambda: RawReply(b"x", 60.5)), example_requests()[0])
    assert str(caught.value) == ""
    assert caught.value.latency == CLIENT_TIMEOUT


def test_a_failure_that_shows_after_the_client_timeout_is_a_timeout() -> None:
    with pytest.raises(ProviderTimeout) as caught:
        ask(Answering(failing(ProviderHTTPError("x", status=400, latency=61.0))), example_requests()[0])
    assert caught.value.latency == CLIENT_TIMEOUT


def test_a_failure_within_the_client_timeout_stays_what_it_is() -> None:
    failure = ProviderHTTPError("x", status=400, latency=1.0)
    with pytest.raises(ProviderHTTPError) as caught:
        ask(Answering(failing(failure)), example_requests()[0])
    assert caught.value is failure
