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
from statek_sim.sandbox.builtin_shim import BuiltinShim


class _StandsFor(type):
    """A class that accepts what it stands for as its instances and subclasses."""

    _plain: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._plain)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._plain)


def virtual_datetime(clock: Clock) -> Any:
    """Return a `datetime` class whose present is `clock.wall()`."""

    def now(tz: tzinfo | None = None) -> datetime:
        wall = clock.wall()
        return wall if tz is None else wall.replace(tzinfo=UTC).astimezone(tz)

    def fromtimestamp(timestamp: float, tz: tzinfo | None = None) -> datetime:
        found = datetime.fromtimestamp(timestamp, UTC)
        return found.replace(tzinfo=None) if tz is None else found.astimezone(tz)

    return _standing_for(datetime, now=now, utcnow=clock.wall, today=clock.wall, fromtimestamp=fromtimestamp)


def virtual_date(clock: Clock) -> Any:
    """Return a `date` class whose today is that of `clock.wall()`."""

    def today() -> date:
        return clock.wall().date()

    def fromtimestamp(timestamp: float) -> date:
        return datetime.fromtimestamp(timestamp, UTC).date()

    return _standing_for(date, today=today, fromtimestamp=fromtimestamp)


def virtual_strftime(clock: Clock) -> Callable[..., str]:
    """Return `time.strftime`, which shows `clock.wall()` unless it is given a time tuple."""

    def strftime(*args: Any) -> str:
        if len(args) == 1 and isinstance(args[0], str):
            return time.strftime(args[0], clock.wall().timetuple())
        return time.strftime(*args)

    return strftime


def _standing_for(plain: Any, **methods: Callable[..., Any]) -> Any:
    """Return a class named like `plain` that makes instances of `plain`, with some of its class methods replaced."""

    def make(_: type, *args: Any, **kwargs: Any) -> Any:
        return plain(*args, **kwargs)

    replaced = {name: BuiltinShim(method, getattr(plain, name)) for name, method in methods.items()}
    body = {"__new__": make, "__module__": "datetime", "_plain": plain, **replaced}
    return _StandsFor(plain.__name__, (plain,), body)
