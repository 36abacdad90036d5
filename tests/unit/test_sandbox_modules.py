from __future__ import annotations

import calendar
import collections
import datetime
import decimal
import itertools
import math
import operator
import re
import statistics

import pytest

from statek_sim.clock import VirtualClock
from statek_sim.errors import SandboxViolation
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.modules import is_transient, sandbox_modules
from statek_sim.sandbox.policy import EXPORTED_NAMES
from tests.tables import table_test
from tests.unit.sandbox_session import Session

MODULES = sandbox_modules(VirtualClock(), ExecutionBudget())


def test_every_export_is_there_and_nothing_else() -> None:
    for name, exports in EXPORTED_NAMES.items():
        for export in exports:
            assert getattr(MODULES[name], export) is not None
        with pytest.raises(SandboxViolation, match=rf"^attribute '{name}.other' is not allowed$"):
            getattr(MODULES[name], "oth" + "er")


def test_modules_are_read_only_and_have_no_insides() -> None:
    module = MODULES["math"]
    with pytest.raises(SandboxViolation, match=r"^sandbox module attributes are read-only$"):
        module.pi = 3
    with pytest.raises(SandboxViolation, match=r"^sandbox module attributes are read-only$"):
        del module.pi
    with pytest.raises(SandboxViolation, match=r"^attribute 'math.__dict__' is not allowed$"):
        vars(module)
    assert repr(module) == "<sandbox module math>"


def test_printing_a_module_is_refused_as_in_statek() -> None:
    assert Session().shown("import math\nmath") == [
        "SandboxViolation: attribute 'math.__llm_repr__' is not allowed"
    ]


def test_modules_and_their_exports_do_not_outlive_the_block() -> None:
    found = [
        MODULES["math"],
        MODULES["math"].sqrt,
        MODULES["math"].factorial,
        MODULES["math"].pi,
        MODULES["datetime"].datetime,
        MODULES["datetime"].timedelta,
        MODULES["itertools"].count,
        MODULES["re"].search,
        MODULES["json"].dumps,
        MODULES["decimal"].ROUND_UP,
        MODULES["statistics"].StatisticsError,
        decimal.Decimal,
        collections.deque,
    ]
    assert all(map(is_transient, found))


@table_test(
    "value",
    [1, "x", None, [math.sqrt], len, str, datetime.datetime(2024, 1, 1), decimal.Decimal(1), float("1.5")],
)
def test_other_values_do(value: object) -> None:
    assert not is_transient(value)


@table_test("name", ["day_name", "day_abbr", "month_name", "month_abbr"])
def test_days_and_months_are_named_in_english_and_as_in_python(name: str) -> None:
    names, real = getattr(MODULES["calendar"], name), getattr(calendar, name)
    assert list(names) == list(real) == real[:]
    assert (names[1:3], names[-1], len(names)) == (real[1:3], real[-1], len(real))
    assert is_transient(names)
    with pytest.raises(IndexError, match=r"^list index out of range$"):
        names[13]


def test_the_present_is_that_of_the_clock() -> None:
    clock = VirtualClock()
    session = Session(clock=clock)
    code = (
        "import datetime, time\nfrom datetime import date\n"
        "print(datetime.datetime.now(), date.today(), time.strftime('%H:%M'), datetime.datetime.utcnow().hour)"
    )
    assert session.run(code) == ['datetime("2026-01-01 09:00") 2026-01-01 09:00 9']
    clock.advance(15 * 3600 + 60)
    assert session.run(code) == ['datetime("2026-01-02 00:01") 2026-01-02 00:01 0']


def test_now_in_a_zone_takes_the_virtual_clock_for_utc() -> None:
    code = (
        "import datetime\nzone = datetime.timezone(datetime.timedelta(hours=2))\n"
        "print(datetime.datetime.now(zone).isoformat(), datetime.datetime.fromtimestamp(0).isoformat())"
    )
    assert Session().run(code) == ["2026-01-01T11:00:00+02:00 1970-01-01T00:00:00"]


def test_virtual_datetimes_are_plain_datetimes() -> None:
    virtual = MODULES["datetime"].datetime
    for made in (
        virtual(2024, 1, 2),
        virtual.now(),
        virtual.fromisoformat("2024-01-02"),
        virtual.strptime("2024", "%Y"),
        virtual.combine(datetime.date(2024, 1, 2), datetime.time(3)),
        virtual(2024, 1, 2) + datetime.timedelta(days=1),
    ):
        assert type(made) is datetime.datetime
        assert isinstance(made, virtual)
    assert isinstance(datetime.datetime(2024, 1, 1), MODULES["datetime"].date)
    assert not isinstance(datetime.date(2024, 1, 1), virtual)
    assert issubclass(virtual, datetime.datetime)
    assert issubclass(datetime.datetime, virtual)
    assert repr(virtual) == "<class 'datetime.datetime'>"


@table_test("name", sorted(set(EXPORTED_NAMES["itertools"]) - {"tee", "chain"}))
def test_lazy_types_look_like_those_of_python(name: str) -> None:
    ours = getattr(MODULES["itertools"], name)
    assert (ours.__name__, ours.__module__) == (name, "itertools")


@table_test(
    ("module", "name", "args"),
    [
        (math, "comb", (10, 3)),
        (math, "perm", (5, 2)),
        (math, "prod", ([2, 3, 4],)),
        (math, "lcm", (4, 6)),
        (operator, "mod", ("%s", 1)),
        (operator, "indexOf", ([1, 2], 2)),
        (statistics, "median", ([3, 1, 2],)),
        (re, "sub", ("a+", "b", "caat")),
        (itertools, "islice", ("abc", 1, None)),
    ],
)
def test_replacements_compute_what_the_originals_do(
    module: object, name: str, args: tuple[object, ...]
) -> None:
    ours = getattr(MODULES[module.__name__], name)(*args)  # type: ignore[attr-defined]
    theirs = getattr(module, name)(*args)
    assert (list(ours) if name == "islice" else ours) == (list(theirs) if name == "islice" else theirs)
