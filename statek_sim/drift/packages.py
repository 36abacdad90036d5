"""Whether the real packages do what their profiles say, for the scenarios of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from statek_sim.backends.installed.peer import Peer, profile_of_peer
from statek_sim.conformance.declared import load_declarations
from statek_sim.conformance.matrix import Row, Verdict, VersionMatrix, run_matrix
from statek_sim.drift.side import Side
from statek_sim.errors import BadInput
from statek_sim.scenario.schema import Scenario


@dataclass(frozen=True, slots=True)
class PackageCheck:
    """One real release beside the profile that describes it."""

    matrix: VersionMatrix

    @property
    def agreeing(self) -> frozenset[str]:
        """Ids of the scenarios on which package and profile agree."""
        return frozenset(row.scenario for row in self.matrix.rows if row.verdict is Verdict.AGREE)

    @property
    def disagreeing(self) -> tuple[Row, ...]:
        """Scenarios on which they differ for no declared reason."""
        return tuple(row for row in self.matrix.rows if row.verdict is Verdict.DIFFERS)

    @property
    def declared(self) -> tuple[Row, ...]:
        """Scenarios on which they differ for a declared reason."""
        return tuple(row for row in self.matrix.rows if row.verdict is Verdict.DECLARED)


def check_packages(
    pythons: Sequence[str], scenarios: Sequence[Scenario], before: Side, after: Side
) -> tuple[PackageCheck, ...]:
    """Run the scenarios on the STATEK of each interpreter; BadInput for one that is neither side."""
    for python in pythons:
        _check_side(python, before, after)
    if not pythons:
        return ()
    return tuple(PackageCheck(matrix) for matrix in run_matrix(pythons, scenarios, load_declarations()))


def _check_side(python: str, before: Side, after: Side) -> None:
    with Peer(python) as peer:
        profile = profile_of_peer(peer)
        if not any(
            side.version in (None, peer.version) and side.profile == profile for side in (before, after)
        ):
            raise BadInput(
                f"--python {python}: has statek {peer.version}, which is neither {before.name} nor {after.name}"
            )
