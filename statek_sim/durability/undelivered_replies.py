"""Answers that a dead process got and did not store: the next one's jobs get them again, and nobody pays twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from statek_sim.providers.protocol import ChatRequest, Provider, RawReply

REPLY_OVER: Final = frozenset({"reply stored", "reply held back"})
"""What the trace is told when nobody will ask for a job's last answer again."""


class UndeliveredReplies:
    """A provider that passes requests on, but for jobs whose last answer another process got and did not store."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._pending: dict[str, RawReply] = {}
        self._undelivered: dict[str, RawReply] = {}

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer one request."""
        undelivered = self._undelivered.pop(request.job_id, None)
        reply = self._provider.complete(request) if undelivered is None else undelivered
        self._pending[request.job_id] = reply
        return reply

    def stored(self, job: str) -> None:
        """Take note that the last answer of a job is durable."""
        self._pending.pop(job, None)
        self._undelivered.pop(job, None)

    def saved(self) -> list[tuple[str, bytes, float]]:
        """Return the answers that are not stored yet."""
        return [(job, reply.body, reply.latency) for job, reply in self._pending.items()]

    def resume(self, saved: list[tuple[str, bytes, float]]) -> None:
        """Owe what another process `saved`."""
        self._undelivered = {job: RawReply(body, latency) for job, body, latency in saved}
        self._pending = dict(self._undelivered)


def script_of(provider: object) -> Mapping[str, Any] | None:
    """Return how far a provider's script is, None for a provider that has none."""
    saved = getattr(provider, "saved", None)
    return saved() if callable(saved) else None
