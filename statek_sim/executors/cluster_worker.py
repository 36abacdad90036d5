"""What a worker on another machine does: a batch of work, one piece after the other, with the same code as here."""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from statek_sim.executors.worker import answer

Task = tuple[int, tuple[Any, ...]]
"""The number of a piece of work, and its arguments."""

_ONE_AT_A_TIME: Final = threading.Lock()
"""Runs change what a whole process has, such as the depth of its stack; a worker may have several threads."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a batch: the number of each piece with its pickled result, and the seconds that all of it took."""

    came: tuple[tuple[int, bytes], ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class OtherCode:
    """A worker did nothing, since its Python or its statek_sim is another one and its results might be."""

    worker: str


@cache
def code_here() -> str:
    """Return the Python and the digest of the sources of statek_sim, as far as results depend on them."""
    digest = hashlib.blake2b(digest_size=8)
    for name, text in sorted(_sources(files("statek_sim"), "")):
        digest.update(name.encode() + b"\0" + text + b"\0")
    return f"Python {sys.version_info[0]}.{sys.version_info[1]}, statek_sim {digest.hexdigest()}"


def _sources(folder: Traversable, name: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for inner in folder.iterdir():
        path = f"{name}/{inner.name}"
        if inner.is_dir():
            found += _sources(inner, path)
        elif inner.name.endswith(".py"):
            found.append((path, inner.read_bytes()))
    return found


def loaded(blob: bytes) -> Any:
    """Return the function that was pickled: a task of its own, so that it travels once."""
    # What the client wrote.
    return pickle.loads(blob)


def do_batch(function: Callable[..., Any], tasks: Sequence[Task], code: str) -> Done | OtherCode:
    """Do pieces of work where this worker has the client's `code`."""
    if code_here() != code:
        return OtherCode(code_here())
    with _ONE_AT_A_TIME:
        started = time.perf_counter()
        came = tuple((number, answer(function, arguments)) for number, arguments in tasks)
        return Done(came, time.perf_counter() - started)
