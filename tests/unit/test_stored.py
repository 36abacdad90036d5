"""What a value becomes in the store, and what is said about it."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Final

import pytest

from statek_sim import tool, tool_call
from statek_sim.backends.facts import plain
from statek_sim.jobs import StatekSettings, stored
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.stored.block_end import predict_losses, predict_refusals, store_variables
from statek_sim.runtime.stored.containers import NOTHING, Dict, List, NotReproduced, StoreKills, inside, kept
from statek_sim.runtime.stored.ordering import in_store_order, key_hash
from statek_sim.runtime.stored.storable_types import EnumValue
from statek_sim.sandbox.budget import unfolded_size
from statek_sim.sandbox.llm_repr import shown
from statek_sim.trace import StoreRemark
from tests.tables import table_test


def finished(profile: str, *replies: str, **shared: object) -> Job:
    runtime = Runtime(ScriptedLLM([*replies, "exit('ok')"]), profile=profile)
    job = runtime.create_job(Agent("clerk"), shared_vars=shared)
    runtime.run()
    return job


def told(job: Job) -> list[str]:
    return [remark.told for remark in job.trace.of_type(StoreRemark)]


@table_test(
    ("key", "number"),
    [
        ("a", 0x71717D2D36B6B11),
        ("abcdefgh", 0xAFDB0257FF41AA98),
        ("abcdefghi", 0xC9B9D84356146AC2),
        ("é", 18195260988191342947),
        ("", 0),
        (b"q", 8861071527689086543),
        (True, 1),
        (3.5, 1152921504606846979),
        ((1, 2), 3),
    ],
)
def test_keys_hash_as_in_dbzero(key: object, number: int) -> None:
    assert key_hash(key) == number


def test_the_order_of_arguments_is_that_of_their_hashes() -> None:
    assert in_store_order(["a", "b", "c"]) == ["a", "c", "b"]


def test_a_damaged_exit_status_is_set_and_the_code_goes_on_with_the_error() -> None:
    job = finished("1.4", "exit({'total': 2 ** 64, 'b': 2})")
    assert (job.console[0].strip(), job.exit) == (
        "OverflowError: int too big to convert",
        {"total": -1, "b": 2},
    )


def test_a_refused_value_is_lost_with_the_names_after_it() -> None:
    crossing = store_variables({"old": 1}, {"old": 1, "first": 2, "gap": timedelta(1), "last": 3})
    assert crossing.names == {"old": 1, "first": 2}
    assert [(remark.name, remark.change) for remark in crossing.remarks] == [
        ("gap", "lost"),
        ("last", "lost"),
    ]
    assert str(crossing.error) == "Type unsupported by dbzero: datetime.timedelta\n"


def test_what_is_foreseen_changes_nothing() -> None:
    rows = [3, 1]
    assert predict_losses({}, {"rows": rows}) == []
    assert [remark.change for remark in predict_losses({}, {"big": 2**63, "next": 1})] == ["changed", "lost"]


def test_a_plain_collection_is_copied_and_a_stored_one_is_shared() -> None:
    rows = [1]
    kept = inside(rows)
    rows.append(2)
    assert (kept, inside({"k": kept})["k"] is kept) == (List._of([1]), True)


def test_a_list_that_holds_itself_ends_the_process() -> None:
    rows: list[object] = []
    rows.append(rows)
    with pytest.raises(StoreKills, match=r"^a collection that contains itself was stored$"):
        inside(rows)


FOLDED: Final = {
    "list": "x = []\nfor i in range(60): x = [x, x]",
    "tuple": "x = ()\nfor i in range(60): x = (x, x)",
    "dict": "x = {}\nfor i in range(60): x = {'a': x, 'b': x}",
    "in one another": "x = 1\nfor i in range(20): x = [(x, x), {'a': x, 'b': [x]}]",
    "wide": "x = [1]\nfor i in range(4): x = [x] * 5000",
}
"""Values of a few objects that are millions of millions when a part counts each time it is met."""


@table_test("profile", ["docs", "1.4"])
@table_test("code", FOLDED.values(), ids=FOLDED)
def test_what_holds_itself_many_times_over_is_neither_copied_nor_compared(code: str, profile: str) -> None:
    # Each of these would end in years: what is bound is copied, and compared with what was there.
    again = f"{code}\ny = x\nz = [x, x]"
    job = finished(profile, code, again, again)
    reasons = [remark.reason for remark in job.trace.of_type(StoreRemark)]
    assert any("items was stored, counting repeated items each time" in reason for reason in reasons), reasons
    names: dict[str, object] = {}
    exec(code, names)
    with pytest.raises(
        StoreKills, match=r"^a collection of more than 5,000,000 items was stored, counting repeated"
    ):
        inside(names["x"])


def test_rows_that_are_shared_or_many_are_copied_all_the_same() -> None:
    row = list(range(10))
    assert len(inside([row] * 20_000)) == 20_000
    assert len(inside([[number] for number in range(20_000)])) == 20_000


def test_an_object_is_stored_when_its_class_says_so() -> None:
    @dataclass
    class Plain:
        amount: int

    marked = stored(type("Marked", (), {}))()
    assert inside(marked) is marked
    with pytest.raises(RuntimeError, match=r"^Type unsupported by dbzero: Plain\n$"):
        inside(Plain(1))


def test_the_trace_says_what_was_lost() -> None:
    job = finished("1.4", "import collections\ntotal = collections.Counter('aab')")
    assert told(job) == ["`total` was lost: Counter cannot be stored by dbzero"]
    assert "total" not in job.py_env.local_state


def test_the_documents_keep_a_value_and_say_once_what_the_release_would_do() -> None:
    code = "import collections\ntotal = collections.Counter('aab')"
    job = finished("docs", code, code)
    assert told(job) == ["STATEK 1.4.2 would lose `total` here: Counter cannot be stored by dbzero"]
    assert job.py_env.local_state["total"] == Counter("aab")


def test_a_job_cannot_be_started_with_what_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"^Type unsupported by dbzero: Counter\n$"):
        finished("1.4", total=Counter("aab"))


def test_a_job_is_started_with_stored_collections() -> None:
    job = finished("1.2", "print(isinstance(rows, list), entry)", rows=[1], entry={"b": 1, "a": 2})
    assert job.py_env.console == ['False {"a":2,"b":1}', "None"]
    assert isinstance(job.py_env.local_state["entry"], Dict)


@table_test(
    ("code", "why"),
    [
        ("print([0] + rows)", "a list was the left operand of + with a stored list"),
        ("print(2 * rows)", "a number was the left operand of * with a stored list"),
        ("print(entry.keys())", "the keys(), values() or items() of a stored dict were printed"),
        ("own = []\nown.append(own)", "`own`: a collection that contains itself was stored"),
        ("pair = (2 ** 65,)", "`pair`: a tuple was stored with an item that dbzero cannot store unchanged"),
    ],
)
def test_what_ends_the_process_stops_the_job_with_the_reason(code: str, why: str) -> None:
    runtime = Runtime(ScriptedLLM([code]), profile="1.4")
    job = runtime.create_job(Agent("clerk"), shared_vars={"rows": [1, 2], "entry": {"a": 1}})
    runtime.run()
    assert job.stop_reason == "contained"
    assert f"dbzero ends STATEK's process here, with every job in it: {why}" in job.py_env.console[-1]
    assert [remark.change for remark in job.trace.of_type(StoreRemark)] == ["kills"]


def test_an_integer_beyond_64_bits_in_a_requested_call_crashes_the_job() -> None:
    runtime = Runtime(ScriptedLLM([tool_call("note", text=2**63)]), profile="1.4")
    job = runtime.create_job(Agent("clerk"))
    runtime.run()
    assert job.stop_reason == "crash"
    assert "OverflowError: int too big to convert" in job.py_env.console[-1]
    assert told(job)[0].startswith("`arguments of note` was lost")


def test_a_result_whose_own_text_is_a_list_crashes_a_job_that_requested_it() -> None:
    class Odd:
        def __llm_repr__(self) -> list[int]:
            return [1, 2]

    @tool
    def find(**kwargs: object) -> Odd:
        """Find it."""
        return Odd()

    runtime = Runtime(ScriptedLLM([tool_call("find")]), profile="1.4")
    job = runtime.create_job(Agent("clerk", tools=[find]))
    runtime.run()
    assert (job.stop_reason, job.error and job.error.error_message) == (
        "crash",
        "sequence item 0: expected str instance, list found",
    )


def test_a_mapping_with_stored_tuples_for_keys_is_recorded_as_its_text() -> None:
    assert plain(inside({(1, 2): 3}), shown) == "{<Tuple of 2 items>:3}"
    assert plain(inside({"b": (1, 2)}), shown) == {"b": [1, 2]}


@table_test(
    ("source", "told"),
    [
        ("rows.sort()", ["rows.sort"]),
        ("if rows:\n    rows.insert(0, 1)\nrows.append(2)", ["rows.insert"]),
        ("rows = rows[:1]\nrows.sort()", []),
        ("for rows in [[2, 1]]:\n    rows.sort()", []),
        ("text.sort()\nentry.get('a')", []),
        ("rows += [2]\nentry.popitem()", ["rows +=", "entry.popitem"]),
        ("for i in (1, 2):\n    rows += [i]", ["rows +="]),
        ("def f(rows):\n    rows.sort()\nf([2])", []),
        ("key = lambda x: rows.sort().copy()", ["rows.sort"]),
    ],
)
def test_uses_that_stored_collections_refuse_are_foreseen(source: str, told: list[str]) -> None:
    before = {"rows": [1], "pair": (1, 2), "entry": {"a": 1}, "text": "abc"}
    assert [remark.name for remark in predict_refusals(before, source)] == told


@table_test(
    ("value", "back"),
    [
        (Decimal("1E+3"), "Decimal('0.001')"),
        (Decimal("1.12345678901234567890"), "Decimal('1.1234567890123456')"),
        (Decimal("-0.0"), "Decimal('0.0')"),
        (Decimal("0.10"), "Decimal('0.10')"),
        (datetime(2026, 1, 2, 3, 4, 5, 6789, tzinfo=UTC), "datetime.datetime(2026, 1, 2, 3, 4, 5, 6000, "),
        (
            datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30))),
            "datetime.datetime(2026, 1, 2, 0, 0, ",
        ),
        (datetime(2026, 1, 2, fold=1), "datetime.datetime(2026, 1, 2, 0, 0)"),
    ],
)
def test_decimals_and_moments_come_back_as_dbzero_keeps_them(value: object, back: str) -> None:
    assert repr(kept(value).value).startswith(back)


def test_an_offset_comes_back_in_whole_hours() -> None:
    found = kept(datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=-5, minutes=-30))))
    assert found.value.utcoffset() == timedelta(hours=-6)
    assert found.changes == (
        "of a datetime with a time zone, dbzero keeps only the whole hours of its UTC offset "
        "(UTC-05:30 is read back as UTC-06:00)"
    )


@pytest.mark.parametrize("value", [Decimal(10**17), Decimal("1E-64"), time(1, tzinfo=UTC)])
def test_what_does_not_fit_into_its_place_is_refused(value: object) -> None:
    assert kept(value).value is NOTHING


def test_a_text_of_its_own_that_is_no_text_is_shown_as_one() -> None:
    class Odd:
        def __llm_repr__(self) -> int:
            return 5

    assert shown(Odd()) == "5"


def test_entries_of_two_views_of_dicts_are_counted_apart() -> None:
    small, large = {0: 1}, {0: [1] * 1000}
    assert (
        unfolded_size([small.items(), large.items()]) == unfolded_size([large.items(), small.items()]) == 1008
    )


def test_a_deep_value_is_counted_without_calls_of_its_depth() -> None:
    deep: list[object] = [1]
    for _ in range(300):
        deep = [deep]
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 60)
    try:
        assert unfolded_size(deep) == 301
    finally:
        sys.setrecursionlimit(before)


def test_what_depends_on_memory_there_is_refused_here() -> None:
    seen, prices = inside({"tea", "rye"}), inside({"tea": 1, "rye": 2})
    with pytest.raises(NotReproduced, match=r"^the intersection of stored sets; use a comprehension"):
        seen & {"tea"}
    names = iter(prices)
    prices.pop(next(names))
    with pytest.raises(
        NotReproduced, match=r"^a stored dict or set was changed during iteration; iterate over"
    ):
        next(names)
    with pytest.raises(NotReproduced, match=r"^the integer 9223372036854775808 was stored as a dict key"):
        prices[2**63] = 1


def test_a_stored_status_is_equal_to_the_member_and_to_no_text() -> None:
    now = EnumValue("JobStatus", "STARTED")
    assert now == JobStatus.STARTED
    kinds: dict[object, int] = {JobStatus.STARTED: 1}
    assert kinds[now] == 1
    assert now not in ("STARTED", JobStatus.DONE, EnumValue("FutureState", "STARTED"))


def without_sandbox(code: str) -> Job:
    runtime = Runtime(
        ScriptedLLM([code, "exit('ok')"]), profile="1.4", settings=StatekSettings(python_sandbox_mode="off")
    )
    job = runtime.create_job(Agent("clerk"))
    runtime.run()
    return job


@pytest.mark.parametrize(
    "code", ["_smart_call = 5", "for _wrap_param in [1]: pass", "def _fmt_fstring_arg(x): return x"]
)
def test_code_that_breaks_what_statek_makes_of_code_is_remarked(code: str) -> None:
    (remark,) = finished("1.4", code).trace.of_type(StoreRemark)
    assert (remark.change, remark.name in code) == ("refused", True)
    assert "STATEK's own calls use this name" in remark.reason


@pytest.mark.parametrize("code", ["import traceback\ndel traceback", "x = 'a' in globals()"])
def test_unrestricted_code_that_looks_at_its_callers_is_remarked(code: str) -> None:
    (remark,) = without_sandbox(code).trace.of_type(StoreRemark)
    assert remark.reason == "in STATEK, it shows STATEK's frames and names; here, it shows this project's"
    # Restricted code has neither.
    assert finished("1.4", "x = 1").trace.of_type(StoreRemark) == []


def test_an_interrupt_that_agent_code_did_not_raise_ends_the_run() -> None:
    # A job in the background begins with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            without_sandbox("import signal\nsignal.raise_signal(signal.SIGINT)")
    finally:
        signal.signal(signal.SIGINT, before)
    assert without_sandbox("raise KeyboardInterrupt('now')").stop_reason == "contained"


@pytest.mark.parametrize("remove", ["discard", "remove"])
def test_a_negative_member_goes_although_removing_it_is_an_error(remove: str) -> None:
    members = kept({"a", -3}).value
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        getattr(members, remove)(-3)
    assert list(members) == ["a"]
    with pytest.raises(OverflowError if remove == "discard" else KeyError):
        getattr(members, remove)(-3)


class Colour(StrEnum):
    RED = "red"


class Word(str):
    __slots__ = ()


@tool
def red(**kwargs: object) -> str:
    """Return a member of a text enumeration."""
    return Colour.RED


@tool
def word(**kwargs: object) -> str:
    """Return a text of a class of its own."""
    return Word("said")


@table_test(("function", "kind"), [(red, "Colour"), (word, "Word")])
def test_echoing_a_subclass_of_text_is_an_error_that_counts(
    function: Callable[..., object], kind: str
) -> None:
    name = function.__name__
    runtime = Runtime(ScriptedLLM([f"{name}()", f"print({name}())", "exit('ok')"]), profile="1.4")
    job = runtime.create_job(Agent("clerk", tools=[function]))
    runtime.run()
    assert job.py_env.console[:2] == [
        f"RuntimeError: Type unsupported by dbzero: {kind}\n",
        str(function()),
    ]
    assert job.job_log.counters.exceptions == 1


def test_the_first_of_several_keys_with_one_hash_is_removed() -> None:
    """`0` for an empty string, and of `(1, 2)` and `(2, 1)` the older one: as dbzero 0.7.0 did it."""
    numbers, grid = Dict({"": 2, 0: 1}), Dict({(2, 1): "b", (1, 2): "a", (3, 3): "c"})
    del numbers[""], grid[1, 2]
    assert list(numbers.items()) == [("", 2)]
    assert [item for _, item in grid.items()] == ["c", "a"]
    assert Dict({0: "a", "": "b"}).pop("") == "a"
