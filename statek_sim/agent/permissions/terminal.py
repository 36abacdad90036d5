"""Asks a person at a terminal without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from typing import TextIO

from statek_sim.agent.approvals import word_of
from statek_sim.agent.effects import PersonSaid, Question
from statek_sim.values import printable

_PIECE = 4096


class TerminalPerson:
    """Asks at a terminal, one question at a time: `AsyncDriver(person=TerminalPerson())`.

    Only `y` or `yes` approves a call; any other line rejects it and is used as the reason. For other questions, the
    typed line is the answer. End of input counts as a refusal. Control characters in a model's text are shown escaped.
    """

    def __init__(self, reads: TextIO | None = None, writes: TextIO | None = None) -> None:
        self._reads = sys.stdin if reads is None else reads
        self._writes = sys.stderr if writes is None else writes
        self._turn: asyncio.Lock | None = None
        self._typed = b""

    async def __call__(self, question: Question) -> PersonSaid:
        """Return the person's reply; the caller cancels this at the question's deadline."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        async with self._turn:
            self._show(question)
            line = await self._line()
        if line is None:
            return PersonSaid("refused", "no person is at the terminal")
        return word_of(question, line)

    def _show(self, question: Question) -> None:
        # Discard input typed before the question was shown.
        if self._reads.isatty():
            termios.tcflush(self._reads.fileno(), termios.TCIFLUSH)
        self._typed = b""
        limit = "" if question.seconds is None else f" (within {question.seconds:g} s)"
        ending = " [y/N] " if question.confirms else " "
        self._writes.write(f"\n{printable(question.text)}{limit}{ending}")
        self._writes.flush()

    async def _line(self) -> str | None:
        """Return the next line without its newline, or None at the end of input."""
        loop, number = asyncio.get_running_loop(), self._reads.fileno()
        while b"\n" not in self._typed:
            ready: asyncio.Future[None] = loop.create_future()
            try:
                loop.add_reader(number, _set, ready)
            except PermissionError:  # Input from a file.
                return None
            try:
                await ready
            finally:
                loop.remove_reader(number)
            piece = os.read(number, _PIECE)
            if not piece:
                return None
            self._typed += piece
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
