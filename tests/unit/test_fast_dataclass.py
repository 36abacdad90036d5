"""A frozen value that is made quickly is the value that `dataclass` makes."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from statek_sim.fast_dataclass import quick


@dataclass(frozen=True, slots=True)
class Slow:
    """As `dataclass` makes it."""

    name: str
    number: int = 3
    rest: Mapping[str, int] = field(default_factory=dict)
    kind: str = field(default="plain", kw_only=True)


@quick
@dataclass(frozen=True, slots=True)
class Quick:
    """The same, quickly."""

    name: str
    number: int = 3
    rest: Mapping[str, int] = field(default_factory=dict)
    kind: str = field(default="plain", kw_only=True)


def test_it_is_made_as_before() -> None:
    assert inspect.signature(Quick) == inspect.signature(Slow)
    one, other = Quick("a"), Quick("a", 4, {"x": 1}, kind="other")
    assert (one, other) == (
        Quick("a", 3, {}, kind="plain"),
        Quick(name="a", number=4, rest={"x": 1}, kind="other"),
    )
    assert repr(other) == "Quick(name='a', number=4, rest={'x': 1}, kind='other')"
    assert one.rest is not Quick("a").rest
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'name'$"):
        Quick()  # type: ignore[call-arg]


def test_it_stays_frozen_and_can_be_copied() -> None:
    one = Quick("a", 4)
    with pytest.raises(FrozenInstanceError, match=r"^cannot assign to field 'number'$"):
        one.number = 5  # type: ignore[misc]
    assert type(one) is Quick
    assert replace(one, number=5) == Quick("a", 5)
    assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))  # made here


def test_a_class_of_its_own_is_made_as_dataclass_says() -> None:
    class Mine(Quick):
        """One with a `__dict__`."""

    mine = Mine("a", kind="mine")
    assert (type(mine), mine.name, mine.kind) == (Mine, "a", "mine")


def test_what_could_differ_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Checks:
        name: str

        def __post_init__(self) -> None:
            """Check something."""

    with pytest.raises(
        TypeError, match=r"^Checks: expected a dataclass with slots whose fields are all parameters$"
    ):
        quick(Checks)
