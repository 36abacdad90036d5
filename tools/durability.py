"""Kills runs with real SIGKILLs where the explorer simulates them: `python -m tools.durability`.

For every distinct crash point in every built-in scenario, a process starts the run on its own store and dies there;
this process then opens the store and continues. The trace must equal the simulated kill's, byte for byte. `--every N`
tries every Nth point, starting at a point chosen by the seed; `--profile` uses one profile instead of each scenario's
first one. `--share 1/2` takes every second of these points, for two parallel processes. `--log FILE` records each point
when it is tried and skips the points already in the file. Ctrl-C prints the results so far.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from statek_sim.backends.deviation_plan import Place, Point, with_deviations
from statek_sim.backends.deviations import killed_after
from statek_sim.backends.durable import DurableRun, about, run_name
from statek_sim.errors import StatekSimError
from statek_sim.explore.plan import kill_at, restart_of
from statek_sim.explore.state import States
from statek_sim.explore.variation import Variation, undisturbed
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.store.open import open_store
from statek_sim.store.protocol import LEASE, Changes, Kind, Lease, Listed, Stored
from statek_sim.suite.run import builtin_suites
from statek_sim.values import JSON

_LEASE = Lease(run="simulated", worker="w", fence=1, revision=0)


class NoStore:
    """A store that keeps nothing, for simulated kills under the rules for stored runs."""

    address = "nowhere"
    lease_seconds = LEASE

    def claim(
        self, run: str, *, worker: str, kind: Kind = "jobs", about: Mapping[str, JSON] | None = None
    ) -> Lease:
        """Do nothing."""
        return _LEASE

    def claim_next(self, *, worker: str, kind: Kind = "jobs", besides: Collection[str] = ()) -> Lease | None:
        """Return no run."""
        return None

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        """Discard the commit."""
        return replace(lease, revision=lease.revision + 1)

    def renew(self, lease: Lease) -> None:
        """Do nothing."""

    def release(self, lease: Lease) -> None:
        """Do nothing."""

    def load(self, run: str) -> Stored:
        """Return nothing."""
        raise KeyError(run)

    def runs(self, kind: Kind = "jobs") -> Sequence[Listed]:
        """Return no run."""
        return ()

    def close(self) -> None:
        """Do nothing."""


@dataclass
class Tally:
    """The results of the kills so far."""

    scenarios: int = 0
    known: int = 0
    points: int = 0
    killed: int = 0
    in_acts: int = 0
    alike: int = 0
    wrong: list[str] = field(default_factory=list)


class Log:
    """The points tried by earlier processes, one per line: `alike` or `wrong`, run and point."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        self._known = {line.partition(" ")[2].partition(":")[0] for line in lines}

    def has(self, name: str) -> bool:
        """Return whether a point was already tried."""
        return name in self._known

    def add(self, name: str, wrong: Sequence[str]) -> None:
        """Record a point's result."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(f"wrong {line}\n" for line in wrong)
                if not wrong:
                    file.write(f"alike {name}\n")


def stored_points(base: Variation) -> list[Point]:
    """Return the distinct crash points of a scenario running on a store."""
    seen, states = States(), set[str]()
    found: list[Point] = []
    run: DurableRun

    def watch(point: Point) -> None:
        state = seen.of(run.run, point)
        if state not in states:
            states.add(state)
            found.append(point)

    run = DurableRun(NoStore(), _LEASE, base.scenario, base.profile, first_run=base.first_run, watch=watch)
    run.finish()
    return found


def simulated(base: Variation, point: Point) -> str:
    """Return the digest of a run with a simulated kill at that point."""
    scenario = with_deviations(base.scenario, [kill_at(point, restart_of(base))])
    return DurableRun(NoStore(), _LEASE, scenario, base.profile, first_run=base.first_run).finish().digest


def kill(address: str, base: Variation, place: Place) -> bool:
    """Start a run in a process that dies at a point; return whether it reached the point."""
    child = os.fork()
    if child == 0:
        try:
            _live(address, base, place)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _live(address: str, base: Variation, place: Place) -> None:
    def watch(point: Point) -> None:
        if point.place == place:
            os.kill(os.getpid(), signal.SIGKILL)

    with closing(open_store(address, clock=lambda: 0.0)) as store:
        description = about(base.scenario, base.profile, preset=None, seed=None)
        lease = store.claim(run_name(base.scenario, base.profile), worker="dies", about=description)
        DurableRun(store, lease, base.scenario, base.profile, first_run=base.first_run, watch=watch).finish()


def resumed(address: str, base: Variation) -> tuple[str, Place | None, bool]:
    """Continue a run; return its trace digest, its last commit, and whether a worker was alive then."""
    name = run_name(base.scenario, base.profile)
    with closing(open_store(address, clock=lambda: 1000.0)) as store:
        lease = store.claim(name, worker="goes on")
        run = DurableRun(
            store,
            lease,
            base.scenario,
            base.profile,
            stored=store.load(name),
            first_run=base.first_run,
            reason=killed_after,
            restart=restart_of(base),
        )
        return run.finish().digest, run.went_on_from, run.buried


def named(base: Variation, point: Point) -> str:
    """Return a point's name: its run and its position."""
    event, silent = point.place
    return f"{run_name(base.scenario, base.profile)} {event}" + (f"+{silent}" if silent else "")


def try_point(tally: Tally, base: Variation, point: Point, folder: Path) -> None:
    """Compare a real and a simulated kill at one point."""
    tally.points += 1
    where = f"{named(base, point)}: {point.what} of {point.job}"
    for left in folder.iterdir():
        left.unlink()
    address = f"sqlite:{folder / 'runs.db'}"
    if not kill(address, base, point.place):
        tally.wrong.append(f"{where}: the process did not die there")
        return
    tally.killed += 1
    try:
        digest, commit, lived = resumed(address, base)
        tally.in_acts += commit != point.place
        if commit is None or not lived:
            # Nothing was committed, or nobody was at work who could die.
            expected = (
                DurableRun(NoStore(), _LEASE, base.scenario, base.profile, first_run=base.first_run)
                .finish()
                .digest
            )
        else:
            expected = simulated(base, point._replace(place=commit))
    except (StatekSimError, AttributeError, TypeError, KeyError, ValueError) as error:
        tally.wrong.append(f"{where}: {type(error).__name__}: {error}")
        return
    if digest == expected:
        tally.alike += 1
    else:
        tally.wrong.append(f"{where}: other traces")


def pairs(profile: str | None, paths: Sequence[Path]) -> Iterator[tuple[Scenario, str]]:
    """Yield the scenarios that a store supports, each under one profile."""
    for scenario in load_or_fail(paths or [builtin_suites()]):
        if scenario.engine == "statek" and not scenario.deviations:
            if profile is None:
                yield scenario, scenario.profiles[0]
            elif profile in scenario.profiles:
                yield scenario, profile


def _memory() -> Path | None:
    """Return a folder in memory, where syncing is free: SIGKILL does not affect the system's cache."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() else None


def _share(text: str) -> tuple[int, int]:
    number, _, shares = text.partition("/")
    if not (number.isdecimal() and shares.isdecimal() and 1 <= int(number) <= int(shares)):
        raise argparse.ArgumentTypeError(f"{text!r}; expected 1/2 or 2/2, for example")
    return int(number) - 1, int(shares)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.durability", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--most", type=int, help="points of one scenario at most, its first ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile")
    parser.add_argument("--share", type=_share, default=(0, 1))
    parser.add_argument("--log", type=Path)
    return parser.parse_args()


def main() -> int:
    """Kill at the requested points; return 1 if a trace differs."""
    options = _options()
    tally, started, log = Tally(), time.monotonic(), Log(options.log)
    chance = random.Random(options.seed)
    number, shares = options.share
    turn = 0
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(dir=_memory()) as name:
        for scenario, profile in pairs(options.profile, options.paths):
            base = undisturbed(scenario, profile)
            points = stored_points(base)
            tally.scenarios += 1
            tally.known += len(points)
            for point in points[chance.randrange(options.every) :: options.every][: options.most]:
                turn += 1
                if turn % shares != number or log.has(named(base, point)):
                    continue
                before = len(tally.wrong)
                try_point(tally, base, point, Path(name))
                log.add(named(base, point), tally.wrong[before:])
                for line in tally.wrong[before:]:
                    print(line, flush=True)
    print(
        f"{tally.scenarios} scenarios, {tally.points} of their {tally.known} points: {tally.killed} processes killed, "
        f"{tally.alike} traces alike, {len(tally.wrong)} not ({tally.in_acts} died in the middle of what the "
        f"application does, and went on from the commit before); {time.monotonic() - started:.0f} s"
    )
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
