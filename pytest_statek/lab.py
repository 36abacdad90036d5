"""What the fixtures stand on. Registered as a plugin when the first test asks for one of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, TypeVar

import pytest

from pytest_statek.marker import Wishes, wishes_of
from pytest_statek.options import REQUESTED, STDERR
from pytest_statek.tokenizers import tokenizers
from statek_sim.errors import BadInput, ScriptError, UnusedReplies
from statek_sim.executors.limits import parse_watchdog
from statek_sim.providers.network import NetworkGuard, forbid_network
from statek_sim.runtime.execution.services import NOTHING_BROUGHT, Brought
from statek_sim.sandbox.time_limit import BlockLimits, block_limits, last_resort
from statek_sim.semantics import LATEST
from statek_sim.testing import Lab
from statek_sim.trace import Event, StoreRemark
from statek_sim.values import printable_lines
from statek_sim.wall_clock import frozen_wall_clock

T = TypeVar("T")


class StoredOtherwise(pytest.PytestWarning):
    """A value that STATEK's store would lose or change."""


SECTION: Final = "STATEK conversation"
"""The title under which the report of a failed test shows what its agents said and did."""

FIRST: Final = 10
LAST: Final = 40
"""Lines of a long conversation that are shown; a failure is explained at its end, by what was set up at its start."""


class Finishing(Protocol):
    """What knows whether its script is used up."""

    def check_finished(self) -> None:
        """Raise `UnusedReplies` when replies are left."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a test has open: its LLM, what can be told of its jobs so far, and what closes the network."""

    llm: Finishing
    conversation: Callable[[], Sequence[str]]
    guard: NetworkGuard | None
    remarks: Callable[[], Sequence[StoreRemark]] = tuple
    strict_storage: bool = False


OPENED: Final = pytest.StashKey[Opened]()
"""Where an item's stash keeps it."""

_SHOWN: Final = pytest.StashKey[bool]()


@contextmanager
def open_lab(request: pytest.FixtureRequest, brought: Brought = NOTHING_BROUGHT) -> Iterator[Lab]:
    """Set up the lab that the test's marker describes; inside, the network is closed and time is virtual."""
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
    """Return what a block of model-written code may use in this process: what the watchdog allows, if that is said."""
    if not watchdog:
        return BlockLimits()
    limits = parse_watchdog(watchdog)
    return None if limits is None else BlockLimits(seconds=limits.cpu, memory=limits.memory)


def marked(request: pytest.FixtureRequest) -> Wishes:
    """Return what the test's marker and the options say, or fail the test."""
    item: pytest.Item = request.node
    requested = request.config.stash[REQUESTED]
    if "statek_app" not in request.fixturenames:
        return or_fail(item, lambda: wishes_of(item, requested))
    wishes = or_fail(item, lambda: wishes_of(item, requested, profile=LATEST.name, strict_storage=True))
    # An application waits for its own stored objects: time alone changes none of them.
    return replace(wishes, lab=replace(wishes.lab, idle_polls=0))


def or_fail(item: pytest.Item, make: Callable[[], T]) -> T:
    """Return what `make` returns; its `BadInput` fails the test as text."""
    try:
        return make()
    except BadInput as error:
        problem = str(error)
    # Not where it was caught: pytest would print the error a second time, as the context of this one.
    pytest.fail(f"{item.nodeid}: @pytest.mark.statek: {problem}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that passed although its script was not used up or something tried the real network."""
    yield
    if OPENED in item.stash:
        opened = item.stash[OPENED]
        _check(opened, item.path)
        if not opened.strict_storage:
            for remark in opened.remarks():
                item.warn(StoredOtherwise(remark.told))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the conversation of a test that failed, once: what it was when the first of its phases failed."""
    report = yield
    if report.failed and OPENED in item.stash and _SHOWN not in item.stash:
        item.stash[_SHOWN] = True
        lines = item.stash[OPENED].conversation()
        if lines:
            report.sections.append((SECTION, printable_lines(lines)))
    return report


def conversation(trace: Iterable[Event]) -> list[str]:
    """Return what happened in a run as lines; of a long one the start and the end."""
    from statek_sim.suite.transcript import formatted, transcript  # noqa: PLC0415  # of a test that fails

    written = list(transcript(trace))
    lines = formatted(written, name_jobs=len({line.job for line in written}) > 1)
    left_out = len(lines) - FIRST - LAST
    if left_out <= 1:
        return lines
    return [*lines[:FIRST], f"  ... {left_out} more lines ...", *lines[-LAST:]]


def _check(opened: Opened, path: Path) -> None:
    problem = (
        _connection(opened.guard)
        or _hidden(getattr(opened.llm, "refusals", ()), path)
        or _left_over(opened.llm)
        or _stored_otherwise(opened)
    )
    if problem is not None:
        pytest.fail(problem, pytrace=False)


def _connection(guard: NetworkGuard | None) -> str | None:
    """Say which connection was tried, if any was."""
    if guard is None or not guard.attempts:
        return None
    first = guard.attempts[0]
    place = first.host if first.port is None else f"{first.host} port {first.port}"
    return (
        f"a real network connection to {place} was tried and refused; answer it with a scripted tool, "
        "or allow it with @pytest.mark.statek(allow_network=True)"
    )


def damage(trace: Iterable[Event]) -> list[StoreRemark]:
    """Return what the store lost or changed, or would lose or change on STATEK."""
    return [event for event in trace if isinstance(event, StoreRemark) and event.change != "not stored"]


def _stored_otherwise(opened: Opened) -> str | None:
    """Say what the store lost or changed, if that fails the test."""
    remarks = opened.remarks() if opened.strict_storage else ()
    return f'{bind_what_is_kept(remarks)} or @pytest.mark.statek(storage="warn")' if remarks else None


def bind_what_is_kept(remarks: Iterable[StoreRemark]) -> str:
    """Return what the store did, and what to do about it."""
    remarked = "; ".join(dict.fromkeys(remark.told for remark in remarks))
    return f"{remarked}. Bind what dbzero keeps (docs/storage.md), or accept it with statek_storage = warn"


def _hidden(refusals: Iterable[ScriptError], path: Path) -> str | None:
    """Say which request had no reply without the test's knowing: what is caught in its own folder, it knows."""
    for error in refusals:
        caught_in = None if error.__traceback__ is None else error.__traceback__.tb_frame.f_code.co_filename
        if caught_in is not None and not Path(caught_in).is_relative_to(path.parent):
            return (
                f"a request had no reply, and {caught_in} hid it: {type(error).__name__}: {error}\n"
                "add the reply, or let the error through: expected by the test, it is caught there with pytest.raises"
            )
    return None


def _left_over(llm: Finishing) -> str | None:
    """Say which replies nobody asked for, if any are left."""
    try:
        llm.check_finished()
    except UnusedReplies as error:
        return str(error)
    return None
