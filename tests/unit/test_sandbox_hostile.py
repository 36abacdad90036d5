"""A corpus of hostile programs: each is stopped, or ends, before it has used much processor time or memory.

Under a twentieth of the usual limits, and a share of the programs. Everything, as `make thorough` does:
`STATEK_SIM_EXAMPLES=all pytest tests/unit/test_sandbox_hostile.py`.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from typing import Final

import pytest

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from tests.examples import EVERYTHING
from tests.hostile_programs import Program, programs
from tests.unit.sandbox_session import Session

SHARE: Final = 20
"""How much smaller than usual the limits are."""

CPU: Final = 2
"""Seconds of processor time that a program may take: the usual limits would let it take twenty times as long, or less.

Aim: five seconds in all, a quarter of a second here. The rest is slack for slow machines and for what one call takes.
"""

MEMORY: Final = 1 << 30
ONLY_THE_WATCHDOG: Final = (
    # Keys that Python's hash puts in one place.
    "huge: x = {}\nfor i in range(10**6): x[complex",
    "kept over turns: ",
)
"""Beginnings of the names of programs that docs/watchdog.md names: the first line does not hold them, or not here.

What is kept over turns is bounded where turns are: see `contained-data-kept-over-turns`.
"""

EVERY: Final = [one for one in programs() if not one.name.startswith(ONLY_THE_WATCHDOG)]
CHOSEN: Final = EVERY if EVERYTHING else EVERY[::17]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are those of Linux")


def test_there_are_many_programs_and_each_has_a_name_of_its_own() -> None:
    assert len(EVERY) > 400
    assert len({one.name for one in EVERY}) == len(EVERY)


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.name)
def test_a_hostile_program_is_stopped_before_it_takes_much(program: Program) -> None:
    child = os.fork()
    if child == 0:
        os._exit(_ends_within_limits(program))
    _, status = os.waitpid(child, 0)
    assert status == 0, f"{program.name!r}: ended with status {status}"


def _ends_within_limits(program: Program) -> int:
    """Run the program in a process that the system kills beyond the limits."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU + 1))
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()  # noqa: SIM115  # it ends at once
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    session = Session(budget=ExecutionBudget(1_000_000 // SHARE, 64_000_000 // SHARE))
    try:
        for block in program.blocks:
            with suppress(BudgetExceeded):
                session.run(block)
    except MemoryError:
        # Python's own refusal of what is larger than any memory; nothing was taken.
        return 1 if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MEMORY >> 10 else 0
    except Exception:  # noqa: BLE001  # a program may fail as it likes, as long as it ends
        return 0
    return 0
