"""The checker of circuit breakers: every interleaving of four calls and two cooldowns, ours and other people's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from statek_sim.agent.protection.contract import Finding, breaker_findings
from statek_sim.checks import check_breaker
from statek_sim.errors import BadInput, ContractViolation
from tests.docs.page import DOCS
from tests.tables import table_test
from tools.breaker_table import BREAKERS, COOLDOWN, LEASE, Ours, breaker_table, own_clocks

Clock = Callable[[], float]


def test_ours_keeps_the_contract_in_every_interleaving() -> None:
    assert check_breaker(Ours, cooldown=COOLDOWN, lease=LEASE) == 60_480


class _Never:
    """Lets nothing through after the first failure."""

    def __init__(self, now: Clock) -> None:
        self._shut = False

    def start(self) -> object | None:
        return None if self._shut else object()

    def finish(self, call: object, *, failed: bool) -> None:
        self._shut = self._shut or failed


class _Closed(_Never):
    """Lets everything through, whatever fails."""

    def finish(self, call: object, *, failed: bool) -> None:
        """Do nothing."""


class _Shy(_Never):
    """Lets one call through at a time, even while nothing is wrong."""

    def start(self) -> object | None:
        was, self._shut = self._shut, True
        return None if was else object()

    def finish(self, call: object, *, failed: bool) -> None:
        self._shut = failed


class _Raising(_Never):
    """Raises when it is told of a failure."""

    def finish(self, call: object, *, failed: bool) -> None:
        if failed:
            raise RuntimeError("no such circuit")


@table_test(
    ("make", "finding", "sentence"),
    [
        (
            _Never,
            Finding.WEDGED,
            "call 1 starts, call 1 fails, the cooldown passes, call 2 starts: "
            "the breaker refused a call though the cooldown had passed",
        ),
        (
            _Closed,
            Finding.LEAKS,
            "call 1 starts, call 1 fails, call 2 starts: "
            "the breaker let a call through though it has to be open",
        ),
        (
            _Shy,
            Finding.SHUT,
            "call 1 starts, call 2 starts: the breaker refused a call though it has to be closed",
        ),
        (
            _Raising,
            Finding.RAISES,
            "call 1 starts, call 1 fails: the breaker raised RuntimeError: no such circuit",
        ),
    ],
)
def test_every_kind_of_fault_has_its_sentence(make: type[_Never], finding: Finding, sentence: str) -> None:
    assert breaker_findings(make, cooldown=1.0, acts=4)[finding] == sentence
    with pytest.raises(ContractViolation):
        check_breaker(make, cooldown=1.0)


def test_a_probe_that_is_lost_wedges_a_breaker_without_lease_only_if_a_lease_is_claimed() -> None:
    make = BREAKERS["ours"][0]
    assert breaker_findings(make, cooldown=COOLDOWN, lease=LEASE, acts=6) == {}
    with own_clocks():
        assert Finding.WEDGED not in breaker_findings(
            BREAKERS["purgatory 3.0.1"][0], cooldown=COOLDOWN, acts=5
        )


def test_times_that_mean_nothing_are_bad_input() -> None:
    with pytest.raises(BadInput, match=r"^a cooldown and a lease are above 0 seconds, not 0 and None$"):
        check_breaker(_Never, cooldown=0)


def test_the_page_shows_what_is_found_in_other_peoples_breakers() -> None:
    assert breaker_table() in (DOCS / "protection.md").read_text("utf-8")


def test_an_adapter_that_lacks_a_method_is_told_which() -> None:
    class Half:
        def start(self) -> object | None:
            return None

    said = "the adapter Half has no finish; expected the methods of BreakerAdapter: start, finish"
    with pytest.raises(BadInput, match=f"^{said}$"):
        check_breaker(lambda now: Half(), cooldown=60.0)  # type: ignore[arg-type,return-value]
