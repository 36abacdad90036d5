"""Waiting for a person without a process that waits: a ticket is stored, told of, and answered once, from anywhere."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import get_ident
from typing import Any, Final, Literal, Protocol, TextIO, get_args

from statek_sim.agent.escalation.climbing import Climb, climb_json, climb_of
from statek_sim.errors import BadInput
from statek_sim.input_files import why_another
from statek_sim.values import JSON

_TOKEN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A question to a person, with everything that is needed to go on when it is answered.

    `asked` and `deadline` are seconds of whatever clock the caller has (None: no deadline); `level` names the person.
    """

    token: str
    level: str
    question: str
    asked: float
    deadline: float | None
    climb: Climb


Said = Literal["answered", "refused", "expired"]
"""What a person may have said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a person said: `answered` with a text, `refused` with a reason, or nothing (`expired`); at which second."""

    kind: Said
    text: str
    at: float

    def __post_init__(self) -> None:
        if self.kind not in get_args(Said):
            raise BadInput(
                f"a person said something of the kind {self.kind!r}; expected {', '.join(get_args(Said))}"
            )


class Tickets(Protocol):
    """Where tickets are kept. A token is answered once: the first word stays, whoever comes second."""

    def save(self, ticket: Ticket) -> None:
        """Make a new ticket durable before anybody is told of it."""

    def load(self, token: str) -> Ticket | None:
        """Return a ticket, None where there is no such token."""

    def settle(self, token: str, word: Word) -> Word:
        """Keep the first word said of a ticket; return the one that is kept."""


Notify = Callable[[Ticket], object]
"""Tells somebody of a ticket; awaited where it is a coroutine function. What it raises hides no ticket."""


class KeptTickets:
    """Tickets in memory, for tests and for one process."""

    def __init__(self) -> None:
        self._tickets: dict[str, Ticket] = {}
        self._words: dict[str, Word] = {}

    def save(self, ticket: Ticket) -> None:
        """Keep a new ticket."""
        _new(ticket, ticket.token in self._tickets)
        self._tickets[ticket.token] = ticket

    def load(self, token: str) -> Ticket | None:
        """Return a ticket."""
        return self._tickets.get(token)

    def settle(self, token: str, word: Word) -> Word:
        """Keep the first word."""
        return self._words.setdefault(token, word)


class FileTickets:
    """Tickets as files in a folder, one to read by people and programs, one more when it is answered.

    Each is written whole beside its place, synced, and linked into it: of two that answer at once, processes or
    threads, one wins.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, ticket: Ticket) -> None:
        """Write a new ticket."""
        document: dict[str, JSON] = {**asdict(ticket), "climb": climb_json(ticket.climb)}
        _new(ticket, not self._put(self._place(ticket.token, "ticket"), document))

    def load(self, token: str) -> Ticket | None:
        """Return a ticket; `BadInput` with the file's name for one that cannot be read."""
        path = self._place(token, "ticket")
        found = self._get(path)
        if found is None:
            return None
        try:
            return Ticket(**{**found, "climb": climb_of(found["climb"])})
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"{path}: is no ticket: {why_another(error)}") from None

    def settle(self, token: str, word: Word) -> Word:
        """Write the first word."""
        path = self._place(token, "word")
        self._put(path, asdict(word))
        kept = self._get(path)
        if kept is None:
            raise BadInput(f"{path}: is gone; expected what a person said to stay")
        try:
            return Word(**kept)
        except TypeError as error:
            raise BadInput(f"{path}: is no word of a person: {why_another(error)}") from None

    def _place(self, token: str, what: str) -> Path:
        if not _TOKEN.fullmatch(token):
            raise BadInput(f"token {token!r}: expected letters, digits, `_`, `.` and `-`, 100 at most")
        return self._folder / f"{token}.{what}.json"

    def _put(self, path: Path, document: Mapping[str, JSON]) -> bool:
        """Write a file that is not there yet; return whether it was not."""
        draft = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return True

    @staticmethod
    def _get(path: Path) -> dict[str, Any] | None:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise BadInput(f"{path}: is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise BadInput(f"{path}: expected an object, got {type(found).__name__}")
        return found


def _new(ticket: Ticket, known: bool) -> None:
    if known:
        raise taken(ticket.token)


def taken(token: str) -> BadInput:
    """Return what is wrong with a token that a ticket has already."""
    return BadInput(f"token {token!r} is taken; expected one that no other ticket has")


def asked_for(tickets: Tickets, token: str) -> Ticket:
    """Return a ticket; `BadInput` where there is none."""
    ticket = tickets.load(token)
    if ticket is None:
        raise BadInput(f"nobody was asked with token {token!r}; expected one of a ticket that was saved")
    return ticket


# -- telling people ---------------------------------------------------------------------------------------------


def on_terminal(stream: TextIO | None = None) -> Notify:
    """Return what prints a ticket; None: on standard error, as it is then."""

    def notify(ticket: Ticket) -> None:
        until = "" if ticket.deadline is None else f" (until {ticket.deadline:g} s)"
        print(
            f"[{ticket.token}] {ticket.level} is asked{until}: {ticket.question}", file=stream or sys.stderr
        )

    return notify


def by_webhook(address: str, post: Callable[[str, bytes], object]) -> Notify:
    """Return what posts a ticket as JSON: `post` is given the address and the body, and raises where it fails.

    It may be a coroutine function, which is awaited.
    """

    def notify(ticket: Ticket) -> object:
        document = {
            "token": ticket.token,
            "level": ticket.level,
            "question": ticket.question,
            "deadline": ticket.deadline,
            "attempts": climb_json(ticket.climb)["attempts"],
        }
        return post(address, json.dumps(document).encode())

    return notify
