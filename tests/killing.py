"""Work that is killed for real, with SIGKILL, before and after every call that may change a file."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from types import BuiltinFunctionType, FrameType
from typing import Any, Final

_CALLS: Final = frozenset(
    {
        *("open", "write", "flush", "fsync", "close", "__exit__", "truncate"),
        *("rename", "replace", "link", "unlink", "remove", "chmod", "mkdir", "utime"),
    }
)
"""Functions written in C that open, change, move and remove files, or let go of what is buffered."""
_MOST: Final = 2_000
"""Moments of one piece of work: more of them would be a piece of work that never ends."""


def killed_everywhere(
    work: Callable[[], object], before: Callable[[], object], *, every: int = 1
) -> Iterator[int]:
    """Yield the number of each moment at which a process was killed that did `work`, once it is dead.

    `before` puts everything as it was, each time. The last process is not killed, and nothing is yielded for it. With
    `every` a process is killed only at every so manieth moment.
    """
    for moment in count(step=every):
        before()
        assert moment < _MOST
        process = os.fork()
        if not process:
            _do(work, moment)
        _, status = os.waitpid(process, 0)
        if not os.WIFSIGNALED(status):
            assert os.waitstatus_to_exitcode(status) == 0, "the work failed by itself"
            assert moment, "the work changes no file"
            return
        assert os.WTERMSIG(status) == signal.SIGKILL
        yield moment


def _do(work: Callable[[], object], moment: int) -> None:
    """Do the work in this process, which ends: at the moment, or with its code."""
    left = moment

    def look(frame: FrameType, event: str, called: Any) -> None:
        nonlocal left
        if (
            event in ("c_call", "c_return")
            and isinstance(called, BuiltinFunctionType)
            and called.__name__ in _CALLS
        ):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    code = 1
    try:
        sys.setprofile(look)
        work()
        code = 0
    finally:
        sys.setprofile(None)
        os._exit(code)
