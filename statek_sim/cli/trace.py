"""`statek-sim trace`: run one scenario and print its trace."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import sys
from typing import Annotated

import typer

from statek_sim.cli.app import Backend, BackendOption, Paths, PresetOption, SeedOption, app
from statek_sim.cli.inputs import loaded, say
from statek_sim.errors import BadInput


@app.command()
def trace(
    scenario_id: Annotated[
        str, typer.Argument(metavar="SCENARIO_ID", show_default=False, help="Id of the scenario.")
    ],
    paths: Paths = None,
    profile: Annotated[
        str | None, typer.Option(metavar="P", help="Behaviour profile; default: the scenario's first.")
    ] = None,
    preset: PresetOption = None,
    seed: SeedOption = None,
    backend: BackendOption = Backend.REFERENCE,
) -> None:
    """Run one scenario and print its trace as JSON lines.

    The first line is a header, then there is one event per line. Exits 1 when the run fails and the scenario does
    not expect that; its other expectations are not looked at.
    """
    from statek_sim.did_you_mean import suggestion
    from statek_sim.suite.run import located_preset, profile_known, run_one
    from statek_sim.trace import Trace

    by_id = {scenario.id: scenario for scenario in loaded(paths)}
    if scenario_id not in by_id:
        raise BadInput(
            f"no scenario has the id {scenario_id!r}.{suggestion(scenario_id, by_id)}".removesuffix(".")
        )
    scenario = by_id[scenario_id]
    if backend is Backend.INSTALLED:
        from statek_sim.backends.installed.peer import Peer, profile_of_peer
        from statek_sim.suite.installed import run_one_installed

        if profile is not None:
            raise BadInput(
                "--profile: the installed package follows the profile of its version; leave it out"
            )
        located = None if preset is None else located_preset(preset)
        with Peer(sys.executable) as peer:
            result = run_one_installed(peer, scenario, profile_of_peer(peer), preset=located, seed=seed)
    else:
        chosen_profile = scenario.profiles[0] if profile is None else profile_known(profile)
        result = run_one(scenario, chosen_profile, preset=preset, seed=seed)
    record = result.record
    whole = Trace(profile=record.profile, seed=record.seed)
    for event in record.events:
        whole.add(event)
    say(whole.lines())
    if record.error is not None:
        expected = all(mismatch.keypath != ("error",) for mismatch in result.mismatches)
        note = ", as the scenario expects" if expected else ""
        typer.echo(f"the run failed{note}: {record.error.type}: {record.error.message}", err=True)
        if not expected:
            raise typer.Exit(1)
