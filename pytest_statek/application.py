"""Implements the `statek_app` fixture: an application on the requested backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

import pytest

from pytest_statek.installed import InstalledStatek, chosen_backend, installed_statek
from pytest_statek.lab import marked, open_lab, or_fail
from pytest_statek.marker import Wishes
from pytest_statek.options import REFERENCE, REQUESTED
from pytest_statek.outcome import OPENED, Opened
from statek_sim.app import StatekApp
from statek_sim.backends.application import AppJob, ReferenceApplication
from statek_sim.clock import VirtualClock
from statek_sim.errors import BadInput
from statek_sim.harness.current import get_llm_harness
from statek_sim.providers.network import forbid_network
from statek_sim.runtime.execution.runtime import active
from statek_sim.runtime.task import named_job
from statek_sim.scriptable import ScriptableLLM
from statek_sim.semantics import profile_named
from statek_sim.shim.jobs import BROUGHT
from statek_sim.shim.settings import hidden_environment
from statek_sim.shim.store import opened_store
from statek_sim.shim.tools import registry_restored
from statek_sim.shim.worker import StoredObjects
from statek_sim.testing import configured_limits, configured_settings
from statek_sim.wall_clock import frozen_wall_clock, plain_dates

LAST_SHOWN: Final = 5
"""The maximum number of console entries, and of tool calls, shown per job in a failed test's report."""


@contextmanager
def open_app(request: pytest.FixtureRequest) -> Iterator[StatekApp]:
    """Set up the application from the test's marker; inside the block, the network is blocked and time is virtual."""
    backend = request.config.stash[REQUESTED].backend or chosen_backend()[0]
    with _on_reference(request) if backend == REFERENCE else _on_installed(request) as app:
        yield app


@contextmanager
def _on_reference(request: pytest.FixtureRequest) -> Iterator[StatekApp]:
    with (
        plain_dates(),
        open_lab(request, BROUGHT) as lab,
        active(lab.runtime),
        get_llm_harness.simulated(lab.harness),
        opened_store(),
        registry_restored(),
        hidden_environment(),
    ):
        keep = partial(lab.runtime.keep_in, beside=StoredObjects())
        yield StatekApp(ReferenceApplication(lab.runtime, named_job, keep), lab.llm)


@contextmanager
def _on_installed(request: pytest.FixtureRequest) -> Iterator[StatekApp]:
    item: pytest.Item = request.node
    installed = _found(item)
    # Imported only now: it imports the real package, which may not be installed.
    from statek_sim.backends.installed.application import opened  # noqa: PLC0415

    wishes = marked(request)
    _skip_another_profile(item, wishes, installed)
    llm, clock = ScriptableLLM(), VirtualClock()
    with ExitStack() as stack:
        guard = None if wishes.allow_network else stack.enter_context(forbid_network())
        application = stack.enter_context(
            opened(
                llm,
                settings=or_fail(item, lambda: configured_settings(wishes.lab)),
                limits=or_fail(item, lambda: configured_limits(wishes.lab)),
                profile=profile_named(installed.profile),
                clock=clock,
                seed=wishes.lab.seed,
            )
        )
        stack.enter_context(frozen_wall_clock(clock, active=wishes.virtual_wall_clock))
        app = StatekApp(application, llm)
        item.stash[OPENED] = Opened(
            llm, lambda: _all_told(app), guard, application.remarks, wishes.strict_storage
        )
        yield app
        # Failures after this point are not the application's fault, and its store is about to be closed.
        item.stash[OPENED] = Opened(llm, tuple, guard)


def _all_told(app: StatekApp) -> list[str]:
    return [line for job in app.jobs for line in _told(job)]


def _told(job: AppJob) -> Iterator[str]:
    """Yield a job's results, last tool calls and last console entries (STATEK does not store the conversation)."""
    yield f"{job.name} of {job.agent}: {job.status}, {job.llm_calls} requests, {job.exceptions} exceptions"
    for name, value in (("stop", job.stop), ("exit", job.exit), ("error", job.error)):
        if value is not None:
            yield f"  {name:<8} {value}"
    for use in job.tools[-LAST_SHOWN:]:
        ended = f"{use.name}({use.arguments})"
        yield f"  {'tool':<8} {ended} -> {use.error or use.result or 'did not return'}"
    for entry in job.console[-LAST_SHOWN:]:
        yield f"  {'console':<8} {entry}"


def _found(item: pytest.Item) -> InstalledStatek:
    try:
        return installed_statek()
    except BadInput as error:
        problem = (
            f"{item.nodeid}: statek_app: {error}, or use the reference runtime: --statek-backend=reference"
        )
    pytest.fail(problem, pytrace=False)


def _skip_another_profile(item: pytest.Item, wishes: Wishes, installed: InstalledStatek) -> None:
    """Skip a test that requires a profile other than the installed version's."""
    profile_named = any("profile" in mark.kwargs for mark in item.iter_markers("statek"))
    if profile_named and wishes.lab.profile != installed.profile:
        pytest.skip(f"this test requires profile {wishes.lab.profile}, but found {installed}")
