"""JSON lines between this package and the interpreter that has `statek`: one message, one answer."""

from __future__ import annotations

import json
import os
from typing import BinaryIO

from statek_sim.values import JSON

Message = dict[str, JSON]


class Line:
    """One end of the connection. What others print to standard output never gets in between."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink

    @classmethod
    def of_this_process(cls) -> Line:
        """Take standard input and output over; from now on prints go to standard error."""
        source, sink = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)
        return cls(os.fdopen(source, "rb", buffering=0), os.fdopen(sink, "wb", buffering=0))

    def send(self, message: Message) -> None:
        """Send one message."""
        line = json.dumps(message).encode() + b"\n"
        while line:
            line = line[self._sink.write(line) :]

    def receive(self) -> Message | None:
        """Return the next message, None when the other side is gone."""
        line = self._source.readline()
        if not line.endswith(b"\n"):
            return None
        message = json.loads(line)
        if not isinstance(message, dict):
            raise TypeError(f"expected a message, got {type(message).__name__}")
        return message

    def ask(self, message: Message) -> Message:
        """Send a message and return its answer; a silent other side is an EOFError."""
        self.send(message)
        answer = self.receive()
        if answer is None:
            raise EOFError("the other side closed the connection")
        return answer
