"""What the store would lose, in pytest: a warning, or the failure of the test."""

from __future__ import annotations

import pytest

TEST = """
    import pytest
    from statek_sim import Agent

    {mark}
    def test_counting(statek_runtime, statek_llm):
        statek_llm.script(clerk=["import collections\\ntotal = collections.Counter('aab')", "exit('ok')"])
        job = statek_runtime.create_job(Agent("clerk"))
        statek_runtime.run()
        assert job.stop_reason == "exit"
"""
LOST = "`total` was lost: Counter cannot be stored by dbzero"
WOULD = "STATEK 1.4.2 would lose `total` here: Counter cannot be stored by dbzero"


def written(pytester: pytest.Pytester, mark: str = "") -> None:
    pytester.makepyfile(TEST.format(mark=mark))


def test_a_fixtures_default_is_a_warning(pytester: pytest.Pytester) -> None:
    written(pytester)
    result = pytester.runpytest("-Wdefault")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines([f"*StoredOtherwise: {WOULD}"])


@pytest.mark.parametrize(("profile", "said"), [("docs", WOULD), ("1.4", LOST)])
def test_strict_storage_fails_the_test_and_says_what_to_do(
    pytester: pytest.Pytester, profile: str, said: str
) -> None:
    written(pytester)
    result = pytester.runpytest("-ostatek_storage=strict", f"--statek-profile={profile}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [f"*{said}. Store only values that dbzero keeps*statek_storage = warn*", f"*store *{said}"]
    )


def test_the_marker_is_nearer_than_the_option(pytester: pytest.Pytester) -> None:
    written(pytester, '@pytest.mark.statek(storage="warn")')
    pytester.makeini("[pytest]\nstatek_storage = strict")
    pytester.runpytest("-Wdefault").assert_outcomes(passed=1, warnings=1)


def test_a_storage_mode_that_there_is_not_is_refused(pytester: pytest.Pytester) -> None:
    written(pytester, '@pytest.mark.statek(storage="loud")')
    result = pytester.runpytest("-Wdefault")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*storage='loud': expected 'strict' or 'warn'*"])


def test_strict_storage_fails_scenarios_too_which_may_lose_values_otherwise(
    pytester: pytest.Pytester,
) -> None:
    pytester.makefile(
        ".yaml",
        counting="""
        scenarios:
          - id: counting
            title: Counts
            profiles: ["1.4"]
            agents: {clerk: {}}
            script:
              clerk:
                - code: |
                    import collections
                    total = collections.Counter('aab')
                - code: exit('ok')
            expect: {jobs: {main: {exit: ok}}}
        """,
    )
    pytester.runpytest("--statek-scenarios=counting.yaml").assert_outcomes(passed=1)
    result = pytester.runpytest("--statek-scenarios=counting.yaml", "-ostatek_storage=strict")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{LOST}. Store only values that dbzero keeps*"])
