"""A real SIGKILL at a commit, and a new process that goes on: the trace is that of a simulated kill, byte for byte."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from statek_sim.backends.deviating import Place, killed_after
from statek_sim.backends.durable import DurableRun, run_name
from statek_sim.explore.plan import distinct_points, kill_at
from statek_sim.explore.variation import Undisturbed, undisturbed, varied
from statek_sim.store.opening import open_store
from tests.explore import samples
from tests.store.dying import killed_run

RESTART = 60.0


def resumed(address: str, base: Undisturbed) -> tuple[str, Place | None]:
    """Go on with a killed run as after a simulated kill; return the digest of its trace, and its last commit."""
    name = run_name(base.scenario, base.profile)
    with closing(open_store(address, clock=lambda: 1000.0)) as store:
        lease = store.claim(name, worker="the next one")
        run = DurableRun(
            store,
            lease,
            base.scenario,
            base.profile,
            stored=store.load(name),
            said=base.said,
            reason=killed_after,
            restart=RESTART,
        )
        return run.finish().digest, run.went_on_from


@pytest.mark.parametrize("text", [samples.CLAIM, samples.WAITS], ids=["claims", "waits"])
def test_every_distinct_crash_point_leaves_the_trace_of_the_simulated_kill(tmp_path: Path, text: str) -> None:
    scenario = samples.scenario(tmp_path, text)
    base, _ = undisturbed(scenario, "docs")
    points = distinct_points(base)[::3]
    for number, point in enumerate(points):
        address = f"sqlite:{tmp_path / f'{number}.db'}"
        killed_run(address, scenario, "docs", point.place, said=base.said)
        digest, commit = resumed(address, base)
        # In the middle of what the application does, nothing of it was committed.
        assert commit == point.place or point.what in ("JobCreated", "UserMessage"), point
        if commit is not None:
            with varied(base, [kill_at(point._replace(place=commit), RESTART)]) as simulated:
                assert digest == simulated.digest, point
