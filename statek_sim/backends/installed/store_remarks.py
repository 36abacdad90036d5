"""What STATEK's store does to variables of jobs, said as the reference runtime says it.

The store changes them where STATEK writes them back at the end of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import wraps
from typing import Any, Final

import statek
from statek.executors import utils
from statek.python_sandbox import is_sandbox_transient_value

from statek_sim.runtime.stored.block_end import Remark, refused_because, remark_of, written_after
from statek_sim.runtime.stored.containers import kept
from statek_sim.trace import StoreRemark

_CHANGING: Final = (str, Decimal, datetime)
"""Classes of which some values come back otherwise without an error."""


class StoredNames:
    """Remarks on the variables of all jobs. `now` returns the virtual second, `name_of` a job's name."""

    def __init__(self, now: Callable[[], float], name_of: Callable[[Any], str]) -> None:
        self._now = now
        self._name_of = name_of
        self.remarks: list[StoreRemark] = []

    def install(self) -> None:
        """Watch STATEK from now on."""
        write = utils._copy_modified_locals

        @wraps(write)
        def written(current: Mapping[str, Any], stored: Any) -> None:
            names = _Names(stored)
            try:
                write(current, names)
            finally:
                self._tell(names.remarks_on(current))

        utils._copy_modified_locals = written

    def _tell(self, remarks: list[Remark]) -> None:
        job = self._name_of(statek.get_current_job())
        for found in remarks:
            self.remarks.append(StoreRemark(self._now(), job, found.name, found.change, found.reason, None))


class _Names:
    """The names of a job in the store, as far as writing them back asks."""

    def __init__(self, stored: Any) -> None:
        self._stored = stored
        self._before = set(stored)
        self._refused: tuple[str, Exception] | None = None
        self._changed: list[Remark] = []

    def __contains__(self, name: str) -> bool:
        return name in self._stored

    def __getitem__(self, name: str) -> Any:
        return self._stored[name]

    def __setitem__(self, name: str, value: Any) -> None:
        try:
            self._stored[name] = value
        except Exception as error:
            self._refused = name, error
            raise
        remark = remark_of(name, kept(value)) if type(value) in _CHANGING else None
        if remark is not None:
            self._changed.append(remark)

    def remarks_on(self, current: Mapping[str, Any]) -> list[Remark]:
        """Return what there is to say once STATEK has written what it could of the `current` names."""
        if self._refused is None:
            return self._changed
        culprit, error = self._refused
        there = culprit in self._stored and culprit not in self._before
        remark = Remark(culprit, "changed" if there else "lost", refused_because(error))
        later = list(current)[list(current).index(culprit) + 1 :]
        missed = [name for name in later if name not in self._stored and not _never_written(current[name])]
        return [*self._changed, remark, *(written_after(name, culprit) for name in missed)]


def _never_written(value: Any) -> bool:
    """Return whether a value is STATEK's own helper or a module, which it never writes back."""
    return callable(value) or bool(is_sandbox_transient_value(value))
