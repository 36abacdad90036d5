"""Options, marker and fixture of cassettes. Loaded in every pytest run, so it imports nothing but pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from statek_sim.cassettes.session import CassetteSession

MARKER_NAME: Final = "statek_cassette"
MARKER: Final = (
    f'{MARKER_NAME}(name="…", ignore=["body.metadata.run"], mode="none", allow_unplayed=False): answer this test\'s '
    "HTTP requests from cassettes/<module>/<test>.yaml; every argument may be left out."
)
"""The marker as `pytest --markers` shows it."""

MODES: Final = ("none", "once", "new_episodes", "all", "rewrite")
PLUGIN: Final = "pytest_statek.cassettes"
"""The module that does the work, for runs in which a test carries the marker."""

SESSION: Final = pytest.StashKey["CassetteSession"]()
"""Where a test's stash keeps its open cassette."""


def add_record_options(parser: pytest.Parser) -> None:
    """Declare the options and ini keys of cassettes."""
    group = parser.getgroup("statek", "STATEK agents: scenario suites and fixtures")
    group.addoption(
        "--statek-record",
        choices=MODES,
        metavar="MODE",
        help=f"when tests marked {MARKER_NAME} may reach real providers: none (the default) plays cassettes only, once "
        "records those that do not exist, new_episodes adds what is missing, all records everything and keeps what "
        "was not asked again, rewrite starts each cassette from nothing",
    )
    group.addoption(
        "--statek-allow-unplayed",
        action="store_true",
        default=False,
        help="do not fail a test that leaves recordings of its cassette unplayed",
    )
    group.addoption(
        "--statek-cassette-list",
        metavar="FILE",
        help="write the cassette of each collected test into this file, one per line; "
        "`statek-sim cassette orphans` asks for it",
    )
    parser.addini(
        "statek_cassette_ignore",
        "parts of requests that do not count when recordings are looked up, one per line: body.metadata.run, "
        "query.trace",
        type="linelist",
    )
    parser.addini(
        "statek_cassette_secret_names",
        "headers, parameters and members of bodies that hold secrets of yours, one per line: x-acme-pin",
        type="linelist",
    )
    parser.addini(
        "statek_cassette_secret_patterns",
        "regular expressions that your secrets fit, one per line: acme-[0-9a-f]{32}",
        type="linelist",
    )
    parser.addini(
        "statek_cassette_allow_undecoded",
        "media types of bodies that are no text and may be recorded although secrets in them cannot be seen, one per "
        "line: image/png, audio/*",
        type="linelist",
    )
    parser.addini("statek_allow_unplayed", "as --statek-allow-unplayed", type="bool", default=False)


def is_wanted(config: pytest.Config, items: list[pytest.Item]) -> bool:
    """Whether a run has use for cassettes."""
    return bool(config.getoption("--statek-cassette-list")) or any(
        item.get_closest_marker(MARKER_NAME) for item in items
    )


@pytest.fixture(scope="session")
def statek_cassette_redact() -> Callable[[str, str], str] | None:
    """Override it with a function of your own that has the last word about every text of a cassette.

    It takes a place (`uri`, `header NAME`, `body` or `reason`) and the text there, with what is known to be secret
    replaced already, and returns the text as it may be written. Requests pass through it too before they are looked
    up, so it must return the same for the same text, and leave what it returned as it is.
    """
    return None


@pytest.fixture
def statek_cassette(request: pytest.FixtureRequest) -> CassetteSession:
    """The open cassette of a test that is marked `statek_cassette`: its path, its mode, what is left to play."""
    item: pytest.Item = request.node
    session = item.stash.get(SESSION, None)
    if session is None:
        pytest.fail(f"{item.nodeid}: mark the test with @pytest.mark.{MARKER_NAME}", pytrace=False)
    return session
