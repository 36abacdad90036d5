"""Opens and closes the cassettes for tests. Registered as a plugin if a collected test has the marker."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from pytest_statek.cassette_marker import ORDER, SHARERS, wishes_of
from pytest_statek.cassette_path import cassette_path
from pytest_statek.options import CASSETTE, SESSION
from statek_sim.cassettes.session import CassetteSession, Saved
from statek_sim.cassettes.tap import UnrecordedRequest, tapped
from statek_sim.errors import BadInput
from statek_sim.providers.network import forbid_network
from statek_sim.values import printable_lines

SHOWN: Final = 5
"""The maximum number of unplayed recordings listed in a message."""
SECTION: Final = "STATEK cassette"


@dataclass(slots=True)
class _Open:
    session: CassetteSession
    allow_unplayed: bool
    stack: ExitStack
    failed: bool = False
    skipped: bool = False
    """Whether the test was skipped or failed as expected; if so, its old recording is kept and may be unplayed."""


_AT_WORK: Final = pytest.StashKey[pytest.Item]()
"""The key in `config.stash` for the test whose cassette was opened last."""
_OPEN: Final = pytest.StashKey[_Open]()
_CONFLICT: Final = pytest.StashKey[str]()
"""The key in an item's stash for a warning about tests with conflicting settings for a shared cassette."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Determine which tests share a cassette, and write the file for `--statek-cassette-list`."""
    sharers: dict[Path, list[pytest.Item]] = {}
    for order, item in enumerate(session.items):
        if item.get_closest_marker(CASSETTE):
            item.stash[ORDER] = order
            sharers.setdefault(_used(item), []).append(item)
    for path, items in sharers.items():
        if len(items) > 1:
            _share(path, items)
    target = session.config.getoption("--statek-cassette-list")
    if target:
        marked = (
            item
            for item in session.items
            if item.get_closest_marker(CASSETTE) or item.get_closest_marker("vcr")
        )
        _write_list(Path(target), sorted({str(_used(item)) for item in marked}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Close the open cassette if Ctrl-C skipped a test's teardown."""
    interrupted = session.config.stash.get(_AT_WORK, None)
    if interrupted is not None and _OPEN in interrupted.stash:
        interrupted.stash[_OPEN].failed = True
        _close(interrupted)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Open the cassette before the first fixture is set up, so that it includes requests from fixtures."""
    if item.get_closest_marker(CASSETTE):
        if _CONFLICT in item.stash:
            item.warn(pytest.PytestWarning(item.stash[_CONFLICT]))
        _open(item)
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test if a recording is missing, even if the client caught the error, and hide the client's traceback."""
    problem = None
    try:
        yield
    except UnrecordedRequest as miss:
        problem = f"{miss}\n  Requested at {_asker(miss, item)}"
    if problem is not None:
        pytest.fail(printable_lines([problem]), pytrace=False)
    misses = item.stash[_OPEN].session.misses if _OPEN in item.stash else ()
    if misses:
        problem = f"a request had no recording, but the client caught the error:\n{misses[0]}"
        pytest.fail(printable_lines([problem]), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether a test failed or was skipped: its new recording must not replace a good recording."""
    report = yield
    if _OPEN in item.stash:
        item.stash[_OPEN].failed |= report.failed
        item.stash[_OPEN].skipped |= report.skipped
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Close the cassette after the last fixture's teardown: write new recordings and report unplayed recordings."""
    try:
        result = yield
    except BaseException:
        if _OPEN in item.stash:
            item.stash[_OPEN].failed = True
            _close(item)
        raise
    if _OPEN in item.stash:
        problem = _close(item)
        if problem is not None:
            pytest.fail(printable_lines([problem]), pytrace=False)
    return result


def _share(path: Path, items: list[pytest.Item]) -> None:
    """Mark tests as sharing a cassette, with a warning if their settings conflict."""
    modes: dict[str, pytest.Item] = {}
    sharers = frozenset(item.stash[ORDER] for item in items)
    for item in items:
        item.stash[SHARERS] = sharers
        try:
            modes.setdefault(str(wishes_of(item).mode), item)
        except BadInput:
            continue
    unnamed = [
        item.nodeid
        for item in items
        if not any("name" in mark.kwargs for mark in item.iter_markers(CASSETTE))
    ]
    shown = _shown(path, items[0].config)
    conflicts: list[str] = []
    if len({*unnamed}) > 1:
        conflicts.append(
            f"{shown}: shared by tests whose names differ only in characters that file names cannot contain: "
            f"{', '.join(unnamed)}; use @pytest.mark.{CASSETTE}(name=...) to give each test its own cassette"
        )
    if len(modes) > 1:
        listed = ", ".join(f"{mode} ({item.nodeid})" for mode, item in modes.items())
        conflicts.append(f"{shown}: shared by tests with different record modes: {listed}")
    if conflicts:
        items[0].stash[_CONFLICT] = "; ".join(conflicts)


def _write_list(file: Path, paths: Sequence[str]) -> None:
    try:
        file.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
    except OSError as error:
        raise pytest.UsageError(
            f"statek: --statek-cassette-list={file}: cannot be written: {error.strerror}"
        ) from None


def _used(item: pytest.Item) -> Path:
    try:
        return wishes_of(item).path
    except BadInput:
        return cassette_path(item)


def _open(item: pytest.Item) -> None:
    problem = None
    try:
        wishes = wishes_of(item)
        session = CassetteSession(
            wishes.path,
            wishes.mode,
            wishes.matching,
            advice=wishes.advice,
            shown=_shown(wishes.path, item.config),
            run=wishes.run,
        )
        _check_one_process(item, session)
    except BadInput as error:
        problem = str(error)
    if problem is not None:
        # Raised outside the `except` block: otherwise pytest would print the error a second time, as the context of
        # this one.
        pytest.fail(f"{item.nodeid}: @pytest.mark.{CASSETTE}: {problem}", pytrace=False)
    stack = ExitStack()
    if not session.may_record:
        stack.enter_context(forbid_network())
    stack.enter_context(tapped(session))
    item.config.stash[_AT_WORK] = item
    item.stash[SESSION] = session
    item.stash[_OPEN] = _Open(session, wishes.allow_unplayed, stack)


def _check_one_process(item: pytest.Item, session: CassetteSession) -> None:
    """Reject recording a shared cassette in several processes, because the recording order would depend on timing."""
    sharers = item.stash.get(SHARERS, frozenset())
    if session.may_record and sharers and hasattr(item.config, "workerinput"):
        raise BadInput(
            f"{len(sharers)} tests share {session.shown}, and pytest-xdist workers would record it at the same time; "
            "record with a single process (-n0); workers can play it back"
        )


def _close(item: pytest.Item) -> str | None:
    """Close a test's cassette; return a message if it was not used as expected."""
    state = item.stash[_OPEN]
    del item.stash[_OPEN], item.stash[SESSION]
    state.stack.close()
    try:
        saved = state.session.close(failed=state.failed or state.skipped)
    except BadInput as error:
        return str(error)
    if saved.path is not None and saved.path != state.session.path:
        item.add_report_section("teardown", SECTION, _put_aside(state.session, saved))
    if state.failed or state.skipped or state.allow_unplayed:
        return None
    return _unplayed(state.session)


def _put_aside(session: CassetteSession, saved: Saved) -> str:
    return (
        f"the test did not pass, so the old recording was kept; the new recording is {saved.path}\n"
        f"to compare them: statek-sim cassette diff {session.shown or session.path} {saved.path}"
    )


def _unplayed(session: CassetteSession) -> str | None:
    left = session.unplayed()
    if not left:
        return None
    path = session.shown or session.path
    lines = [f"{path}: {len(left)} of {len(session)} recordings were not played:"]
    lines += [
        f"  {path}:{exchange.line} {exchange.request.method} {exchange.request.uri}"
        for exchange in left[:SHOWN]
    ]
    if len(left) > SHOWN:
        lines.append(f"  and {len(left) - SHOWN} more")
    lines += [
        f"  If they are no longer needed, record the cassette again: {session.advice.record}",
        f"  To ignore them: @pytest.mark.{CASSETTE}(allow_unplayed=True)",
    ]
    return "\n".join(lines)


def _shown(path: Path, config: pytest.Config) -> Path:
    """Return a path for display, relative to the folder where pytest was started if the path is inside that folder."""
    here = config.invocation_params.dir
    return path.relative_to(here) if path.is_relative_to(here) else path


def _asker(miss: BaseException, item: pytest.Item) -> str:
    """Return the line in the test file that sent the request or, if there is none, the traceback's first line."""
    frames = traceback.extract_tb(miss.__traceback__)
    own = [frame for frame in frames if Path(frame.filename) == item.path]
    frame = own[-1] if own else frames[0]
    return f"{_shown(Path(frame.filename), item.config)}:{frame.lineno}"
