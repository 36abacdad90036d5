"""`datetime`, `date` and `time.strftime` for model-written code, reading a virtual clock.

Only the ways to ask for the present differ: `datetime.now()`, `utcnow()`, `today()`, `date.today()` and `strftime`
without a time. Everything made through these classes is a plain `datetime` or `date`, and `isinstance` accepts plain
ones. The virtual wall clock counts as UTC, also for `fromtimestamp`, whatever zone the machine is in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, tzinfo
from typing import Any

from statek_sim.clock import Clock


class _StandsFor(type):
    """A class that accepts what it stands for as its instances and subclasses."""

    _plain: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._plain)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._plain)


def virtual_datetime(clock: Clock) -> Any:
    """Return a `datetime` class whose present is `clock.wall()`."""

    class VirtualDatetime(datetime, metaclass=_StandsFor):
        _plain = datetime

        # Its constructor gives the plain class, so nothing else needs to.
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return datetime(*args, **kwargs)

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            wall = clock.wall()
            return wall if tz is None else wall.replace(tzinfo=UTC).astimezone(tz)

        @classmethod
        def utcnow(cls) -> Any:
            return clock.wall()

        @classmethod
        def today(cls) -> Any:
            return clock.wall()

        @classmethod
        def fromtimestamp(cls, timestamp: float, tz: tzinfo | None = None) -> Any:
            found = datetime.fromtimestamp(timestamp, UTC)
            return found.replace(tzinfo=None) if tz is None else found.astimezone(tz)

    return _named(VirtualDatetime, "datetime")


def virtual_date(clock: Clock) -> Any:
    """Return a `date` class whose today is that of `clock.wall()`."""

    class VirtualDate(date, metaclass=_StandsFor):
        _plain = date

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return date(*args, **kwargs)

        @classmethod
        def today(cls) -> Any:
            return clock.wall().date()

        @classmethod
        def fromtimestamp(cls, timestamp: float) -> Any:
            return datetime.fromtimestamp(timestamp, UTC).date()

    return _named(VirtualDate, "date")


def virtual_strftime(clock: Clock) -> Callable[..., str]:
    """Return `time.strftime`, which shows `clock.wall()` unless it is given a time tuple."""

    def strftime(*args: Any) -> str:
        if len(args) == 1 and isinstance(args[0], str):
            return time.strftime(args[0], clock.wall().timetuple())
        return time.strftime(*args)

    return strftime


def _named(kind: Any, name: str) -> Any:
    kind.__name__ = kind.__qualname__ = name
    kind.__module__ = "datetime"
    return kind
