"""Attacks everything that confines agents' programs and calls, and writes `tests/containers/attacks/matrix.md`.

    python -m tools.containers python -m tools.attack_matrix --docker statek-python

`--page FILE` writes another page; `--docker IMAGE` uses an image with /usr/bin/python3, without it Docker is skipped.
Exits 1 if an attack escapes bubblewrap or Docker, gets past the permissions, or does not start.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from statek_sim.agent.containers.bubblewrap import Bubblewrap
from statek_sim.agent.containers.docker import Docker
from statek_sim.errors import ContainerFailed
from tests.containers.attacks.enforcers import Control, Enforcer, InContainer
from tests.containers.attacks.matrix import PASSES_OLD_DOCKER, Row, broken, escapes, matrix, unproven
from tests.containers.attacks.policies import Hardened

ROOT: Final = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- matrix -->\n", "<!-- end of matrix -->"
COLUMNS: Final = ("none", "bubblewrap", "docker", "permissions")


def enforcers(image: str) -> Iterator[Enforcer]:
    """Yield the enforcers available on this machine, and print which are missing."""
    makers: list[tuple[str, Callable[[], Enforcer]]] = [
        ("none", Control),
        ("bubblewrap", lambda: InContainer(Bubblewrap())),
    ]
    if image:
        makers.append(("docker", lambda: InContainer(Docker(image, oldest=20), "/usr/bin/python3")))
    for name, make in makers:
        try:
            yield make()
        except ContainerFailed as why:
            print(f"not attacked: {name}: {why}", file=sys.stderr)


def table(rows: Sequence[Row]) -> str:
    """Return the matrix as Markdown."""
    columns = [name for name in COLUMNS if any(row.enforcer == name for row in rows)]
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


def _of_old_docker(row: Row) -> bool:
    return row.enforcer == "docker" and row.name in PASSES_OLD_DOCKER


def main(arguments: Sequence[str]) -> int:
    """Write the matrix to a page; return 1 if any attack escaped."""
    parser = argparse.ArgumentParser(prog="python -m tools.attack_matrix")
    parser.add_argument("--page", type=Path, default=ROOT / "tests" / "containers" / "attacks" / "matrix.md")
    parser.add_argument("--docker", metavar="IMAGE", default="")
    options = parser.parse_args(arguments)
    before, _, rest = options.page.read_text("utf-8").partition(BEGIN)
    rows = [
        row
        for row in matrix(list(enforcers(options.docker)), [("permissions", Hardened)])
        if not _of_old_docker(row)
    ]
    for name in COLUMNS:
        counts = Counter(row.contained for row in rows if row.enforcer == name)
        print(f"{name:<12} held {counts[True]:>4}   out {counts[False]:>4}   not run {counts[None]:>4}")
    options.page.write_text(f"{before}{BEGIN}{table(rows)}{END}{rest.partition(END)[2]}", "utf-8")
    print("not proven to work without an enforcer:", ", ".join(unproven(rows)) or "none")
    bad = [*escapes(rows, ("bubblewrap", "docker", "permissions")), *broken(rows)]
    for row in bad:
        print(f"{row.enforcer}: {row.name}: {row.outcome}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
