"""Sets up the lab for a test of STATEK jobs, as configured by the test's marker and the options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TypeVar

import pytest

from pytest_statek.marker import Wishes, wishes_of
from pytest_statek.options import REQUESTED, STDERR
from pytest_statek.outcome import OPENED, Opened, conversation, damage
from pytest_statek.tokenizers import tokenizers
from statek_sim.errors import BadInput
from statek_sim.executors.limits import parse_watchdog
from statek_sim.providers.network import forbid_network
from statek_sim.runtime.execution.services import NOTHING_BROUGHT, Brought
from statek_sim.sandbox.time_limit import BlockLimits, block_limits, last_resort
from statek_sim.semantics import LATEST
from statek_sim.testing import Lab
from statek_sim.wall_clock import frozen_wall_clock

T = TypeVar("T")


@contextmanager
def open_lab(request: pytest.FixtureRequest, brought: Brought = NOTHING_BROUGHT) -> Iterator[Lab]:
    """Set up the lab from the test's marker; inside the block, the network is blocked and time is virtual."""
    item: pytest.Item = request.node
    wishes = marked(request)
    registry = tokenizers(request.config)
    lab = or_fail(item, lambda: Lab(wishes.lab, tokenizers=registry, brought=brought))
    with ExitStack() as stack:
        guard = None if wishes.allow_network else stack.enter_context(forbid_network())
        stack.enter_context(frozen_wall_clock(lab.clock, active=wishes.virtual_wall_clock))
        stack.enter_context(block_limits(limits_of_blocks(request.config.stash[REQUESTED].watchdog)))
        if STDERR in request.config.stash:
            stack.enter_context(last_resort(request.config.stash[STDERR]))
        item.stash[OPENED] = Opened(
            lab.llm,
            lambda: conversation(lab.runtime.trace.events),
            guard,
            lambda: damage(lab.runtime.trace.events),
            wishes.strict_storage,
        )
        stack.callback(lab.runtime.close)
        yield lab


def limits_of_blocks(watchdog: str) -> BlockLimits | None:
    """Return the limits for a block of model-written code in this process (the watchdog's limits, if any)."""
    if not watchdog:
        return BlockLimits()
    limits = parse_watchdog(watchdog)
    return None if limits is None else BlockLimits(seconds=limits.cpu, memory=limits.memory)


def marked(request: pytest.FixtureRequest) -> Wishes:
    """Return the settings from the test's marker and the options; fail the test if they are invalid."""
    item: pytest.Item = request.node
    requested = request.config.stash[REQUESTED]
    if "statek_app" not in request.fixturenames:
        return or_fail(item, lambda: wishes_of(item, requested))
    wishes = or_fail(item, lambda: wishes_of(item, requested, profile=LATEST.name, strict_storage=True))
    # An application waits for its stored objects, and the passing of virtual time does not change these.
    return replace(wishes, lab=replace(wishes.lab, idle_polls=0))


def or_fail(item: pytest.Item, make: Callable[[], T]) -> T:
    """Return the result of `make`; if it raises `BadInput`, fail the test with the message as text."""
    try:
        return make()
    except BadInput as error:
        problem = str(error)
    # Raised outside the `except` block: otherwise pytest would print the error a second time, as the context of this
    # one.
    pytest.fail(f"{item.nodeid}: @pytest.mark.statek: {problem}", pytrace=False)
