"""The files of sessions in a folder: what is read of them is what was written, or `Damaged`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final
from urllib.parse import quote, unquote

from statek_sim.agent.checkpoints.codec import canonical, from_bytes, from_text
from statek_sim.agent.checkpoints.disk import Disk, write_durably
from statek_sim.agent.checkpoints.progress_text import progress_text
from statek_sim.agent.checkpoints.records import Entry
from statek_sim.agent.checkpoints.seal import Sealer
from statek_sim.agent.checkpoints.sealed import Sheet, check_sheet, receipt_from, receipt_json, receipt_seal
from statek_sim.agent.effects import Receipt
from statek_sim.errors import Damaged

_NAME: Final = re.compile(r"cp-(\d{3,})\.json")


class SessionFiles:
    """What `FileStore` keeps, file by file; a record is what a session.json says."""

    def __init__(self, disk: Disk, sealer: Sealer) -> None:
        self._disk = disk
        self._sealer = sealer

    def make(self, session: str) -> None:
        """Make the folders of a session that are not there yet."""
        for name in ("", "/checkpoints", "/receipts", "/results"):
            self._disk.make_folder(_folder(session) + name)

    def locked(self, session: str) -> AbstractContextManager[None]:
        """Keep all others from writing a session."""
        return self._disk.locked(f"{_folder(session)}/lock")

    # -- session.json ------------------------------------------------------------------------------------------

    def record(self, session: str) -> dict[str, Any] | None:
        """Return what session.json says, None where there is none; raises `Damaged`."""
        content = self._disk.read(f"{_folder(session)}/session.json")
        if content is None:
            return None
        what = f"session {session!r}: session.json"
        document = from_bytes(content, what=what)
        if (
            not isinstance(document, dict)
            or not isinstance(document.get("of"), dict)
            or "seal" not in document
        ):
            raise Damaged(f"{what} is none of ours")
        self._sealer.check(document["of"], str(document["seal"]), what=what)
        record: dict[str, Any] = document["of"]
        if record["session"] != session:
            raise Damaged(f"{what} is of session {record['session']!r}")
        return record

    def put_record(self, session: str, record: dict[str, Any]) -> None:
        """Make durable what session.json says."""
        content = json.dumps({"of": record, "seal": self._sealer.seal(record)}, indent=2).encode("ascii")
        write_durably(self._disk, f"{_folder(session)}/session.json", content)

    def records(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Yield every session's name with what its session.json says; None for one that is damaged.

        One that cannot be read keeps nobody from the others: who opens it is told what is wrong with it.
        """
        for folder in self._disk.names(""):
            session = unquote(folder)
            try:
                record = self.record(session)
            except Damaged:
                yield session, None
            else:
                if record is not None:
                    yield session, record

    def knowing_newest(self, session: str, record: dict[str, Any]) -> dict[str, Any]:
        """Return what a session knows with the checkpoint that it does not know yet: its process died before.

        Who writes makes this durable first, so that there is never more than one such checkpoint.
        """
        ahead = self.sheet(session, record["head"] + 1)
        if ahead is None or ahead.previous != record["seal"]:
            return record
        check_sheet(session, ahead, self._sealer)
        return record | {"head": ahead.number, "seal": ahead.seal, "status": ahead.metadata["status"]}

    # -- checkpoints -------------------------------------------------------------------------------------------

    def numbers(self, session: str) -> list[int]:
        """Return the numbers of checkpoint files, in the order of numbers: cp-10000 comes after cp-2000."""
        names = self._disk.names(f"{_folder(session)}/checkpoints")
        found = [match[1] for name in names if (match := _NAME.fullmatch(name))]
        return sorted(int(digits) for digits in found)

    def sheet(self, session: str, number: int) -> Sheet | None:
        """Return a checkpoint as it stands in its file, None where there is none; raises `Damaged`."""
        content = self._disk.read(_sheet_path(session, number))
        if content is None:
            return None
        what = f"session {session!r}, checkpoint {number}"
        document = from_text(content.decode("utf-8", "replace"), what=what)
        try:
            return Sheet(
                number=number,
                metadata=dict(document["metadata"]),
                state=canonical(document["state"]),
                seal=str(document["seal"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(f"{what} is no checkpoint of ours: {type(error).__name__}: {error}") from None

    def put_sheet(self, session: str, sheet: Sheet) -> None:
        """Make a checkpoint durable."""
        document = {"metadata": sheet.metadata, "state": json.loads(sheet.state), "seal": sheet.seal}
        content = json.dumps(document, indent=2).encode("ascii") + b"\n"
        write_durably(self._disk, _sheet_path(session, sheet.number), content)

    def remove(self, session: str, number: int) -> None:
        """Remove a checkpoint, and what came after it."""
        self._disk.remove(_sheet_path(session, number))
        self._disk.remove(_receipts_path(session, number))

    # -- receipts ----------------------------------------------------------------------------------------------

    def receipts(self, session: str, number: int, seal: str) -> tuple[list[tuple[bytes, str, Receipt]], bool]:
        """Return the receipts after a checkpoint as lines, seals and values, and whether the file has nothing else.

        A last line that is not whole was never acknowledged. One before it that is not what was written is `Damaged`.
        """
        lines = (self._disk.read(_receipts_path(session, number)) or b"").splitlines(keepends=True)
        found: list[tuple[bytes, str, Receipt]] = []
        for at, line in enumerate(lines):
            what = f"session {session!r}, receipt {at + 1} after checkpoint {number}"
            try:
                noted = from_text(line.decode("ascii", "replace"), what=what)
                if (
                    not line.endswith(b"\n")
                    or not isinstance(noted, dict)
                    or set(noted) != {"receipt", "seal"}
                ):
                    raise Damaged(f"{what} is not whole")
                content: Any = {"receipt": noted["receipt"], "previous": seal}
                self._sealer.check(content, str(noted["seal"]), what=what)
            except Damaged:
                if at == len(lines) - 1 and not line.endswith(b"\n"):
                    return found, False
                raise
            seal = str(noted["seal"])
            found.append((line, seal, receipt_from(noted["receipt"])))
        return found, True

    def add_receipt(self, session: str, number: int, seal: str, receipt: Receipt) -> None:
        """Make a receipt durable that came after a checkpoint, whose seal is given."""
        path = _receipts_path(session, number)
        known, whole = self.receipts(session, number, seal)
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
            self._disk.sync_folder(f"{_folder(session)}/receipts")

    # -- what only people read ---------------------------------------------------------------------------------

    def tell_people(self, session: str, number: int, entry: Entry) -> None:
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


def _folder(session: str) -> str:
    """Return the folder of a session; no name leaves the store's own, and none begins with a dot."""
    return quote(session, safe="").replace(".", "%2E") if session.startswith(".") else quote(session, safe="")


def _sheet_path(session: str, number: int) -> str:
    return f"{_folder(session)}/checkpoints/cp-{number:04}.json"


def _receipts_path(session: str, number: int) -> str:
    return f"{_folder(session)}/receipts/cp-{number:04}.jsonl"
