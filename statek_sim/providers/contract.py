"""A checker for any implementation of `Provider`.

def test_my_provider_keeps_the_contract() -> None:
    check_provider(lambda: MyProvider("recording.json"))
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, NoReturn, SupportsIndex

from statek_sim.errors import (
    BadInput,
    ContractViolation,
    InvalidFormat,
    NetworkForbidden,
    ProviderFailure,
    ScriptError,
)
from statek_sim.providers.network import forbid_network
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply
from statek_sim.providers.wire.openai import read_reply
from statek_sim.providers.wire.reply import MALFORMED
from statek_sim.values import JSON, Message

TURNS: Final = 64
"""The number of turns in the example conversation; a provider that answers all of them counts as endless."""

_TOOL: Final[dict[str, JSON]] = {
    "type": "function",
    "function": {
        "name": "note",
        "description": "Keep a note.",
        "parameters": {"type": "object", "properties": {"body": {"type": "string"}}, "required": ["body"]},
    },
}


def check_provider(
    make_provider: Callable[[], Provider],
    *,
    requests: Sequence[ChatRequest] | None = None,
) -> None:
    """Raise `ContractViolation` unless `make_provider` returns a valid provider.

    `make_provider` is called twice and must return a new provider each time. Both providers get the same `requests`
    (default: `example_requests()`) until they have no more answers. The checks are:

    - `complete` returns a `RawReply` with bytes and a finite latency of 0 or more, or raises a `ProviderFailure`.
    - When it has no more answers, `complete` raises a `ScriptError`, and raises it again on the next call.
    - Each body is a chat completion.
    - Both providers give the same answers, and at least one request is answered.
    - A provider never modifies a request, sleeps or uses the network.
    """
    conversation = tuple(requests) if requests is not None else example_requests()
    if not conversation:
        raise BadInput("cannot check a provider without requests")
    first = _outcomes(make_provider(), conversation)
    if first[0].last:
        _violated(f"answered no request; pass `requests` that it accepts: {first[0].detail!s}")
    second = _outcomes(make_provider(), conversation)
    for number, (answer, again) in enumerate(zip(first, second, strict=False), 1):
        if answer != again:
            _violated(
                f"is not deterministic: a fresh provider answered request {number} with {again}, not {answer}"
            )


def example_requests(*, role: str = "agent", turns: int = TURNS) -> tuple[ChatRequest, ...]:
    """Return the requests from a conversation in the job `main`. Each request adds a reply and its console output."""
    messages: list[Message] = [
        {"role": "system", "content": "You are a careful worker."},
        {"role": "user", "content": "Handle the next item."},
    ]
    for turn in range(1, turns):
        messages.append({"role": "assistant", "content": f"```python\nnote({turn})\n```"})
        messages.append({"role": "user", "content": f"> noted {turn}"})
    return tuple(
        ChatRequest(
            job_id="main",
            role=role,
            turn=turn,
            attempt=1,
            at=float(turn),
            model="gpt-4o",
            messages=[dict(message) for message in messages[: 2 * turn]],
            tools=(_TOOL,),
            temperature=None,
            bytes_sent=100 * turn,
        )
        for turn in range(1, turns + 1)
    )


class _Outcome(NamedTuple):
    """A provider's result for one request; `last` is true if the provider has no more answers."""

    kind: str
    detail: bytes | str
    latency: float
    last: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {repr(self.detail)[:200]} after {self.latency!r} s"


def _outcomes(provider: Provider, requests: Sequence[ChatRequest]) -> list[_Outcome]:
    """Call a provider until it has no more answers, then once again, and return the results."""
    if not callable(getattr(provider, "complete", None)):
        _violated(f"has no method `complete`: {provider!r}")
    outcomes: list[_Outcome] = []
    for request in requests:
        outcomes.append(_outcome(provider, request))
        if outcomes[-1].last:
            again = _outcome(provider, request)
            if not again.last:
                _violated(
                    f"had no answer to turn {request.turn} of job {request.job_id!r}, then gave one: {again}"
                )
            break
    return outcomes


def _outcome(provider: Provider, request: ChatRequest) -> _Outcome:
    """Call a provider once, and check and return its answer."""
    before, where = repr(request), f"turn {request.turn} of job {request.job_id!r}"
    with _no_sleep() as naps, forbid_network(allow_loopback=False) as network:
        outcome = _answer(provider, request, where)
    if naps:
        _violated(
            f"slept for {naps[0]!r} real seconds at {where}; report the time in `RawReply.latency` instead"
        )
    if network.attempts:
        _violated(f"tried to reach {network.attempts[0].host!r} over the network at {where}")
    if repr(request) != before:
        _violated(f"changed the request at {where}; requests are read-only")
    latency = outcome.latency
    if isinstance(latency, bool) or not (math.isfinite(latency) and latency >= 0):
        _violated(f"took {latency!r} virtual seconds at {where}, expected a finite number, 0 or more")
    if isinstance(outcome.detail, bytes):
        try:
            read_reply(outcome.detail)
        except (InvalidFormat, *MALFORMED) as error:
            _violated(
                f"returned a body that is not a chat completion at {where}: {type(error).__name__}: {error}",
                error,
            )
    return outcome


def _answer(provider: Provider, request: ChatRequest, where: str) -> _Outcome:
    try:
        reply = provider.complete(request)
    except ProviderFailure as failure:
        return _Outcome(type(failure).__name__, str(failure), failure.latency)
    except (ScriptError, _Slept, NetworkForbidden) as error:
        return _Outcome(type(error).__name__, str(error), 0.0, last=True)
    except Exception as error:  # noqa: BLE001  # a provider under test may raise anything
        _violated(
            f"raised {error!r} at {where}, expected a RawReply, a ProviderFailure or a ScriptError", error
        )
    if not isinstance(reply, RawReply):
        # Close a coroutine, because one that is never awaited causes a warning later.
        getattr(reply, "close", lambda: None)()
        _violated(f"returned {type(reply).__name__} at {where}, expected RawReply")
    if not isinstance(reply.body, bytes):
        _violated(f"returned a body of type {type(reply.body).__name__} at {where}, expected bytes")
    return _Outcome("RawReply", reply.body, reply.latency)


class _Slept(BaseException):
    """Raised when a provider sleeps; a `BaseException`, so that the provider's retry code does not catch it."""


@contextmanager
def _no_sleep() -> Iterator[list[float]]:
    """Make `time.sleep` raise `_Slept` during the `with` block, and collect the requested seconds."""
    naps: list[float] = []

    def refuse(seconds: float | SupportsIndex, /) -> NoReturn:
        naps.append(float(seconds))
        raise _Slept

    original = time.sleep
    time.sleep = refuse
    try:
        yield naps
    finally:
        time.sleep = original


def _violated(sentence: str, cause: Exception | None = None) -> NoReturn:
    raise ContractViolation(f"the provider {sentence}") from cause
