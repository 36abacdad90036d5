"""Tests of a table: one test tries every row and fails with all rows that failed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pytest

FAILED: Final = (Exception, BaseExceptionGroup, pytest.fail.Exception, pytest.skip.Exception)
"""What counts as the failure of a row; a row cannot be skipped."""
LONGEST: Final = 120
"""Characters of a value in the name of its row."""


def table_test(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Iterable[object] | Callable[[Any], object] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once per row, as `pytest.mark.parametrize` does, but as a single test.

    Use it for tables of values. Rows share the fixtures of the test: parametrize a test whose rows each need a folder,
    a server or captured output of their own. Takes the arguments of `parametrize`; `pytest.param` may name a row, but
    not mark it. A failure is a group with one error per failed row, each with a note that names the row.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = list(_table(columns, rows, ids))
    if not table:
        raise ValueError(f"the table of {', '.join(columns)} has no rows: the test could not fail")

    def of_every_row(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def whole(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for place, (name, row) in enumerate(table, start=1):
                try:
                    test(**fixtures, **row)
                except FAILED as failure:
                    failure.add_note(f"row {place} ({name or _described(row)})")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} rows failed", failures)

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in columns]
        whole.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # read by inspect
        return whole

    return of_every_row


def _table(
    columns: Sequence[str], rows: Iterable[Any], ids: Iterable[object] | Callable[[Any], object] | None
) -> Iterator[tuple[object, dict[str, Any]]]:
    """Yield the name of a row, if it has one, and its values by column."""
    named = iter(()) if ids is None or callable(ids) else iter(ids)
    for place, row in enumerate(rows, start=1):
        values, name = row, next(named, None)
        if isinstance(row, type(pytest.param())):
            if row.marks:
                raise ValueError(
                    f"row {place} of {', '.join(columns)} has a mark; only whole tests can have one"
                )
            values, name = row.values if len(columns) > 1 else row.values[0], row.id or name
        cells = dict(zip(columns, values, strict=True)) if len(columns) > 1 else {columns[0]: values}
        if callable(ids):
            name = "-".join(str(ids(value)) for value in cells.values())
        yield name, cells


def _described(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in row.items())


def _short(value: object) -> str:
    try:
        return repr(value)[:LONGEST]
    except Exception:  # noqa: BLE001  # values of tests may have no representation
        return f"a {type(value).__name__}"
