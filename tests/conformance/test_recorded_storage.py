"""Our stored collections do what dbzero's were recorded doing, operation by operation."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from statek_sim.runtime.stored.containers import NotReproduced, StoreKills, inside
from tests.conformance.stored_operations import OPERATIONS, outcome, stored_values
from tests.tables import table_test

RECORDED: Final = json.loads((Path(__file__).parent / "recorded_storage.json").read_text("utf-8"))[
    "operations"
]

UNLIKE: Final = {
    r"d['a\0b']=1": "two keys that are one up to the NUL",
    "d[decimal.Decimal('1.5')]=1": "the hash of a Decimal that is no whole number",
    "s.add([1])": "an unhashable member is refused there and added all the same",
    "s.add({1})": "as above",
    "s.add({'a':1})": "as above",
    "del d[(-1,)]": "a tuple with a member that has no hash is no key, and nothing is deleted",
}
"""Operations that go another way here, and why."""

REFUSED: Final = re.compile(r"intersection\(|\bs\w?&|^for \w in \w+: |iter\([de]?[sd]n?\)|2\*\*6[34]")
"""Operations that are not reproduced here: common members, loops over what they change, keys beyond 64 bits."""


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="error texts are those of Python 3.11")
@table_test("operation", OPERATIONS)
def test_our_collections_do_what_dbzeros_do(operation: str) -> None:
    values = stored_values(lambda made: {name: inside(value) for name, value in made.items()})
    theirs = RECORDED[operation]
    if theirs is None:
        with pytest.raises(StoreKills):
            outcome(operation, values)
        return
    try:
        found = outcome(operation, values)
    except NotReproduced:
        assert REFUSED.search(operation)
    else:
        assert (found == theirs) is (operation not in UNLIKE)


def test_every_operation_is_recorded() -> None:
    assert list(RECORDED) == list(OPERATIONS)
