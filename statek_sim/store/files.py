"""Stores each run as a folder of files on one machine. Reads return what was written, or raise `Damaged`.

    run.json        the commit point: lease, status, and the file and digest of each row
    ...             one file per row; a row's name may contain folders, as in `checkpoints/cp-0001.json`
    events.jsonl    the event log
    lock            held while a process writes
    progress.txt    a human-readable note, which the store never reads

A row that changes alternates between two files, `NAME` and `NAME~`: new contents are written to the file that
run.json does not refer to. Therefore, every file named in run.json is always complete, and replacing run.json
is the commit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, unquote

from statek_sim.errors import BadStore, Damaged, Held
from statek_sim.store.codec import canonical, from_bytes
from statek_sim.store.disk import Disk, write_durably
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
from statek_sim.values import JSON


class FileStore:
    """A `Store` in a folder; the arguments after `disk` are passed to `LeaseTerms`.

    run.json lists every row, so commits take longer for runs with more rows. Use a database for jobs with
    many objects.
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
        """Do nothing: no file stays open."""

    # -- leases ------------------------------------------------------------------------------------------------

    def claim(
        self, run: str, *, worker: str, kind: Kind = "jobs", about: Mapping[str, JSON] | None = None
    ) -> Lease:
        """Claim a run, creating it if `about` is given; raises `Held`, `BadStore` and `Damaged`."""
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
        """Claim the unfinished run of this kind that has waited longest for a worker, or return None.

        `worker` is the claiming worker's name, and `besides` are the names of runs to skip. Runs that are
        damaged or locked by their worker are also skipped.
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
        """Extend a lease to its full time from now, in any thread; raises `Fenced` if the run was taken over."""
        folder = self._folder(lease.run)
        with folder.locked():
            folder.put_record(self._held(folder, lease) | {"until": self._terms.until()})

    def release(self, lease: Lease) -> None:
        """Release a run; does nothing if another worker has taken it over."""
        folder = self._folder(lease.run)
        with folder.locked():
            record = folder.record()
            if record is not None and record["fence"] == lease.fence:
                folder.put_record(record | {"worker": "", "until": self._terms.clock()})

    def _held(self, folder: RunFolder, lease: Lease) -> Record:
        """Return run.json's contents; raises `Fenced` if the run no longer belongs to this lease."""
        record = folder.record()
        if record is None:
            raise self._unknown(lease.run, "jobs")
        if record["fence"] != lease.fence:
            raise self._terms.fenced(lease)
        return record

    # -- content -----------------------------------------------------------------------------------------------

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        """Save changes durably and return the lease with their revision; raises `Fenced` if the run was taken over."""
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
                # The run's worker may have committed in the meantime.
                if record == seen:
                    raise
                seen = record

    def load_edited(self, run: str) -> Stored:
        """Return a run with its files' current contents, even if edited; raises `Damaged` if a file is missing."""
        folder = self._folder(run)
        record = folder.record()
        if record is None:
            raise self._unknown(run, "jobs")
        return folder.stored(record, edited=True)

    def runs(self, kind: Kind = "jobs") -> Sequence[Listed]:
        """Return all runs of a kind, sorted by name, including runs with a damaged run.json, whose kind is unknown."""
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
        """Yield every run of a kind with its record, or None for a damaged run, whose kind is unknown."""
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


VERSION: Final = 1
"""This package's run.json version; newer versions are rejected."""

Record = dict[str, Any]
"""The contents of run.json."""

_EVENTS: Final = "events.jsonl"

_BEFORE_A_RUN: Final = frozenset({"lock", ".run.json.new"})
"""Files that a crash during a run's first claim may leave in its folder."""


class RunFolder:
    """The files of one run; `address` is the store's address, for errors."""

    def __init__(self, disk: Disk, run: str, *, address: str) -> None:
        self._disk = disk
        self._run = run
        self._folder = folder_name(run)
        self._where = f"{address}: run {run!r}"

    def make(self) -> None:
        """Create the folder if needed."""
        self._disk.make_folder(self._folder)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock on the run's folder, so that no other process can write to it."""
        return self._disk.locked(f"{self._folder}/lock")

    # -- run.json ----------------------------------------------------------------------------------------------

    def record(self) -> Record | None:
        """Return run.json's contents, or None if there is no run; raises `Damaged`."""
        content = self._disk.read(f"{self._folder}/run.json")
        where = f"{self._where}: run.json"
        if content is None:
            if not _BEFORE_A_RUN.issuperset(self._disk.names(self._folder)):
                raise Damaged(f"{where} was removed; restore the store from a backup")
            return None
        document = from_bytes(content, what=where)
        version = document.get("version") if isinstance(document, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise BadStore(
                f"{where} has version {version}, but this package reads up to {VERSION}; update the package"
            )
        record = document.get("of") if version == VERSION else None
        if not isinstance(record, dict) or not _is_genuine(record, document.get("digest")):
            raise Damaged(f"{where} does not match what was saved; restore the store from a backup")
        if record["run"] != self._run:
            raise Damaged(f"{where} belongs to run {record['run']!r}")
        return record

    def put_record(self, record: Record) -> None:
        """Write run.json durably."""
        document = {"version": VERSION, "of": record, "digest": _digest_of(record)}
        content = json.dumps(document, indent=2).encode("ascii") + b"\n"
        write_durably(self._disk, f"{self._folder}/run.json", content)

    # -- commits -----------------------------------------------------------------------------------------------

    def commit(self, record: Record, changes: Changes) -> None:
        """Save changes durably. `record` is the new run.json, except for the rows and events."""
        before: dict[str, list[str]] = record["rows"]
        rows = {name: file for name, file in before.items() if name not in changes.gone}
        rows |= self._written(before, changes.rows)
        events = self._appended(record["events"], changes.events)
        self.put_record(record | {"rows": rows, "events": events})
        for name, text in changes.notes.items():
            self._put_note(f"{self._folder}/{name}", text.encode("utf-8", "replace"))
        for name, (file, _) in before.items():
            if name not in rows or rows[name][0] != file:
                self._disk.remove(f"{self._folder}/{file}")

    def _written(self, before: Mapping[str, list[str]], rows: Mapping[str, str]) -> dict[str, list[str]]:
        """Write rows to files that run.json does not refer to yet; return the files and digests."""
        found: dict[str, list[str]] = {}
        folders: set[str] = set()
        for name, content in rows.items():
            file = quote(name, safe="/")
            if name in before and before[name][0] == file:
                file += "~"
            path, data = f"{self._folder}/{file}", content.encode("ascii")
            folder = path.rpartition("/")[0]
            if folder not in folders:
                self._disk.make_folder(folder)
                folders.add(folder)
            self._disk.write(path, data)
            self._disk.sync(path)
            found[name] = [file, _digest(data)]
        for folder in sorted(folders):
            self._disk.sync_folder(folder)
        return found

    def _appended(self, log: Mapping[str, Any], events: Sequence[str]) -> dict[str, Any]:
        """Append events to the log; return the log's new event count, length in bytes and digest."""
        if not events:
            return dict(log)
        path = f"{self._folder}/{_EVENTS}"
        data = "".join(f"{event}\n" for event in events).encode("ascii")
        self._disk.append(path, data)
        self._disk.sync(path)
        if log["bytes"] == 0:
            self._disk.sync_folder(self._folder)
        digest = _log_digest(events, log["digest"])
        return {"count": log["count"] + len(events), "bytes": log["bytes"] + len(data), "digest": digest}

    def cut_events(self, record: Record) -> None:
        """Remove events that a process appended but did not commit."""
        path, size = f"{self._folder}/{_EVENTS}", record["events"]["bytes"]
        content = self._disk.read(path) or b""
        if len(content) > size:
            write_durably(self._disk, path, content[:size])

    def _put_note(self, path: str, content: bytes) -> None:
        """Write a human-readable note; it may be lost in a crash."""
        if self._disk.read(path) != content:
            self._disk.make_folder(path.rpartition("/")[0])
            self._disk.write(f"{path}.new", content)
            self._disk.rename(f"{path}.new", path)

    # -- reading -----------------------------------------------------------------------------------------------

    def stored(self, record: Record, *, edited: bool = False) -> Stored:
        """Return the run described in run.json; raises `Damaged`. `edited` allows rows whose digest differs."""
        rows: dict[str, str] = {}
        for name, (file, digest) in record["rows"].items():
            content = self._disk.read(f"{self._folder}/{file}")
            if content is None or (not edited and _digest(content) != digest):
                state = "is gone" if content is None else "does not match what was saved"
                raise Damaged(f"{self._where}: {file} {state}; restore the store from a backup")
            rows[name] = content.decode("utf-8", "replace")
        return Stored(
            run=self._run,
            about=record["about"],
            status=record["status"],
            revision=record["revision"],
            rows=rows,
            events=self._events(record["events"]),
        )

    def _events(self, log: Mapping[str, Any]) -> list[str]:
        content = (self._disk.read(f"{self._folder}/{_EVENTS}") or b"")[: log["bytes"]]
        events = content.decode("ascii", "replace").split("\n")[:-1]
        if len(events) != log["count"] or _log_digest(events, "") != log["digest"]:
            raise Damaged(
                f"{self._where}: {_EVENTS} does not match what was saved; restore the store from a backup"
            )
        return events


def new_record(run: str, kind: Kind, about: Mapping[str, JSON]) -> Record:
    """Return run.json's contents for a new run."""
    record: Record = {"run": run, "kind": kind, "about": dict(about), "status": "running", "revision": 0}
    log = {"count": 0, "bytes": 0, "digest": ""}
    return record | {"fence": 0, "worker": "", "until": 0.0, "rows": {}, "events": log}


def folder_name(run: str) -> str:
    """Return a run's folder name, which is a single path segment and never begins with a dot."""
    quoted = quote(run, safe="")
    return quoted.replace(".", "%2E") if quoted.startswith(".") else quoted


def _log_digest(events: Sequence[str], digest: str) -> str:
    """Return a log's digest after appending events to a log with this `digest`."""
    for event in events:
        digest = _digest(f"{digest}\n{event}".encode("ascii", "replace"))
    return digest


def _digest_of(record: Record) -> str:
    return _digest(canonical(record).encode("ascii"))


def _is_genuine(record: Record, digest: object) -> bool:
    """Return whether a record matches its digest; False for numbers that Python accepts but JSON does not."""
    try:
        return digest == _digest_of(record)
    except ValueError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
