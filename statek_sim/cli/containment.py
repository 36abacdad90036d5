"""`statek-sim containment`: attacks on what holds the programs and calls of agents, and what came of them."""
# ruff: noqa: PLC0415  # each command imports what it needs

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_outputs
from statek_sim.errors import BadInput, ContainerFailed
from statek_sim.unreadable import text_of, why_unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from statek_sim.agent.containment.enforcers import Enforcer
    from statek_sim.agent.containment.matrix import Row
    from statek_sim.agent.permissions.contract import MakeAdapter

SCHEMA = "statek-sim/containment@1"
"""What `--json` writes."""
BEGIN, END = "<!-- matrix -->", "<!-- end of matrix -->"
"""Between these lines of a page `--page` writes the matrix."""
_ENFORCERS = ("none", "landlock", "bubblewrap", "docker", "hardened")

AttackArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ATTACK", help="Only these attacks, by name.")
]
EnforcerOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help=f"Only these: {', '.join(_ENFORCERS)}. May be repeated."),
]
ImageOption = Annotated[
    str,
    typer.Option(
        "--docker", metavar="IMAGE", help="An image with /usr/bin/python3, for Docker; none: without Docker."
    ),
]
ReportOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write all rows as JSON, too.")
]
PageOption = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Write the matrix into a page, between its two marks."),
]


@app.command()
def containment(
    attack: AttackArgument = None,
    enforcer: EnforcerOption = None,
    image: ImageOption = "",
    report: ReportOption = None,
    page: PageOption = None,
) -> None:
    """Attack permissions, Landlock and containers.

    Programs and calls that try to get out are run under each enforcer that is here, and without one, where they have to
    work. Exits 1 when one gets out of bubblewrap or Docker, or past the policy of this package, and
    when one does not even begin.
    """
    from statek_sim.agent.containment.matrix import broken, escapes, matrix, unproven
    from statek_sim.reporting.artifact import write_artifact

    check_outputs({"--json": report, "--page": page})
    if page is not None:
        _parted(page)
    names = set(enforcer or (name for name in _ENFORCERS if name != "docker" or image))
    if unknown := sorted(names - set(_ENFORCERS)):
        raise BadInput(f"--enforcer {unknown[0]!r} is unknown; expected one of {', '.join(_ENFORCERS)}")
    if "docker" in names and not image:
        raise BadInput("--enforcer docker needs --docker IMAGE, one that has /usr/bin/python3")
    made: list[Enforcer] = list(_made(names, image, required=bool(enforcer)))
    policies = [policy for policy in _policies() if policy[0] in names]
    rows: list[Row] = []
    chosen = _chosen(attack or ())
    _some(attack or (), made, policies, sorted(names))
    for row in matrix(made, policies, chosen=chosen):
        rows.append(row)
        if sys.stderr.isatty():
            typer.echo(f"\r{len(rows)} {row.name:<50}", nl=False, err=True)
    if sys.stderr.isatty():
        typer.echo("\r" + " " * 60 + "\r", nl=False, err=True)
    _show(rows, [*(held.name for held in made), *(name for name, _ in policies)])
    if report is not None:
        write_artifact(report, json.dumps(_record(rows), indent=1) + "\n")
    if page is not None:
        write_artifact(page, _paged(page, rows))
    if left := unproven(rows):
        typer.echo(f"these do not work here without an enforcer either: {', '.join(left)}")
    out = escapes(rows, ("bubblewrap", "docker", "hardened"))
    for row in out:
        typer.echo(f"OUT of {row.enforcer}: {row.name}: {row.outcome}")
    lame = broken(rows)
    for row in lame:
        typer.echo(f"{row.enforcer}: {row.name}: {row.outcome}")
    if out or lame:
        raise typer.Exit(1)


def _chosen(names: Sequence[str]) -> Callable[[str], bool]:
    from statek_sim.agent.containment.attack import bad_calls, programs
    from statek_sim.did_you_mean import suggestion

    known = [*(attack.name for attack in programs()), *(attack.name for attack in bad_calls())]
    for name in names:
        if name not in known:
            raise BadInput(f"attack {name!r} is unknown.{suggestion(name, known)}".removesuffix("."))
    return lambda name: not names or name in names


def _some(
    attacks: Sequence[str],
    enforcers: Sequence[Enforcer],
    policies: Sequence[tuple[str, MakeAdapter]],
    names: Sequence[str],
) -> None:
    """Raise BadInput where nothing would be attacked: policies are for calls, enforcers for programs, too."""
    from statek_sim.agent.containment.attack import bad_calls

    if enforcers:
        return
    if not policies:
        raise BadInput(f"nothing is attacked: none of {', '.join(names)} is here")
    calls = {call.name for call in bad_calls()}
    if others := [name for name in attacks if name not in calls]:
        raise BadInput(
            f"none of these attacks is for {', '.join(names)}: {', '.join(others)}; programs need an enforcer"
        )


def _made(names: set[str], image: str, *, required: bool) -> Iterator[Enforcer]:
    """Yield the enforcers that are here; one that is not is said, and fails the command that was asked for it."""
    from statek_sim.agent.containers.bubblewrap import Bubblewrap
    from statek_sim.agent.containers.docker import Docker
    from statek_sim.agent.containment.enforcers import Control, InContainer, Landlocked

    makers: dict[str, Callable[[], Enforcer]] = {}
    makers["none"] = Control
    makers["landlock"] = Landlocked
    makers["bubblewrap"] = lambda: InContainer(Bubblewrap())
    makers["docker"] = lambda: InContainer(Docker(image), "/usr/bin/python3")
    for name, make in makers.items():
        if name in names:
            try:
                yield make()
            except ContainerFailed as why:
                if required:
                    raise BadInput(f"--enforcer {name}: {why}") from None
                typer.echo(f"not attacked: {name}: {why}", err=True)


def _policies() -> Iterator[tuple[str, MakeAdapter]]:
    from statek_sim.agent.permissions.adapters import Hardened

    yield "hardened", Hardened


def _show(rows: Sequence[Row], names: Sequence[str]) -> None:
    for name in names:
        counts = Counter(row.contained for row in rows if row.enforcer == name)
        typer.echo(f"{name:<12} held {counts[True]:>4}   out {counts[False]:>4}   not run {counts[None]:>4}")


def _record(rows: Sequence[Row]) -> dict[str, Any]:
    from statek_sim.agent.containers import cgroup
    from statek_sim.agent.permissions import landlock
    from statek_sim.agent.permissions.safe_open import has_openat2

    places = cgroup.places()
    return {
        "schema": SCHEMA,
        "limits": "rlimits" if places is None else f"cgroup v{places.version}",
        "landlock": landlock.version(),
        "openat2": has_openat2(),
        "programs": [asdict(row) for row in rows],
    }


def _paged(page: Path, rows: Sequence[Row]) -> str:
    before, after = _parted(page)
    return f"{before}{BEGIN}\n{_table(rows)}{END}{after}"


def _parted(page: Path) -> tuple[str, str]:
    """Return what stands before and after the matrix of a page."""
    try:
        before, _, rest = text_of(page).partition(BEGIN)
    except OSError as error:
        raise BadInput(f"{page}: {why_unreadable(error, page)}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{page}: is not UTF-8: {error.reason} at byte {error.start}") from None
    if END not in rest:
        raise BadInput(f"{page}: has no lines {BEGIN!r} and {END!r}, between which the matrix goes")
    return before, rest.partition(END)[2]


def _table(rows: Sequence[Row]) -> str:
    """Return the matrix in Markdown; the outcomes are in the JSON."""
    columns = [name for name in _ENFORCERS if any(row.enforcer == name for row in rows)]
    cells = {(row.name, row.enforcer): row for row in rows}
    lines = [f"| attack | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for name in dict.fromkeys(row.name for row in rows):
        marks = [_mark(cells.get((name, column))) for column in columns]
        lines.append(f"| `{name}` | {' | '.join(marks)} |")
    return "\n".join(lines) + "\n"


def _mark(row: Row | None) -> str:
    if row is None or row.contained is None:
        return "-"
    return "held" if row.contained else "**out**"
