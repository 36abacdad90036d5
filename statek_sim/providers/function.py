"""A plain callable as a provider."""

from __future__ import annotations

from typing import final

from statek_sim.providers.delivery import Measure, Styles, deliver, manner
from statek_sim.providers.protocol import ChatRequest, ChatStyleName, RawReply
from statek_sim.providers.script import ReplyFunction, computed


@final
class FunctionLLM:
    """A provider that asks `function` for every reply: a `Reply`, a string of code, or bytes of a raw body.

    `styles` and `measure` are those of `ScriptedLLM`. Every request is kept in `requests`, in order.
    """

    __slots__ = ("_manner", "_reply", "requests")

    def __init__(
        self,
        function: ReplyFunction,
        *,
        styles: Styles | ChatStyleName | None = None,
        measure: Measure | None = None,
    ) -> None:
        self._reply = computed(function)
        self._manner = manner(styles, measure)
        self.requests: list[ChatRequest] = []

    def complete(self, request: ChatRequest) -> RawReply:
        """Ask the function. What it raises goes to the caller."""
        self.requests.append(request)
        return deliver(self._reply, request, self._manner)
