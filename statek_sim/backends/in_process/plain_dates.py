"""Frozen clocks that hand out real dates: dbzero stores `datetime` and `date` themselves, and no subclass of them.

A module of its own: the fixture of applications needs it also where no `statek` is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, datetime
from typing import Any

import freezegun


@contextmanager
def plain_dates() -> Iterator[None]:
    """Inside the block, freezegun's stand-ins for `datetime` and `date` make and return the real thing."""
    api: Any = freezegun.api  # what it makes dates with is not in its type hints
    with ExitStack() as stack:
        _replace(stack, api, "datetime_to_fakedatetime", _itself)
        _replace(stack, api, "date_to_fakedate", _itself)
        for stand_in, kind in ((api.FakeDate, date), (api.FakeDatetime, datetime)):
            _replace(stack, type(stand_in), "__call__", _maker_of(stand_in, kind))
        yield


def _replace(stack: ExitStack, owner: Any, name: str, replacement: object) -> None:
    if name in vars(owner):
        stack.callback(setattr, owner, name, vars(owner)[name])
    else:
        stack.callback(delattr, owner, name)
    setattr(owner, name, replacement)


def _itself(value: Any) -> Any:
    return value


def _maker_of(stand_in: type, kind: type) -> Any:
    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        return kind(*args, **kwargs) if cls is stand_in else type.__call__(cls, *args, **kwargs)

    return make
