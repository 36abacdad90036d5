"""A corpus of hostile programs: each is stopped, or ends, or ends its process with a traceback that shows the block.

With a twentieth of the usual time, a quarter of the memory, and some of the programs; a `slow` test takes more of them.
All of them with twice the time, as `make thorough` does:
`STATEK_SIM_EXAMPLES=all pytest tests/unit/test_sandbox_hostile.py`.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
from contextlib import suppress
from typing import Final

import pytest

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.time_limit import BlockLimits, block_limits, last_resort
from tests.examples import EVERYTHING
from tests.hostile_programs import Program, programs
from tests.tables import table_test
from tests.unit.sandbox_session import Session

LIMITS: Final = BlockLimits(seconds=0.4 if EVERYTHING else 0.2, memory=256 << 20)
UNTOUCHED: Final = 128 << 20
"""Bytes that a process may have mapped and not yet used when a block starts: what earlier tests freed, for example."""

CPU: Final = 5
"""Seconds of processor time that a program may take in all, with the last resort: the system kills it after them."""

TOO_MANY_FOR_ONE_TEST: Final = "kept over turns: "
"""What is kept over turns is bounded where turns are: see `contained-data-kept-over-turns`."""

EVERY: Final = [one for one in programs() if not one.name.startswith(TOO_MANY_FOR_ONE_TEST)]
CHOSEN: Final = EVERY if EVERYTHING else EVERY[::82]

NEW: Final = {
    "nested finally": "\n".join(
        [" " * depth + line for depth in range(19) for line in ("try: x = 1", "finally:")] + [" " * 19 + "x = 2"]
    ),
    "many ways into a finally": "def f():\n try:\n"
    + "  if 1: return 1\n" * 2_000
    + " finally:\n"
    + "  x = 1\n" * 4_000,
    "backtracking": "import re\nre.match(r'(?a)(\\w+)+$', 'a' * 40 + '\\u00e9')",
    "backtracking on bytes": "import re\nre.match(rb'(\\w+)+$', b'a' * 40 + b'\\xe9')",
    "long power": "7 ** 10 ** 9",
    "keys of one hash": "x = {}\nfor i in range(10**6): x[range(i * (2**61 - 1), i * (2**61 - 1) + 1)] = 1",
    "a repr that hides its size": "x = ['a' * 10**6]\nfor i in range(40): x = [x, x]\nrepr(x)",
    "a comparison of shared parts": "x = y = (1,)\nfor i in range(60):\n  x = (x, x)\n  y = (y, y)\nx == y",
    "a hash of shared parts": "x = (1,)\nfor i in range(60): x = (x, x)\n{x: 1}",
    "a search of a range": "5.5 in range(10**12)",
    "caught again and again": "import re\nwhile True:\n  try: re.match('(a+)+$', 'a' * 40 + 'b')\n  except: pass",
    "returned from a finally": "import re\ndef f():\n  try: re.match('(a+)+b', 'a' * 40)\n  finally: return f()\nf()",
    "memory caught again and again": "x = []\nwhile True:\n  try: x.append(bytes(10**9))\n  except Exception: pass",
    "memory in pieces": "x = []\nwhile True: x.append('a'.ljust(10**6))",
}  # fmt: skip
"""What outlived the sandbox before it had a timer."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are those of Linux")


def test_there_are_many_programs_and_each_has_a_name_of_its_own() -> None:
    assert len(EVERY) > 400
    assert len({one.name for one in EVERY}) == len(EVERY)


@table_test("program", CHOSEN, ids=lambda program: program.name)
def test_a_hostile_program_is_stopped_before_it_takes_much(program: Program) -> None:
    assert_ends(program)


@pytest.mark.slow
@table_test("program", EVERY[41::82], ids=lambda program: program.name)
def test_more_hostile_programs_are_stopped_before_they_take_much(program: Program) -> None:
    assert_ends(program)


@table_test("name", NEW)
def test_a_program_that_nothing_counts_is_stopped_too(name: str) -> None:
    assert_ends(Program(name, (NEW[name],)))


def assert_ends(program: Program) -> None:
    with tempfile.TemporaryFile() as report:
        child = os.fork()
        if child == 0:
            os._exit(_ends_within_limits(program, report.fileno()))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        report.seek(0)
        told = report.read().decode()
    if status == -signal.SIGVTALRM:
        assert "in block " in told
    else:
        assert status == 0, f"{program.name!r}: ended with status {status}"


def _ends_within_limits(program: Program, report: int) -> int:
    """Run the program in a process that the system kills beyond the limits; return its exit code."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU + 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    session = Session(budget=ExecutionBudget(100_000))
    with block_limits(LIMITS), last_resort(report), suppress(Exception, BudgetExceeded):
        # A program may fail as it likes, as long as it ends.
        for block in program.blocks:
            session.run(block)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return 1 if grown > (LIMITS.memory + UNTOUCHED) >> 10 else 0
