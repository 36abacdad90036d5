"""Extra failures and report sections for tests that use this plugin's fixtures.

Registered as a plugin when the first test requests such a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pytest

from statek_sim.errors import ScriptError, UnusedReplies
from statek_sim.providers.network import NetworkGuard
from statek_sim.trace import Event, StoreRemark
from statek_sim.values import printable_lines


class StoredOtherwise(pytest.PytestWarning):
    """A value that STATEK's store would lose or change."""


SECTION: Final = "STATEK conversation"
"""The title of the report section that shows the agents' conversation when a test fails."""

FIRST: Final = 10
LAST: Final = 40
"""The maximum number of lines to show from the start, and from the end, of a conversation."""


class Finishing(Protocol):
    """An LLM that can check whether all scripted replies were used."""

    def check_finished(self) -> None:
        """Raise `UnusedReplies` if any reply is unused."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a fixture set up for a test: the LLM, the jobs' conversation and store remarks, and the network guard."""

    llm: Finishing
    conversation: Callable[[], Sequence[str]]
    guard: NetworkGuard | None
    remarks: Callable[[], Sequence[StoreRemark]] = tuple
    strict_storage: bool = False


OPENED: Final = pytest.StashKey[Opened]()
"""The key in an item's stash for the test's `Opened`."""

_SHOWN: Final = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a passing test if a reply was unused or if code tried to use the real network."""
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
    """Add the conversation to the report for the first phase of the test that failed."""
    report = yield
    if report.failed and OPENED in item.stash and _SHOWN not in item.stash:
        item.stash[_SHOWN] = True
        lines = item.stash[OPENED].conversation()
        if lines:
            report.sections.append((SECTION, printable_lines(lines)))
    return report


def conversation(trace: Iterable[Event]) -> list[str]:
    """Return a run's events as lines. For a long run, only the start and the end are included."""
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
        pytest.fail(printable_lines([problem]), pytrace=False)


def _connection(guard: NetworkGuard | None) -> str | None:
    """Return a message about the first connection attempt, if any."""
    if guard is None or not guard.attempts:
        return None
    first = guard.attempts[0]
    place = first.host if first.port is None else f"{first.host} port {first.port}"
    return (
        f"a real network connection to {place} was refused; answer it with a scripted tool "
        "or allow it with @pytest.mark.statek(allow_network=True)"
    )


def damage(trace: Iterable[Event]) -> list[StoreRemark]:
    """Return remarks on values that the store lost or changed, or that STATEK's store would lose or change."""
    return [event for event in trace if isinstance(event, StoreRemark) and event.change != "not stored"]


def _stored_otherwise(opened: Opened) -> str | None:
    """Return a message about values that the store lost or changed, if such values fail the test."""
    remarks = opened.remarks() if opened.strict_storage else ()
    return f'{bind_what_is_kept(remarks)} or @pytest.mark.statek(storage="warn")' if remarks else None


def bind_what_is_kept(remarks: Iterable[StoreRemark]) -> str:
    """Return a message about the store's changes, with advice."""
    remarked = "; ".join(dict.fromkeys(remark.told for remark in remarks))
    advice = (
        "Store only values that dbzero keeps (docs/storage.md), or accept the loss with statek_storage = warn"
    )
    return f"{remarked}. {advice}"


def _hidden(refusals: Iterable[ScriptError], path: Path) -> str | None:
    """Return a message about a request without a reply if the agent's code caught the error, or None.

    Errors caught in the test's own folder do not count.
    """
    for error in refusals:
        caught_in = None if error.__traceback__ is None else error.__traceback__.tb_frame.f_code.co_filename
        if caught_in is not None and not Path(caught_in).is_relative_to(path.parent):
            return (
                f"a request had no reply, but {caught_in} caught the error: {type(error).__name__}: {error}\n"
                "add the reply or let the error propagate; if the test expects the error, use pytest.raises"
            )
    return None


def _left_over(llm: Finishing) -> str | None:
    """Return a message about unused replies, or None if all replies were used."""
    try:
        llm.check_finished()
    except UnusedReplies as error:
        return str(error)
    return None
