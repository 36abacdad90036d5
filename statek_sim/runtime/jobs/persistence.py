"""What the store keeps of a job's values, and what is said of those that it does not keep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from statek_sim import trace as events
from statek_sim.runtime.state.host import Host
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.runtime.stored.attributes import attribute, ended_in
from statek_sim.runtime.stored.block_end import FORESEEN_RELEASE, Remark, foresee, remark_of
from statek_sim.runtime.stored.containers import Kept, kept


class Stored(Protocol):
    """A job, as far as the store is concerned; `runtime.jobs.job.Job` is one."""

    host: Host
    id: str
    py_env: PyEnv


class Keeping:
    """The values of one job that cross the store, and the names that something was said about."""

    __slots__ = ("_job", "_remarked")

    def __init__(self, job: Stored) -> None:
        self._job = job
        self._remarked: set[str] = set()

    def remark(self, remarks: Iterable[Remark], release: str | None = None) -> None:
        """Tell what the store did to names, or would do in `release`: then once for each name."""
        job = self._job
        for found in remarks:
            if release is not None and found.name in self._remarked:
                continue
            self._remarked.add(found.name)
            at = job.host.clock.now()
            job.host.trace.add(
                events.StoreRemark(at, job.id, found.name, found.change, found.reason, release)
            )

    def foresee(self, before: dict[str, object], after: dict[str, object]) -> None:
        """Where nothing is stored, tell what a release would lose of the names bound since `before`."""
        if not self._job.py_env.stores:
            self.remark(foresee(before, after), FORESEEN_RELEASE)

    def drop(self) -> None:
        """Unbind the variables that the runtime's store does not keep, and tell of each; nothing without a store."""
        why_not, env = self._job.host.why_not, self._job.py_env
        if why_not is None:
            return
        for name, value in [*env.local_state.items()]:
            reason = why_not(value)
            if reason is not None:
                del env.local_state[name]
                self.remark([Remark(name, "lost", reason)])

    def keeps(self, name: str, value: Any) -> Kept:
        """Return what an attribute in the store keeps of a value, and tell of what is lost under `name`.

        What the store refuses raises its error; where nothing is stored the value stays as it is.
        """
        why_not = self._job.host.why_not
        reason = None if why_not is None or self._job.py_env.stores else why_not(value)
        if reason is not None:
            self.remark([Remark(name, "lost", reason)])
            return Kept(None, None)
        found, stores = kept(value), self._job.py_env.stores
        remark = remark_of(name, found)
        if remark is not None:
            self.remark([remark], None if stores else FORESEEN_RELEASE)
        return attribute(value, found) if stores else Kept(value, None)

    def from_birth(self, name: str, value: Any, owner: str) -> Any:
        """Return what an object of the class `owner` keeps of a value that it is made with, as `keeps` does.

        Damage is Python's SystemError there.
        """
        found = self.keeps(name, value)
        if found.error is not None:
            raise ended_in(f"{owner}.__init__") from found.error
        return found.value
