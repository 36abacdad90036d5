"""`statek-sim evals`: what a harness is worth; which evals there are, and whether they tell right from wrong."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import JsonOption, app
from statek_sim.cli.inputs import check_json, say, written_as_json
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statek_sim.evals.scenario import EvalScenario


evals = typer.Typer(
    name="evals", help="Run agent evaluations.\n\nExample: statek-sim evals check", no_args_is_help=True
)
app.add_typer(evals)

EvalPaths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH", show_default=False, help="Files of evals or folders; none: the built-in ones."
    ),
]
EvalOption = Annotated[
    list[str] | None, typer.Option("--eval", metavar="ID", help="Only this eval (repeatable).")
]
SeedsOption = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many seeds, from 0.")]


@evals.command("list")
def list_evals(
    paths: EvalPaths = None,
    json_file: JsonOption = None,
) -> None:
    """List evals with what they need of an agent.

    Each comes with its tier and how many of its scripts have to fail.
    """
    check_json(json_file)
    suite = loaded_evals(paths)
    rows = [_row(scenario) for scenario in suite]
    if written_as_json(json_file, {"schema": "statek-sim/evals-list@1", "evals": rows}):
        return
    width = max(len(scenario.id) for scenario in suite)
    say(
        f"{scenario.tier:<6}  {scenario.id:<{width}}  {scenario.capability:<18}  {scenario.title}"
        for scenario in suite
    )
    tiers = [
        f"{sum(scenario.tier == tier for scenario in suite)} {tier}" for tier in ("easy", "medium", "hard")
    ]
    wrong = sum(len(scenario.text.wrong) for scenario in suite)
    typer.echo(f"\n{len(suite)} evals ({', '.join(tiers)}), {wrong} wrong scripts")


def _row(scenario: EvalScenario) -> dict[str, object]:
    return {
        "id": scenario.id,
        "tier": scenario.tier,
        "capability": scenario.capability,
        "title": scenario.title,
        "source": scenario.source,
        "tools": list(scenario.text.tools),
        "workflow": list(scenario.workflow),
        "max_iterations": scenario.max_iterations,
        "context": scenario.context,
        "wrong": [script.id for script in scenario.text.wrong],
    }


@evals.command()
def check(
    paths: EvalPaths = None,
    only: EvalOption = None,
    seeds: SeedsOption = 3,
) -> None:
    """Play the scripts of evals: right ones pass, wrong ones fail.

    Exits 1 when a check does not tell them apart.
    """
    from statek_sim.evals.players import failure_line, proofs

    suite = loaded_evals(paths, only)
    failed = played = 0
    for scenario in suite:
        found = list(proofs(scenario, range(seeds)))
        bad = [proof for proof in found if not proof.as_it_should]
        played += len(found)
        failed += bool(bad)
        say([failure_line(scenario, proof) for proof in bad], err=True)
    typer.echo(
        f"{len(suite) - failed} of {len(suite)} evals tell right from wrong: {played} plays, {seeds} of each script"
    )
    if failed:
        raise typer.Exit(1)


def loaded_evals(paths: Sequence[Path] | None, only: Sequence[str] | None = None) -> tuple[EvalScenario, ...]:
    """Return the evals at or under the paths, or the built-in ones; `only` these ids."""
    from statek_sim.cli.inputs import builtin_scenarios
    from statek_sim.did_you_mean import suggestion
    from statek_sim.evals.suite import EVALS, load_suite

    suite = load_suite(paths or [builtin_scenarios() / EVALS])
    ids = [scenario.id for scenario in suite]
    for name in only or ():
        if name not in ids:
            raise BadInput(f"--eval {name}: there is no such eval.{suggestion(name, ids)}".removesuffix("."))
    return tuple(scenario for scenario in suite if not only or scenario.id in only)
