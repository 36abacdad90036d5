"""Implements the `statek_guest` fixture. Imported when a test requests it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_statek.outcome import OPENED, Opened, conversation
from statek_sim.guests.guest import Guest
from statek_sim.providers.network import forbid_network
from statek_sim.providers.script import ScriptEntry
from statek_sim.server.fault import FaultRule


class GuestMaker:
    """Creates a test's guests, each with its own script, virtual time and trace."""

    def __init__(self) -> None:
        self.guests: list[Guest] = []

    def __call__(
        self,
        *,
        script: Sequence[ScriptEntry],
        tools: Iterable[Callable[..., Any]] = (),
        faults: Sequence[FaultRule] = (),
        **settings: Any,
    ) -> Guest:
        """Return a guest that plays `script`; `settings` are additional `Guest` arguments."""
        guest = Guest(script, tools=tools, faults=faults, **settings)
        self.guests.append(guest)
        return guest

    def check_finished(self) -> None:
        """Raise an error for the first guest with an unused reply or an unanswered request."""
        for guest in self.guests:
            guest.llm.check_finished()


@contextmanager
def open_guests(request: pytest.FixtureRequest) -> Iterator[GuestMaker]:
    """Provide a guest maker for a test; inside the block, network connections are refused."""
    item: pytest.Item = request.node
    make = GuestMaker()
    with forbid_network() as guard:
        item.stash[OPENED] = Opened(
            make,
            lambda: [line for guest in make.guests for line in conversation(guest.trace.events)],
            guard,
        )
        yield make
