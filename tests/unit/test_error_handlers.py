from __future__ import annotations

import functools
from typing import Any

import pytest

from statek_sim import error_handler, is_valid_error_handler
from statek_sim.runtime.state.error_handlers import ErrorHandler, handler_problem

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


@pytest.mark.parametrize(
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
