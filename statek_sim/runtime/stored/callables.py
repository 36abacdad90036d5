"""Functions and classes in dbzero's collections.

The store keeps where they can be imported from, and imports them whenever they are read, with what the innermost frame
has for it (dbzero 0.7.0, by running it). So a line of agent code that reads one, by a subscript or in a loop, is
refused the import of its module, while a function that the line calls is not.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, Final
from weakref import WeakSet

from statek_sim.errors import SandboxViolation
from statek_sim.sandbox import compile as compiling
from statek_sim.sandbox.helpers import CALLING

_HERE: Final = str(Path(__file__).parent)
_SANDBOX: Final = str(Path(compiling.__file__).parent)
_COVERED: Final = "statek_sim.sandbox."
"""Where functions of the modules are that agent code may import."""
_OWN: Final = "statek_sim.runtime."
"""Where functions are that are STATEK's own on the real side."""

_CALLING: Final = "statek_sim.runtime.tools.future_calls"
_THERE: Final = "statek.executors.utils"
"""Where calls of agent code come from, here and on the real side."""

INJECTED: Final[WeakSet[FunctionType]] = WeakSet()
"""Functions as agent code sees them: made around a tool for its workspace, under the tool's name. No mark on the
function itself: agents see the attributes of a tool they print."""


def imported(function: FunctionType) -> FunctionType:
    """Return the function that the store imports where this one was put in: of a tool not what agent code has of it."""
    if function in INJECTED:
        found: FunctionType = function.__wrapped__  # type: ignore[attr-defined]  # of functools.wraps
        return found
    return function


def loaded(value: type) -> type:
    """Return the class that dbzero finds where it imports a kept one from.

    A class that agent code defines, where it may, has the module `builtins`, as all have whose code says none: what is
    found there is another one of its name, or nothing, which is dbzero's RuntimeError.
    """
    if value.__module__ == _CALLING:
        # Made by a call of `type`, which asks who calls it.
        raise RuntimeError(
            f"Failed to unload CALLABLE: module {_THERE!r} has no attribute {value.__qualname__!r}\n"
        )
    if value.__module__ != "builtins":
        return value
    found: Any = builtins
    try:
        for name in value.__qualname__.split("."):
            found = getattr(found, name)
    except AttributeError as missing:
        raise RuntimeError(f"Failed to unload CALLABLE: {missing}\n") from None
    kind: type = found
    return kind


def load_all(names: Mapping[str, object]) -> None:
    """Raise dbzero's error for a variable that cannot be read: STATEK reads all of them when a step begins."""
    for value in names.values():
        if isinstance(value, type):
            loaded(value)


def read(value: Any) -> Any:
    """Return a value that is read out of a collection; raises what dbzero raises where it cannot import it."""
    if isinstance(value, (FunctionType, type)):
        _import(value)
    return loaded(value) if type(value) is type else value


def read_by(frame: FrameType, value: FunctionType | type) -> None:
    """Raise what dbzero raises when code of `frame` reads an attribute of a stored object that it cannot import."""
    if frame.f_code.co_filename == compiling.FILENAME:
        _import_for(frame, value)


def _import(value: FunctionType | type) -> None:
    frame = _reader()
    if frame is not None:
        _import_for(frame, value)


def _import_for(frame: FrameType, value: FunctionType | type) -> None:
    importing = frame.f_builtins["__import__"]
    if importing is builtins.__import__:
        return
    module = value.__module__
    if module.startswith(_COVERED):
        return
    try:
        importing("statek" if module.startswith(_OWN) else module)
    except SandboxViolation as refused:
        raise RuntimeError(f"Failed to unload CALLABLE: {refused}\n") from None


def _reader() -> FrameType | None:
    """Return the frame of agent code that reads, None where something that it called does, or nobody's code."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == compiling.FILENAME:
            return frame
        called = frame.f_code.co_name == CALLING
        if called or not file.startswith((_HERE, _SANDBOX)):
            return None
        frame = frame.f_back
    return None
