"""Sessions as files, laid out as 002 §4 does: `cat progress.txt` says how far a session is.

    SESSION/session.json            whose it is, what it is about, which checkpoint is the newest
    SESSION/progress.txt            for people; derived
    SESSION/checkpoints/cp-0001.json
    SESSION/receipts/cp-0001.jsonl  what came of calls and questions after that checkpoint
    SESSION/results/step-01-output.md   outputs of steps; derived

Every file but the derived ones is put in its place at once and survives a loss of power.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

from statek_sim.agent.checkpoints.codec import canonical, from_text
from statek_sim.agent.checkpoints.disk import Disk, write_durably
from statek_sim.agent.checkpoints.progress_text import progress_text
from statek_sim.agent.checkpoints.records import LEASE, Entry, Kept, Lease, Status
from statek_sim.agent.checkpoints.refusals import fenced, held, other_plan
from statek_sim.agent.checkpoints.seal import Anchor, Sealer
from statek_sim.agent.checkpoints.sealed import (
    Sheet,
    check_chain,
    check_sheet,
    checkpoint_of,
    receipt_from,
    receipt_json,
    receipt_seal,
    sheet_of,
)
from statek_sim.agent.checkpoints.store import check_keep, check_name
from statek_sim.agent.effects import Receipt
from statek_sim.errors import Damaged, Fenced, Held, OtherPlan

_NAME: Final = re.compile(r"cp-(\d{3,})\.json")


class FileStore:
    """A `CheckpointStore` in a folder. `clock` returns seconds by which leases are measured, alike for all workers.

    `key` and `anchor` are those of `seal`; `lease` are the seconds of a lease.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        clock: Callable[[], float],
        key: bytes | None = None,
        anchor: Anchor | None = None,
        lease: float = LEASE,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._sealer = Sealer(key)
        self._anchor = anchor
        self._lease = lease

    # -- whose a session is ------------------------------------------------------------------------------------

    def claim(self, session: str, *, worker: str, plan: str, kind: str = "agent") -> Lease:
        """Take a session; raises `Held` and `OtherPlan`."""
        check_name(session)
        folder = _folder(session)
        for name in ("", "/checkpoints", "/receipts", "/results"):
            self._disk.make_folder(folder + name)
        with self._disk.locked(f"{folder}/lock"):
            told = self._session(session)
            if told is None:
                told = {
                    "kind": kind,
                    "plan": plan,
                    "status": "running",
                    "fence": 0,
                    "worker": "",
                    "until": 0.0,
                }
                told |= {"session": session, "first": 1, "head": 0, "seal": "", "began": self._clock()}
            elif told["plan"] != plan:
                raise OtherPlan(other_plan(session, told["plan"], plan))
            return self._take(session, told, worker)

    def _take(self, session: str, told: dict[str, Any], worker: str) -> Lease:
        left = told["until"] - self._clock()
        if told["worker"] not in ("", worker) and left > 0:
            raise Held(held(session, told["worker"], left))
        told = self._knowing_newest(session, told)
        told |= {"fence": told["fence"] + 1, "worker": worker, "until": self._clock() + self._lease}
        self._put_session(session, told)
        return Lease(session=session, fence=told["fence"], worker=worker, seconds=self._lease)

    def claim_next(self, *, worker: str) -> Lease | None:
        """Take the session that waits longest of those that are running and nobody's, None when there is none."""
        waiting = [told for told in self._all_sessions() if self._is_free(told)]
        for told in sorted(waiting, key=lambda one: (one["until"], one["session"])):
            session = str(told["session"])
            with self._disk.locked(f"{_folder(session)}/lock"):
                now = self._session(session)
                if now is not None and self._is_free(now):
                    return self._take(session, now, worker)
        return None

    def _is_free(self, told: dict[str, Any]) -> bool:
        nobodys = told["worker"] == "" or told["until"] <= self._clock()
        return bool(told["status"] == "running" and nobodys)

    def renew(self, lease: Lease) -> None:
        """Begin a lease anew, for a worker that has nothing to save yet; raises `Fenced`."""
        with self._disk.locked(f"{_folder(lease.session)}/lock"):
            told = self._held(lease)
            self._put_session(lease.session, told | {"until": self._clock() + self._lease})

    def release(self, lease: Lease) -> None:
        """Give a session back; nothing happens to one that was taken over."""
        with self._disk.locked(f"{_folder(lease.session)}/lock"):
            told = self._session(lease.session)
            if told is not None and told["fence"] == lease.fence:
                self._put_session(lease.session, told | {"worker": "", "until": self._clock()})

    # -- saving ------------------------------------------------------------------------------------------------

    def save(self, lease: Lease, entry: Entry) -> int:
        """Make an entry durable and return its number; raises `Fenced`."""
        session, folder = lease.session, _folder(lease.session)
        with self._disk.locked(f"{folder}/lock"):
            told = self._held(lease)
            sheet = sheet_of(
                session,
                told["head"] + 1,
                entry,
                plan=told["plan"],
                fence=lease.fence,
                previous=told["seal"],
                sealer=self._sealer,
            )
            write_durably(self._disk, _path(session, sheet.number), _sheet_bytes(sheet))
            told |= {"head": sheet.number, "seal": sheet.seal, "status": entry.status}
            self._put_session(session, told | {"until": self._clock() + self._lease})
            self._tell_people(session, sheet.number, entry)
        if self._anchor is not None:
            self._anchor.write(session, sheet.number, sheet.seal)
        return sheet.number

    def _knowing_newest(self, session: str, told: dict[str, Any]) -> dict[str, Any]:
        """Return what a session knows with the checkpoint that it does not know yet: its process died before.

        Who writes makes this durable first, so that there is never more than one such checkpoint.
        """
        ahead = self._sheet(session, told["head"] + 1)
        if ahead is None or ahead.previous != told["seal"]:
            return told
        check_sheet(session, ahead, self._sealer)
        return told | {"head": ahead.number, "seal": ahead.seal, "status": ahead.metadata["status"]}

    def _tell_people(self, session: str, number: int, entry: Entry) -> None:
        """Write what only people read; nothing is lost when it is."""
        folder = _folder(session)
        there = set(self._disk.names(f"{folder}/results"))
        for at, (name, text) in enumerate(entry.results, start=1):
            file = f"step-{at:02}-output.md"
            if file not in there:
                self._put(f"{folder}/results/{file}", f"# {name}\n\n{text}\n".encode("utf-8", "replace"))
        self._put(f"{folder}/progress.txt", progress_text(session, number, entry).encode("utf-8", "replace"))

    def _put(self, path: str, content: bytes) -> None:
        making = f"{path}.new"
        self._disk.write(making, content)
        self._disk.rename(making, path)

    def note(self, lease: Lease, receipt: Receipt) -> None:
        """Make a receipt durable that came after the newest checkpoint; raises `Fenced`."""
        session, folder = lease.session, _folder(lease.session)
        with self._disk.locked(f"{folder}/lock"):
            told = self._held(lease)
            number, seal = told["head"], told["seal"]
            path = f"{folder}/receipts/cp-{number:04}.jsonl"
            known, whole = self._receipts(session, number, seal)
            new = self._disk.read(path) is None
            if not new and not whole:
                # What a crash left of a line would spoil the next one.
                write_durably(self._disk, path, b"".join(line for line, _, _ in known))
            before = known[-1][1] if known else seal
            content = receipt_json(receipt)
            line = canonical({"receipt": dict(content), "seal": receipt_seal(content, before, self._sealer)})
            self._disk.append(path, line.encode("ascii") + b"\n")
            self._disk.sync(path)
            if new:
                self._disk.sync_folder(f"{folder}/receipts")

    def _receipts(
        self, session: str, number: int, seal: str
    ) -> tuple[list[tuple[bytes, str, Receipt]], bool]:
        """Return the receipts after a checkpoint as lines, seals and values, and whether the file has nothing else.

        A last line that is not whole was never acknowledged. One before it that is not what was written is `Damaged`.
        """
        lines = (self._disk.read(f"{_folder(session)}/receipts/cp-{number:04}.jsonl") or b"").splitlines(
            keepends=True
        )
        found: list[tuple[bytes, str, Receipt]] = []
        for at, line in enumerate(lines):
            what = f"session {session!r}, receipt {at + 1} after checkpoint {number}"
            try:
                told = from_text(line.decode("ascii", "replace"), what=what)
                if not line.endswith(b"\n") or not isinstance(told, dict) or set(told) != {"receipt", "seal"}:
                    raise Damaged(f"{what} is not whole")
                content: Any = {"receipt": told["receipt"], "previous": seal}
                self._sealer.check(content, str(told["seal"]), what=what)
            except Damaged:
                if at == len(lines) - 1 and not line.endswith(b"\n"):
                    return found, False
                raise
            seal = str(told["seal"])
            found.append((line, seal, receipt_from(told["receipt"])))
        return found, True

    def prune(self, lease: Lease, keep: int) -> int:
        """Remove all but the newest `keep` (1 or more) checkpoints; return how many."""
        check_keep(keep)
        session, folder = lease.session, _folder(lease.session)
        with self._disk.locked(f"{folder}/lock"):
            told = self._held(lease)
            first = max(told["first"], told["head"] - keep + 1)
            self._put_session(session, told | {"first": first})
            gone = [number for number in self._files(session) if number < first]
            for number in gone:
                self._disk.remove(_path(session, number))
                self._disk.remove(f"{folder}/receipts/cp-{number:04}.jsonl")
        return len(gone)

    # -- reading -----------------------------------------------------------------------------------------------

    def latest(self, session: str) -> Kept | None:
        """Return a session's newest checkpoint, None where there is none yet; raises `Damaged`."""
        check_name(session)
        told = self._session(session)
        if told is None:
            if self._files(session):
                raise Damaged(f"session {session!r} has checkpoints and no session.json: it was removed")
            check_chain(session, (), self._sealer, self._anchor, first=1, head=0, seal="")
            return None
        told = self._knowing_newest(session, told)
        head, seal = told["head"], told["seal"]
        numbers = [number for number in self._files(session) if number >= told["first"]]
        sheets = [sheet for number in numbers if (sheet := self._sheet(session, number)) is not None]
        check_chain(session, sheets, self._sealer, self._anchor, first=told["first"], head=head, seal=seal)
        if not sheets:
            return None
        known, _ = self._receipts(session, head, seal)
        return Kept(checkpoint_of(session, sheets[-1]), tuple(receipt for _, _, receipt in known))

    def numbers(self, session: str) -> Sequence[int]:
        """Return the numbers of a session's checkpoints, the oldest first."""
        told = self._session(session)
        return [] if told is None else [number for number in self._files(session) if number >= told["first"]]

    def sessions(self, status: Status | None = None) -> Sequence[str]:
        """Return the names of sessions, of one status if it is given, sorted."""
        every = self._all_sessions()
        return sorted(str(told["session"]) for told in every if status in (None, told["status"]))

    def close(self) -> None:
        """Do nothing: no file is held open."""

    def _all_sessions(self) -> Iterator[dict[str, Any]]:
        for folder in self._disk.names(""):
            told = self._session(unquote(folder))
            if told is not None:
                yield told

    def _files(self, session: str) -> list[int]:
        """Return the numbers of checkpoint files, in the order of numbers: cp-10000 comes after cp-2000."""
        names = self._disk.names(f"{_folder(session)}/checkpoints")
        found = [match[1] for name in names if (match := _NAME.fullmatch(name))]
        return sorted(int(digits) for digits in found)

    def _sheet(self, session: str, number: int) -> Sheet | None:
        content = self._disk.read(_path(session, number))
        if content is None:
            return None
        what = f"session {session!r}, checkpoint {number}"
        told = from_text(content.decode("utf-8", "replace"), what=what)
        try:
            return Sheet(
                number=number,
                metadata=dict(told["metadata"]),
                state=canonical(told["state"]),
                seal=str(told["seal"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(f"{what} is no checkpoint of ours: {type(error).__name__}: {error}") from None

    # -- session.json ------------------------------------------------------------------------------------------

    def _session(self, session: str) -> dict[str, Any] | None:
        content = self._disk.read(f"{_folder(session)}/session.json")
        if content is None:
            return None
        what = f"session {session!r}: session.json"
        told = from_text(content.decode("utf-8", "replace"), what=what)
        if not isinstance(told, dict) or not isinstance(told.get("of"), dict) or "seal" not in told:
            raise Damaged(f"{what} is none of ours")
        self._sealer.check(told["of"], str(told["seal"]), what=what)
        of: dict[str, Any] = told["of"]
        if of["session"] != session:
            raise Damaged(f"{what} is of session {of['session']!r}")
        return of

    def _put_session(self, session: str, told: dict[str, Any]) -> None:
        content = json.dumps({"of": told, "seal": self._sealer.seal(told)}, indent=2).encode("ascii")
        write_durably(self._disk, f"{_folder(session)}/session.json", content)

    def _held(self, lease: Lease) -> dict[str, Any]:
        """Return what session.json says of a session that is still this lease's; it knows the newest checkpoint."""
        told = self._session(lease.session)
        if told is None:
            raise Damaged(f"session {lease.session!r} is gone: its session.json was removed")
        if told["fence"] != lease.fence:
            raise Fenced(fenced(lease, told["worker"]))
        known = self._knowing_newest(lease.session, told)
        if known != told:
            self._put_session(lease.session, known)
        return known


def _folder(session: str) -> str:
    """Return the folder of a session; no name leaves the store's own, and none begins with a dot."""
    return quote(session, safe="").replace(".", "%2E") if session.startswith(".") else quote(session, safe="")


def _path(session: str, number: int) -> str:
    return f"{_folder(session)}/checkpoints/cp-{number:04}.json"


def _sheet_bytes(sheet: Sheet) -> bytes:
    told = {"metadata": sheet.metadata, "state": json.loads(sheet.state), "seal": sheet.seal}
    return json.dumps(told, indent=2).encode("ascii") + b"\n"
