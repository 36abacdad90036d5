"""Tests that share a cassette: whatever the mode, nothing is lost, and the file is in the order of the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_statek.cassettes  # noqa: F401  # loaded once: every run in this process would import it anew
from statek_sim.cassettes.document import read
from tests.cassettes.provider import Provider, provider

TESTS = """\
import httpx
import pytest

@pytest.fixture(scope="module")
def client():
    # Certificates take longer to load than all else; left open, it would warn in a later test of this process.
    with httpx.Client(verify=False) as opened:
        yield opened

@pytest.mark.parametrize("number", range({count}))
@pytest.mark.statek_cassette(name="shared", allow_unplayed=True{more})
def test_it(client, number):
    for question in ("everybody's", f"of {{number % 5}}", f"of {{number % 5}}", f"only {{number}}"):
        body = {{"messages": [{{"role": "user", "content": question}}]}}
        assert client.post("{url}/v1/chat/completions", json=body).status_code == 200
    assert number not in {failing}
"""
COUNT = 6
"""So many tests share a cassette, and the last asks what the first does."""
MANY = 11
"""So many have another order than their names."""
EVERY_MODE = ["once", "new_episodes", "all", "rewrite"]


@pytest.fixture
def live() -> Iterator[Provider]:
    with provider() as running:
        yield running


def project(
    pytester: pytest.Pytester, url: str, count: int = COUNT, more: str = "", failing: object = ()
) -> Path:
    pytester.makepyfile(test_geo=TESTS.format(url=url, count=count, more=more, failing=failing))
    return pytester.path / "cassettes" / "test_geo" / "shared.yaml"


def questions(path: Path) -> list[str]:
    return [json.loads(one.request.body)["messages"][0]["content"] for one in read(path)]


def expected(count: int = COUNT) -> list[str]:
    """What so many tests record one after the other."""
    asked: list[str] = []
    for number in range(count):
        mine = ["everybody's", f"of {number % 5}", f"of {number % 5}", f"only {number}"]
        asked += [one for one in dict.fromkeys(mine) for _ in range(mine.count(one) - asked.count(one))]
    return asked


@pytest.mark.parametrize("mode", EVERY_MODE)
def test_every_mode_keeps_everything_in_one_order(
    pytester: pytest.Pytester, live: Provider, mode: str
) -> None:
    path = project(pytester, live.url, count=MANY)
    pytester.runpytest(f"--statek-record={mode}").assert_outcomes(passed=MANY)
    assert questions(path) == expected(MANY)
    first = path.read_bytes()
    asked = len(live.requests)
    pytester.runpytest().assert_outcomes(passed=MANY)
    assert (path.read_bytes(), len(live.requests)) == (first, asked)
    pytester.runpytest(f"--statek-record={mode}").assert_outcomes(passed=MANY)
    assert questions(path) == expected(MANY)


def test_workers_play_what_one_process_recorded_and_refuse_to_record(
    pytester: pytest.Pytester, live: Provider
) -> None:
    path = project(pytester, live.url, count=2)
    refused = pytester.runpytest("-n", "2", "--statek-record=new_episodes")
    refused.assert_outcomes(errors=2)
    refused.stdout.fnmatch_lines(
        ["*2 tests share cassettes/test_geo/shared.yaml, and pytest-xdist workers*process (-n0)*"]
    )
    assert (path.exists(), live.requests) == (False, [])
    pytester.runpytest("-n0", "--statek-record=new_episodes").assert_outcomes(passed=2)
    pytester.runpytest("-n", "1").assert_outcomes(passed=2)


@pytest.mark.parametrize("mode", ["new_episodes", "all"])
def test_one_test_alone_adds_to_what_the_others_recorded(
    pytester: pytest.Pytester, live: Provider, mode: str
) -> None:
    path = project(pytester, live.url)
    pytester.runpytest(f"--statek-record={mode}").assert_outcomes(passed=COUNT)
    project(pytester, live.url, count=COUNT + 1)
    pytester.runpytest("-k", f"test_it[{COUNT}]", f"--statek-record={mode}").assert_outcomes(passed=1)
    assert sorted(questions(path)) == sorted(expected(COUNT + 1))


@pytest.mark.parametrize("stops", ["raise KeyboardInterrupt", "pytest.exit('enough')", "assert False"])
def test_a_run_that_ends_early_takes_no_recording_of_tests_that_had_no_turn(
    pytester: pytest.Pytester, live: Provider, stops: str
) -> None:
    path = project(pytester, live.url)
    pytester.runpytest("--statek-record=once").assert_outcomes(passed=COUNT)
    pytester.makepyfile(
        test_geo=(pytester.path / "test_geo.py").read_text() + f"\n    if number == 3: {stops}\n"
    )
    pytester.runpytest("--statek-record=rewrite", "-x", no_reraise_ctrlc=True)
    assert sorted(questions(path)) == sorted(expected())
    pytester.runpytest("-k", "not 3").assert_outcomes(passed=COUNT - 1, deselected=1)


def test_a_miss_advises_no_mode_that_loses_what_others_recorded(
    pytester: pytest.Pytester, live: Provider
) -> None:
    project(pytester, live.url)
    pytester.runpytest("--statek-record=once").assert_outcomes(passed=COUNT)
    project(pytester, live.url, count=COUNT + 1)
    result = pytester.runpytest("-k", f"test_it[{COUNT}]")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*record it: pytest 'test_geo.py::test_it[[]6[]]' --statek-record=new_episodes"]
    )
    assert "rewrite" not in result.stdout.str()


def test_a_test_that_fails_while_others_rewrite_keeps_what_it_played(
    pytester: pytest.Pytester, live: Provider
) -> None:
    path = project(pytester, live.url, count=4)
    pytester.runpytest("--statek-record=once").assert_outcomes(passed=4)
    project(pytester, live.url, count=4, failing=[1, 2])
    pytester.runpytest("--statek-record=rewrite").assert_outcomes(passed=2, failed=2)
    assert sorted(questions(path)) == sorted(expected(4))
    put_aside = questions(path.with_name("shared.new.yaml"))
    assert put_aside == ["everybody's", "of 1", "of 1", "only 1", "of 2", "of 2", "only 2"]


@pytest.mark.parametrize(
    "modes", [("once", "rewrite"), ("once", "all", "rewrite"), ("once", "rewrite", "once")]
)
def test_modes_that_conflict_lose_nothing_when_they_run_again(
    pytester: pytest.Pytester, live: Provider, modes: tuple[str, ...]
) -> None:
    path = project(pytester, live.url, count=1)
    source = (pytester.path / "test_geo.py").read_text()
    tests = [
        source.replace("=True)", f"=True, mode={mode!r})")
        .replace("test_it", f"test_{number}")
        .replace("only", f"only {number}")
        for number, mode in enumerate(modes)
    ]
    pytester.makepyfile(test_geo="\n".join(tests))
    for _ in range(3):
        pytester.runpytest("-Wdefault").assert_outcomes(passed=len(modes))
        assert {f"only {number} 0" for number in range(len(modes))} <= {*questions(path)}


def test_modes_that_conflict_are_warned_about_and_lose_nothing(
    pytester: pytest.Pytester, live: Provider
) -> None:
    path = project(pytester, live.url, count=2, more=", mode='new_episodes'")
    source = (pytester.path / "test_geo.py").read_text()
    pytester.makepyfile(
        test_geo=source
        + "\n"
        + source.replace("'new_episodes'", "'rewrite'").replace("test_it", "test_other")
    )
    result = pytester.runpytest("-Wdefault")
    result.assert_outcomes(passed=4, warnings=1)
    result.stdout.fnmatch_lines(
        ["*test_geo/shared.yaml: shared by tests with different record modes: new_episodes (*), rewrite (*)"]
    )
    assert sorted(questions(path)) == sorted(expected(2))


def test_tests_whose_names_become_one_file_are_told_that_they_share_it(
    pytester: pytest.Pytester, live: Provider
) -> None:
    pytester.makepyfile(
        test_geo="import pytest\n"
        "@pytest.mark.parametrize('place', ['a/b', 'a:b'])\n"
        "@pytest.mark.statek_cassette\n"
        "def test_it(place): pass\n"
    )
    result = pytester.runpytest("-Wdefault")
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "*/test_it[[]a-b[]].yaml: shared by tests whose names differ only in characters that file names "
            "cannot contain: *"
            "test_it[[]a/b[]], *test_it[[]a:b[]]; use @pytest.mark.statek_cassette(name=...) to*"
        ]
    )
