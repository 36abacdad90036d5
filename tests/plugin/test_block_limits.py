"""What model-written code may use of pytest's own process, in tests of the fixtures."""

from __future__ import annotations

import signal
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are those of Linux")
TEST = """\
from statek_sim import Agent
from statek_sim.providers.script import code

def test_hostile(statek_runtime, statek_llm):
    statek_llm.script(worker=[code({code!r})])
    job = statek_runtime.create_job(Agent("worker"))
    statek_runtime.run()
    assert job.stop_reason == "contained"
    assert job.error.error_message.startswith({reason!r})
"""
BACKTRACKING = "import re\nre.match('(a+)+$', 'a' * 40 + 'b')"
ENDLESS_IN_C = "marker = 5.5\nmarker in range(10**12)"


def run(pytester: pytest.Pytester, code: str, reason: str, *args: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=TEST.format(code=code, reason=reason))
    return pytester.runpytest_subprocess("test_it.py", *args)


@pytest.mark.parametrize(
    ("seconds", "args"), [pytest.param(4, (), marks=pytest.mark.slow), (1, ("-ostatek_watchdog=cpu=1",))]
)
def test_code_that_takes_too_long_ends_its_job_as_contained(
    pytester: pytest.Pytester, seconds: int, args: tuple[str, ...]
) -> None:
    result = run(pytester, BACKTRACKING, f"the code used more than {seconds} s of CPU time", *args)
    result.assert_outcomes(passed=1)


def test_code_that_wants_too_much_memory_ends_its_job_as_contained(pytester: pytest.Pytester) -> None:
    result = run(pytester, "bytes(10**10)", "the code tried to allocate more memory than allowed")
    result.assert_outcomes(passed=1)


def test_c_code_that_does_not_return_ends_the_run_with_the_block_and_the_test(
    pytester: pytest.Pytester,
) -> None:
    result = run(pytester, ENDLESS_IN_C, "", "-ostatek_watchdog=cpu=1")
    assert result.ret == -signal.SIGVTALRM
    result.stderr.fnmatch_lines(["*in block 'marker = 5.5*", '*test_it.py", line 7 in test_hostile'])


@pytest.mark.slow
def test_c_code_that_does_not_return_fails_its_test_under_xdist(pytester: pytest.Pytester) -> None:
    result = run(pytester, ENDLESS_IN_C, "", "-ostatek_watchdog=cpu=1", "-n", "1")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*crashed while running 'test_it.py::test_hostile'*"])
