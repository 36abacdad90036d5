"""`statek-sim evals models`, `fit`, `published`, `chance`: simulated models, and what they are fitted to."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from statek_sim.cli.evals import evals
from statek_sim.cli.inputs import say
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    pass

_ShownModel = Annotated[
    str | None, typer.Argument(metavar="[PROFILE]", show_default=False, help="Show the rates of this one.")
]
_FittedModel = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROFILE]", show_default=False, help="Fit this shipped profile again; none: all."
    ),
]
_FolderOption = Annotated[
    Path | None,
    typer.Option("--write", metavar="FOLDER", help="Write the profiles there; default: only compare."),
]
_SeedsOption = Annotated[int, typer.Option(metavar="N", help="Simulated runs of each scenario in each arm.")]


@evals.command()
def models(profile: _ShownModel = None) -> None:
    """List the shipped simulated models, or show one's rates.

    Every rate comes with its label: measured, fitted or assumed.
    """
    from statek_sim.evals.models.profile_file import load_profile, shipped
    from statek_sim.reporting.evals_tables import rates_table, table_lines

    if profile is not None:
        say(table_lines(rates_table(load_profile(profile))))
        return
    for name in shipped():
        entry = load_profile(name)
        typer.echo(f"{name:28} {entry.title} ({entry.model})")


@evals.command()
def fit(profile: _FittedModel = None, write: _FolderOption = None) -> None:
    """Fit the shipped profiles to the published counts again.

    Exits 1 when a shipped profile is not what the fit gives.
    """
    from statek_sim.evals.models.profile_file import load_profile, shipped
    from statek_sim.evals.models.profile_text import profile_text
    from statek_sim.evals.published.shipped import HEAD, refitted
    from statek_sim.reporting.artifact import check_writable, write_artifact

    names = [profile] if profile is not None else list(shipped())
    if profile is not None and profile not in shipped():
        load_profile(profile)
        raise BadInput(
            f"{profile}: only shipped profiles are fitted here; expected one of {', '.join(shipped())}"
        )
    if write is not None:
        for name in names:
            check_writable(write / f"{name}.toml", ours=f"# {HEAD[0]}\n")
    different = []
    for name in names:
        text = profile_text(refitted(name), head=HEAD)
        if write is not None:
            write_artifact(write / f"{name}.toml", text)
        same = _same(name, text)
        typer.echo(f"{name}: {'as shipped' if same else 'not what is shipped'}")
        if not same:
            different.append(name)
    if different and write is None:
        raise typer.Exit(1)


def _same(name: str, text: str) -> bool:
    from statek_sim.evals.models.profile_file import load_profile, read_profile

    return load_profile(name) == read_profile(text, name)


_CALIBRATED: Final = (
    "Fitted by `statek-sim evals calibrate`; what recordings do not show is labelled assumed."
)
"""How its profiles begin, by which it knows those that it may replace."""


@evals.command()
def calibrate(
    cassettes: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", show_default=False, help="Recordings of your model, with tools offered."
        ),
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="The name of the profile.")] = "mine",
    base: Annotated[
        str,
        typer.Option(
            metavar="PROFILE", help="What recordings do not show is taken over from it, as assumed."
        ),
    ] = "ministral-3-8b-instruct",
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the profile, a .toml file.")
    ] = None,
) -> None:
    """Fit a profile to recordings of your own model, with intervals.

    Recordings show what a reply was like, not what would have been right: values that are wrong but fit the schema,
    steps left out and results forgotten are not seen.
    """
    from statek_sim.evals.calibrating import calibrated
    from statek_sim.evals.models.profile_file import load_profile
    from statek_sim.evals.models.profile_text import profile_text
    from statek_sim.reporting.artifact import check_writable, write_artifact
    from statek_sim.reporting.evals_tables import rates_table, table_lines

    if write is not None and write.suffix != ".toml":
        raise BadInput(f"--write {write}: expected a file that ends in .toml")
    if write is not None:
        check_writable(write, ours=f"# {_CALIBRATED}\n")
    found = calibrated(cassettes, name=name, base=load_profile(base))
    typer.echo(f"{found.turns} turns of {found.tasks} tasks, model {found.profile.model}")
    say(f"  {failure.value}: {count} turns" for failure, count in found.counts.items() if count)
    say(["", *table_lines(rates_table(found.profile))])
    if write is not None:
        write_artifact(write, profile_text(found.profile, head=[_CALIBRATED]))


@evals.command()
def claims() -> None:
    """Say which of document 004's numbers published counts bear out."""
    from statek_sim.evals.published.claims import claims as told

    for claim in told():
        say([f"{claim.says!r}: {'found' if claim.found else 'not found'}", f"  {claim.what}"])


@evals.command()
def chance(
    hits: Annotated[int, typer.Argument(metavar="RIGHT", help="Runs that were right.")],
    of: Annotated[int, typer.Argument(metavar="RUNS", help="Runs in all.")],
) -> None:
    """Say what so many right runs can show.

    That is Wilson's 95 % interval, if the runs are independent.
    """
    from statek_sim.intervals import wilson

    bounds = wilson(hits, of) if 0 <= hits <= of else None
    if bounds is None:
        raise BadInput(f"{hits} of {of}: expected a number of runs, and no more right ones than that")
    typer.echo(f"{hits} of {of} = {100 * hits / of:.1f} %; 95 % interval {bounds[0]:.3f} to {bounds[1]:.3f}")
