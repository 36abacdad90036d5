"""The wall clock of agents and tools on STATEK: `now` and `today` follow virtual time.

Stand-ins for `date` and `datetime` are put where agent code and the world's tools find them. What they return are
real dates, because STATEK's store takes nothing else.
"""

from __future__ import annotations

import datetime
import types
from collections.abc import Callable
from typing import Any

from statek import python_sandbox

from statek_sim.clock import EPOCH
from statek_sim.world import plain_tools


def install(now: Callable[[], float]) -> None:
    """Have clocks show the moment `now()` virtual seconds after the start of the run."""

    def wall(zone: datetime.tzinfo | None = None) -> datetime.datetime:
        moment = EPOCH + datetime.timedelta(seconds=now())
        return moment.astimezone(zone) if zone is not None else moment.replace(tzinfo=None)

    dates, times = _stand_in(datetime.date), _stand_in(datetime.datetime)
    times.now = times.today = staticmethod(wall)
    times.utcnow = staticmethod(wall)
    dates.today = staticmethod(lambda: wall().date())
    exports = python_sandbox._SAFE_IMPORTS["datetime"]._exports
    exports.update(date=dates, datetime=times)
    module = types.ModuleType("datetime")
    vars(module).update({**vars(datetime), "date": dates, "datetime": times})
    plain_tools.datetime = module  # type: ignore[attr-defined]  # its own name for it


def _stand_in(kind: type) -> Any:
    """Return a class that makes objects of `kind` and takes them for its own."""

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, kind)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, kind)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return kind(*args, **kwargs)

    return Kind(kind.__name__, (kind,), {"__module__": kind.__module__})
