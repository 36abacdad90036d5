"""What error handlers are, and when they run."""

from __future__ import annotations

import functools
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from statek_sim import Agent, error_handler
from statek_sim.jobs import is_valid_error_handler
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.error_handlers import ErrorHandler, handler_problem
from statek_sim.trace import HandlerRan, HandlerRegistered
from tests.tables import table_test
from tests.unit.runtime_samples import idle_runtime

CALLS: list[tuple[object, object]] = []


@error_handler
def _note(context: object, error: BaseException | None = None) -> None:
    CALLS.append((context, error))


@error_handler
def _fail(context: object, error: BaseException | None = None) -> None:
    raise ValueError(f"no cleanup for {context}")


def test_a_decorated_handler_hides_its_own_failure() -> None:
    _fail("ctx", error=RuntimeError("why"))


def test_an_entry_runs_its_handler_with_context_and_error_and_has_nothing_to_report() -> None:
    error = RuntimeError("why")
    assert ErrorHandler(_note, "ctx")(error) is None
    assert CALLS.pop() == ("ctx", error)


def test_an_entry_reports_the_failure_that_the_decorator_hides() -> None:
    failure = ErrorHandler(_fail, "ctx")()
    assert isinstance(failure, ValueError)
    assert str(failure) == "no cleanup for ctx"


def test_an_entry_is_named_after_its_function_or_else_its_class() -> None:
    assert ErrorHandler(_note, None).name == "_note"
    assert ErrorHandler(functools.partial(_note), None).name == "partial"


def _plain(context: object, error: object = None) -> None:
    """Lack the decorator."""


def _keyword_only(context: object, *, error: object = None) -> None:
    """Take the error by keyword."""


@table_test(
    ("candidate", "problem"),
    [
        (_note, None),
        (error_handler(_keyword_only), None),
        (_plain, "is not decorated with @error_handler"),
        (None, "is NoneType, expected a function"),
        ("_note", "is str, expected a function"),
        (functools.partial(_note), "is not decorated with @error_handler"),
        (
            error_handler(lambda context, error=None: None),
            "needs a name that starts with '_'",
        ),
    ],
)
def test_what_breaks_the_protocol_is_said_in_words(candidate: Any, problem: str | None) -> None:
    assert handler_problem(candidate) == problem
    assert is_valid_error_handler(candidate) is (problem is None)


Called = list[tuple[str, object, str | None]]


@pytest.fixture
def called() -> Called:
    return []


def noting(called: Called, name: str) -> object:
    def handler(context: object, error: BaseException | None = None) -> None:
        called.append((name, context, None if error is None else str(error)))

    handler.__name__ = name
    return handler


def add(job: Job, called: Called, *names: str) -> None:
    for name in names:
        job.error_handlers.add(noting(called, name), f"ctx {name}")  # type: ignore[arg-type]


def test_handlers_run_oldest_first_and_once(called: Called) -> None:
    job = idle_runtime().create_job(Agent("worker"))
    add(job, called, "one", "two")
    job.notify_handlers(RuntimeError("why"))
    job.notify_handlers(RuntimeError("again"))
    assert called == [("one", "ctx one", "why"), ("two", "ctx two", "why")]
    assert len(job.error_handlers) == 0


def test_a_handler_that_raises_does_not_keep_the_next_from_running(called: Called) -> None:
    job = idle_runtime().create_job(Agent("worker"))

    def broken(context: object, error: BaseException | None = None) -> None:
        raise RuntimeError("no cleanup")

    job.add_error_handler(broken, None)
    add(job, called, "next")
    job.notify_handlers()
    assert called == [("next", "ctx next", None)]
    assert [event.failed for event in job.trace.of_type(HandlerRan)] == ["RuntimeError: no cleanup", None]


class _Plain:
    """No class of the store's."""


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        ({"z": 1, "a": 2}, "Dict {'a': 2, 'z': 1}"),
        ((1, {"z": 1, "a": 2}), "Tuple (1, {'a': 2, 'z': 1})"),
        ("a\0b", "str 'a'"),
        (Decimal("1E+6"), "Decimal Decimal('0.000001')"),
    ],
)
def test_a_context_is_what_the_store_keeps_of_it(context: object, kept: str, called: Called) -> None:
    job = idle_runtime("1.4").create_job(Agent("worker"))
    job.add_error_handler(noting(called, "one"), context)  # type: ignore[arg-type]
    job.notify_handlers()
    ((_, found, _),) = called
    assert f"{type(found).__name__} {found!r}" == kept


@pytest.mark.parametrize(
    ("context", "error"),
    [
        (_Plain(), "AttributeError: Unsupported attribute type"),
        (Counter("aab"), "AttributeError: Unsupported attribute type"),
        (
            2**70,
            "SystemError: <function ErrorHandler.__init__ at 0x...> returned a result with an exception set",
        ),
    ],
)
def test_a_context_that_the_store_refuses_registers_nothing(context: object, error: str) -> None:
    job = idle_runtime("1.4").create_job(Agent("worker"))
    with pytest.raises((AttributeError, SystemError)) as refused:
        job.add_error_handler(_note, context)
    assert f"{refused.typename}: {refused.value}" == error
    assert len(job.error_handlers) == 0
    assert not job.trace.of_type(HandlerRegistered)


def test_the_latest_input_is_what_the_store_keeps_of_it(called: Called) -> None:
    job = idle_runtime("1.4").create_job(Agent("worker"))
    job.error_handlers.bind_latest_input(_note, "more\0of it")
    assert [entry.context for entry in job.error_handlers] == ["more"]


def test_the_latest_input_needs_an_adapter_that_the_store_takes() -> None:
    job = idle_runtime("1.4").create_job(Agent("worker"))
    with pytest.raises(AttributeError, match="Lambda functions are not allowed as CALLABLE members"):
        job.error_handlers.bind_latest_input(lambda context, error=None: None, "text")
    assert len(job.error_handlers) == 0


def test_a_context_is_left_alone_where_nothing_is_stored(called: Called) -> None:
    job = idle_runtime("docs").create_job(Agent("worker"))
    context = _Plain()
    job.add_error_handler(noting(called, "one"), context)  # type: ignore[arg-type]
    job.notify_handlers()
    assert called == [("one", context, None)]


def test_a_handler_that_registers_another_does_not_run_it_in_the_same_turn(called: Called) -> None:
    job = idle_runtime().create_job(Agent("worker"))
    job.add_error_handler(lambda context, error=None: add(job, called, "late"), None)
    job.notify_handlers()
    assert called == []
    assert [entry.name for entry in job.error_handlers] == ["late"]


def test_registering_and_running_are_in_the_trace(called: Called) -> None:
    job = idle_runtime().create_job(Agent("worker"))
    add(job, called, "one")
    job.notify_handlers(ValueError("why"))
    assert job.trace.of_type(HandlerRegistered) == [HandlerRegistered(0.0, job.id, "one", "ctx one")]
    assert job.trace.handlers() == [HandlerRan(0.0, job.id, "one", "ctx one", "why", None)]


def test_a_child_takes_the_handlers_its_parent_has_at_that_moment(called: Called) -> None:
    runtime = idle_runtime()
    parent = runtime.create_job(Agent("worker"))
    add(parent, called, "early")
    child = runtime.create_job(Agent("worker"), parent_job=parent)
    add(parent, called, "late")
    assert [entry.name for entry in child.error_handlers] == ["early"]
    child.notify_handlers()
    assert [entry.name for entry in parent.error_handlers] == ["early", "late"]


def test_the_latest_input_replaces_the_one_before_and_stays_in_its_place_behind_others(
    called: Called,
) -> None:
    agent = Agent("worker", context={"_critical_error_handler": noting(called, "critical")})
    job = idle_runtime().create_job(agent)
    job.push_user_message("first")
    add(job, called, "claim")
    job.push_user_message("second")
    job.notify_handlers()
    assert called == [("claim", "ctx claim", None), ("critical", "second", None)]


def test_without_an_adapter_no_input_is_bound() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    job.push_user_message("hello")
    assert list(job.error_handlers) == []


def test_before_1_3_1_no_input_is_bound(called: Called) -> None:
    agent = Agent("worker", context={"critical_error_handler": noting(called, "critical")})
    job = idle_runtime("1.2").create_job(agent)
    job.push_user_message("hello")
    assert list(job.error_handlers) == []


def test_a_child_binds_its_own_input_to_the_adapter_it_inherited(called: Called) -> None:
    runtime = idle_runtime()
    adapter = noting(called, "critical")
    parent = runtime.create_job(
        Agent("boss", context={"critical_error_handler": adapter}), message="to parent"
    )
    child = runtime.create_job(Agent("worker"), parent_job=parent, message="to child")
    child.notify_handlers()
    assert called == [("critical", "to child", None)]
