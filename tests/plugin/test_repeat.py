"""`@pytest.mark.statek_repeat`, in test suites of its own, and what its verdict says."""

from __future__ import annotations

import pytest

from pytest_statek.repeat import Repetition, least_runs
from statek_sim.intervals import wilson
from tests.tables import table_test

SUITE = """
import pytest

made = []

@pytest.fixture
def fresh(statek_seed):
    made.append(statek_seed)
    return []

@pytest.mark.statek_repeat(10, pass_at_least={share})
@pytest.mark.parametrize("least", [2])
def test_mostly(statek_seed, fresh, least):
    fresh.append(1)
    assert fresh == [1]
    assert statek_seed >= least

def test_afterwards(statek_seed):
    assert made == list(range(10))
    assert statek_seed == 0
"""


def test_a_repeated_test_passes_by_its_share_and_says_what_that_shows(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.format(share=0.8))
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "*repeated tests*",
            "*::test_mostly[[]2[]]: 8 of 10 runs passed (95 % interval 49% to 94%, pass^2 62%, pass^4 "
            "33%, pass^8 2%); too few runs to show 80%, which requires 16 runs without a failure",
        ]
    )


def test_a_repeated_test_fails_once_with_the_seeds_and_the_first_failure(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.format(share=0.9))
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "8 of 10 runs passed (95 % interval 49% to 94%, pass^2 62%, pass^4 33%, pass^8 2%), expected at least 90%",
            "failed with statek_seed 0, 1; first failure:",
            "*assert 0 >= 2",
        ]
    )


def test_a_fixture_that_fails_and_a_skip_end_the_repetition(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import pytest

@pytest.fixture
def broken():
    raise ValueError("broken")

@pytest.mark.statek_repeat(5)
def test_broken(broken):
    pass

@pytest.mark.statek_repeat(5)
def test_skipped():
    pytest.skip("not here")

class TestIt:
    @pytest.mark.statek_repeat(5)
    def test_method(self):
        assert not hasattr(self, "seen")
        self.seen = True
"""
    )
    pytester.runpytest("-p", "no:cacheprovider").assert_outcomes(errors=1, skipped=1, passed=1)


def test_a_simulated_weak_model_means_to_follow_a_script(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import json
import openai
import pytest
from statek_sim import text, tool_call
from statek_sim.evals import simulated_model

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}} for name in ("look", "warn")]

@pytest.mark.statek_repeat(8, pass_at_least=0.1)
def test_it(statek_llm_server, statek_seed):
    script = [tool_call("look", city="Oslo"), tool_call("warn", city="Oslo"), text("Warned.")]
    statek_llm_server.script([simulated_model(script, seed=statek_seed)])
    messages, called = [{"role": "user", "content": "Warn Oslo."}], []
    with openai.OpenAI() as client:
        while calls := (said := client.chat.completions.create(
            model="m", messages=messages, tools=TOOLS).choices[0].message).tool_calls:
            messages.append(said.model_dump(exclude_none=True))
            for one in calls:
                called.append((one.function.name, one.function.arguments))
                messages.append({"role": "tool", "tool_call_id": one.id, "content": "done"})
            assert len(called) < 6
    assert [(name, json.loads(given)["city"]) for name, given in called] == [("look", "Oslo"), ("warn", "Oslo")]
    assert said.content == "Warned."
"""
    )
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*[1-7] of 8 runs passed*"])


def test_workers_repeat_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.format(share=0.8))
    result = pytester.runpytest("-p", "no:cacheprovider", "-n", "1")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*8 of 10 runs passed*"])


@pytest.mark.parametrize("mark", ["0", "True", "5, pass_at_least=0", "5, pass_at_least=2", "5, 0.5, 3"])
def test_numbers_that_mean_nothing_are_refused(pytester: pytest.Pytester, mark: str) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.statek_repeat({mark})\ndef test_it(): pass")
    result = pytester.runpytest("-p", "no:cacheprovider")
    assert result.ret != 0
    assert "statek_repeat" in result.stdout.str() + result.stderr.str()


@table_test("share", [0.5, 0.8, 0.9, 0.99])
def test_least_runs_are_the_fewest_that_show_a_share(share: float) -> None:
    runs = least_runs(share)
    low, before = wilson(runs, runs), wilson(runs - 1, runs - 1)
    assert low is not None
    assert before is not None
    assert low[0] >= share > before[0]


def test_a_share_that_is_shown_needs_no_more_words() -> None:
    assert Repetition(40, 0.9).verdict(40) == "40 of 40 runs passed (95 % interval 91% to 100%), at least 90%"
