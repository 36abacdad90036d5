"""`statek-sim trace`: run a scenario and print its trace."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_required, loaded, say
from statek_sim.cli.options import argument, option
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.scenario.schema import Scenario
    from statek_sim.suite.result import ScenarioResult
    from statek_sim.trace import Trace

MOST_NAMED = 10
"""The maximum number of ids listed in an error message."""


@app.command()
def trace(
    words: Annotated[
        list[str],
        argument(
            "PATH|ID",
            "Scenario files or folders (default: the built-in suites), and the id of one scenario if they contain "
            "several.",
        ),
    ],
    profile: Annotated[
        str | None, option("P", "Behaviour profile. Default: the first profile that the scenario lists.")
    ] = None,
    preset: options.PresetOption = None,
    seed: options.SeedOption = None,
    backend: options.BackendOption = options.Backend.REFERENCE,
    otlp: Annotated[
        str | None,
        option(
            "URL",
            "Instead of printing the trace, send the run's spans to this OTLP/HTTP receiver, for example "
            "http://localhost:4318/v1/traces.",
        ),
    ] = None,
    provider: Annotated[
        str | None,
        option(
            "NAME",
            "With --otlp: the provider name to use in spans, such as OPENAI. Default: the model's vendor.",
        ),
    ] = None,
) -> None:
    """Run a scenario and print its trace as JSON lines.

    The first line is a header; every other line is an event. Exits 1 if the run fails and the scenario does not expect
    the failure; other expectations are not checked.

    Example: statek-sim trace claim-two-items
    """
    from statek_sim.trace import Trace

    check_required({"--provider": provider}, otlp, "--otlp URL")
    scenario = _named(words)
    result = _ran(scenario, profile, preset, seed, backend)
    record = result.record
    whole = Trace(profile=record.profile, seed=record.seed)
    for event in record.events:
        whole.add(event)
    if otlp is None:
        say(whole.lines())
    else:
        _send(whole, scenario, otlp, provider)
    if record.error is not None:
        expected = all(mismatch.keypath != ("error",) for mismatch in result.mismatches)
        note = ", as the scenario expects" if expected else ""
        typer.echo(f"the run failed{note}: {record.error.type}: {record.error.message}", err=True)
        if not expected:
            raise typer.Exit(1)


def _ran(
    scenario: Scenario, profile: str | None, preset: str | None, seed: int | None, backend: options.Backend
) -> ScenarioResult:
    """Run a scenario once, on the reference runtime or the installed package."""
    from statek_sim.harness.preset import located_preset
    from statek_sim.suite.run import profile_known, run_one

    if backend is not options.Backend.INSTALLED:
        chosen = scenario.profiles[0] if profile is None else profile_known(profile)
        return run_one(scenario, chosen, preset=preset, seed=seed)
    from statek_sim.backends.installed.peer import Peer, profile_of_peer
    from statek_sim.suite.installed import run_one_installed

    if profile is not None:
        raise BadInput(
            "--profile: not available with --backend installed, which uses the profile for the installed version"
        )
    located = None if preset is None else located_preset(preset)
    with Peer(sys.executable) as peer:
        return run_one_installed(peer, scenario, profile_of_peer(peer), preset=located, seed=seed)


def _send(trace: Trace, scenario: Scenario, address: str, provider: str | None) -> None:
    """Send a run's spans to a receiver and print how many were sent."""
    try:
        from statek_sim.telemetry.otel import send, trace_spans
    except ModuleNotFoundError as missing:
        raise BadInput(f"--otlp: {missing.name} is not installed; install pytest-statek[otel]") from missing
    service = f"{scenario.suite}/{scenario.id}"
    sent = send(trace_spans(trace, service=service, provider=provider), address)
    typer.echo(f"{sent} spans sent to {address}")


def _named(words: Sequence[str]) -> Scenario:
    """Return the scenario selected by paths and an id, in any order; raises `BadInput` unless there is exactly one."""
    from statek_sim.did_you_mean import with_suggestion

    paths = [Path(word) for word in words if word.endswith((".yaml", ".yml")) or os.path.lexists(word)]
    ids = [word for word in words if Path(word) not in paths]
    by_id = {scenario.id: scenario for scenario in loaded(paths)}
    if len(ids) > 1:
        raise BadInput(f"expected one scenario id, got {', '.join(ids)}; none of these is a file or a folder")
    if not ids and len(by_id) > 1:
        known = ", ".join([*by_id][:MOST_NAMED])
        more = f", and {len(by_id) - MOST_NAMED} more" if len(by_id) > MOST_NAMED else ""
        raise BadInput(f"expected the id of one scenario: {known}{more}")
    wanted = ids[0] if ids else next(iter(by_id))
    if wanted not in by_id:
        raise BadInput(with_suggestion(f"no scenario has the id {wanted!r}", wanted, by_id))
    return by_id[wanted]
