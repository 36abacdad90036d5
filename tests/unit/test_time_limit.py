from __future__ import annotations

import resource
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.time_limit import BlockLimits, block_limits, limited, paused, timer_handled
from tests.soon import soon
from tests.unit.sandbox_session import Session

BACKTRACKING = "import re\nre.match('(a+)+$', 'a' * 40 + 'b')"
TIME = (
    r"^the code used more than 0.2 s of CPU time in one step, which depends on the machine; the likely cause"
)
MEMORY = r"^the code tried to allocate more memory than allowed; the likely cause"


@pytest.fixture(autouse=True)
def _short() -> Iterator[None]:
    with block_limits(BlockLimits(seconds=0.2)):
        yield


@pytest.mark.parametrize(
    "code",
    [
        BACKTRACKING,
        "7 ** 10 ** 8",
        "import statistics\nstatistics.mean(range(10**9))",
        "try: " + BACKTRACKING.partition("\n")[2] + "\nexcept BaseException: pass",
        "def f():\n  try: re.match('(a+)+$', 'a' * 40 + 'b')\n  finally: return 1\nf()",
        "def f():\n  try: re.match('(a+)+$', 'a' * 40 + 'b')\n  finally: f()\nf()",
        "while True:\n  try: re.match('(a+)+$', 'a' * 40 + 'b')\n  except: continue",
    ],
)
def test_code_that_takes_too_long_is_stopped_and_cannot_catch_it(code: str) -> None:
    with soon(), pytest.raises(BudgetExceeded, match=TIME):
        Session().run(f"import re\n{code}")


@pytest.mark.parametrize(
    "code",
    [
        "bytes(10**10)",
        "'x'.ljust(10**10)",
        "x = []\nwhile True: x.append(bytes(10**8))",
        "try: bytes(10**10)\nexcept Exception: pass",
    ],
)
def test_code_that_wants_too_much_memory_is_stopped_and_cannot_catch_it(code: str) -> None:
    with pytest.raises(BudgetExceeded, match=MEMORY):
        Session().run(code)


def test_timer_handler_and_limits_are_as_they_were_afterwards() -> None:
    def mine(*_: object) -> None:
        raise AssertionError

    handler = signal.signal(signal.SIGPROF, mine)
    signal.setitimer(signal.ITIMER_PROF, 1_000, 7)
    signal.setitimer(signal.ITIMER_REAL, 1_000)
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        with pytest.raises(BudgetExceeded, match=TIME):
            Session().run(BACKTRACKING)
        assert signal.getsignal(signal.SIGPROF) is mine
        left, again = signal.getitimer(signal.ITIMER_PROF)
        assert (990 < left < 1_001, again) == (True, 7)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
        assert resource.getrlimit(resource.RLIMIT_AS) == before
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, handler)


def test_the_timer_of_a_profiler_reaches_it_between_blocks() -> None:
    calls: list[int] = []
    handler = signal.signal(signal.SIGPROF, lambda number, _frame: calls.append(number))
    try:
        with soon(), timer_handled():
            with block_limits(BlockLimits()):
                Session().run("x = 1")
            signal.setitimer(signal.ITIMER_PROF, 0.01)
            while not calls:
                pass
            with pytest.raises(BudgetExceeded, match=TIME):
                Session().run(BACKTRACKING)
    finally:
        signal.signal(signal.SIGPROF, handler)
    assert calls == [signal.SIGPROF]


def test_what_runs_while_a_block_waits_takes_nothing_of_its_time() -> None:
    def waits() -> str:
        with paused():
            Session().run("x = 1")
            until = time.process_time() + 0.4
            while time.process_time() < until:
                pass
        return "done"

    assert limited(ExecutionBudget(), "", waits) == "done"


def test_a_block_inside_of_a_block_has_time_of_its_own() -> None:
    def outer() -> None:
        with pytest.raises(BudgetExceeded, match=TIME):
            Session().run(BACKTRACKING)
        while True:
            pass

    budget = ExecutionBudget()
    with pytest.raises(BudgetExceeded, match=TIME):
        limited(budget, "", outer)


def test_in_another_thread_blocks_run_without_a_timer() -> None:
    shown: list[list[str]] = []
    thread = threading.Thread(target=lambda: shown.append(Session().run("1 + 1")))
    thread.start()
    thread.join()
    assert shown == [["2"]]


def test_without_limits_nothing_is_timed() -> None:
    with block_limits(None):
        assert limited(ExecutionBudget(), "", lambda: signal.getitimer(signal.ITIMER_PROF)) == (0.0, 0.0)
