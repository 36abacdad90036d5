"""Runs as files, a folder each, on one machine; see `run_folder` for what is in one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from statek_sim.errors import BadStore, Damaged, Held
from statek_sim.store.disk import Disk
from statek_sim.store.protocol import (
    LEASE,
    Changes,
    Kind,
    Lease,
    LeaseTerms,
    Listed,
    Stored,
    nobody_is_gone,
)
from statek_sim.store.run_folder import Record, RunFolder, new_record
from statek_sim.values import JSON


class FileStore:
    """A `Store` in a folder; the arguments after `disk` are those of `LeaseTerms`.

    It lists every row in run.json, so that a commit takes longer the more rows a run has: a database is the better
    place for jobs with many objects.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        clock: Callable[[], float],
        address: str = "files",
        lease: float = LEASE,
        is_gone: Callable[[str], bool] = nobody_is_gone,
    ) -> None:
        self.address = address
        self.lease_seconds = lease
        self._terms = LeaseTerms(address=address, clock=clock, seconds=lease, is_gone=is_gone)
        self._disk = disk

    def close(self) -> None:
        """Do nothing: no file is held open."""

    # -- leases ------------------------------------------------------------------------------------------------

    def claim(
        self, run: str, *, worker: str, kind: Kind = "jobs", about: Mapping[str, JSON] | None = None
    ) -> Lease:
        """Take a run, which is made where `about` is given; raises `Held`, `BadStore` and `Damaged`."""
        self._terms.check_name(run)
        folder = self._folder(run)
        if about is not None:
            folder.make()
        elif folder.record() is None:
            raise self._unknown(run, kind)
        with folder.locked():
            record = folder.record() or new_record(run, kind, about or {})
            self._terms.check_kind(run, record["kind"], kind)
            self._terms.check_free(run, record["worker"], record["until"], worker=worker)
            return self._take(folder, record, worker)

    def claim_next(self, *, worker: str, kind: Kind = "jobs", besides: Collection[str] = ()) -> Lease | None:
        """Take the run of a kind that waits longest of those that are running and free; None when there is none.

        A run whose run.json is damaged is passed over, and so is one whose worker holds its lock: neither keeps anybody
        from the others.
        """
        waiting = [
            (record["until"], run)
            for run, record in self._records(kind)
            if record is not None and run not in besides and self._is_free(record)
        ]
        for _, run in sorted(waiting):
            folder = self._folder(run)
            try:
                with folder.locked():
                    record = folder.record()
                    if record is not None and self._is_free(record):
                        return self._take(folder, record, worker)
            except (Held, Damaged):
                continue
        return None

    def _is_free(self, record: Record) -> bool:
        return record["status"] == "running" and not self._terms.left(record["worker"], record["until"])

    def _take(self, folder: RunFolder, record: Record, worker: str) -> Lease:
        folder.cut_events(record)
        record |= {"fence": record["fence"] + 1, "worker": worker, "until": self._terms.until()}
        folder.put_record(record)
        return Lease(run=record["run"], worker=worker, fence=record["fence"], revision=record["revision"])

    def renew(self, lease: Lease) -> None:
        """Begin the time of a lease anew, also from another thread; raises `Fenced`."""
        folder = self._folder(lease.run)
        with folder.locked():
            folder.put_record(self._held(folder, lease) | {"until": self._terms.until()})

    def release(self, lease: Lease) -> None:
        """Give a run back; nothing happens to one that another worker has taken over."""
        folder = self._folder(lease.run)
        with folder.locked():
            record = folder.record()
            if record is not None and record["fence"] == lease.fence:
                folder.put_record(record | {"worker": "", "until": self._terms.clock()})

    def _held(self, folder: RunFolder, lease: Lease) -> Record:
        """Return what run.json says of a run that is still this lease's."""
        record = folder.record()
        if record is None:
            raise self._unknown(lease.run, "jobs")
        if record["fence"] != lease.fence:
            raise self._terms.fenced(lease)
        return record

    # -- content -----------------------------------------------------------------------------------------------

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        """Make changes durable and return the lease with their revision; raises `Fenced`."""
        folder, revision = self._folder(lease.run), lease.revision + 1
        with folder.locked():
            record = self._held(folder, lease)
            if record["revision"] != lease.revision:
                raise self._terms.fenced(lease)
            record |= {"revision": revision, "status": changes.status, "until": self._terms.until()}
            folder.commit(record, changes)
        return replace(lease, revision=revision)

    def load(self, run: str) -> Stored:
        """Return a run as of its newest commit; raises `NoSuchRun` and `Damaged`."""
        folder, seen = self._folder(run), None
        while True:
            record = folder.record()
            if record is None:
                raise self._unknown(run, "jobs")
            try:
                return folder.stored(record)
            except Damaged:
                # Its worker may have committed meanwhile.
                if record == seen:
                    raise
                seen = record

    def runs(self, kind: Kind = "jobs") -> Sequence[Listed]:
        """Return all runs of a kind by name; one whose run.json is damaged is of any kind."""
        found: list[Listed] = []
        for run, record in sorted(self._records(kind), key=lambda item: item[0]):
            if record is None:
                found.append(Listed(run=run, status="damaged", revision=0, worker="", left=0.0))
                continue
            left = self._terms.left(record["worker"], record["until"])
            worker = record["worker"] if left else ""
            status, revision = record["status"], record["revision"]
            found.append(Listed(run=run, status=status, revision=revision, worker=worker, left=left))
        return found

    def _records(self, kind: Kind = "jobs") -> Iterator[tuple[str, Record | None]]:
        """Yield every run of a kind with its record; None for one that is damaged, whose kind is not known."""
        for folder in self._disk.names(""):
            run = unquote(folder)
            try:
                record = self._folder(run).record()
            except BadStore:
                yield run, None
            else:
                if record is not None and record["kind"] == kind:
                    yield run, record

    def _folder(self, run: str) -> RunFolder:
        return RunFolder(self._disk, run, address=self.address)

    def _unknown(self, run: str, kind: Kind) -> BadStore:
        return self._terms.unknown(run, [listed.run for listed in self.runs(kind)])
