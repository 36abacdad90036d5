"""What a text names for a tool that wants something else than a text (behaviour 6.6).

STATEK looks for a variable of that name in 40 frames of Python's stack, the inner ones first. So the variables of
functions count, some of STATEK's own hide those of agent code, and code that runs while another job waits for an async
tool, on top of its call, sees that job's variables too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any, Final, TypeVar

from statek_sim.runtime.state.context import Execution
from statek_sim.runtime.tools.future_calls import smart_call
from statek_sim.sandbox.compile import FILENAME

F = TypeVar("F", bound=Callable[..., Any])

NOTHING: Final = object()
"""No variable has the name."""

_REACH: Final = 40
"""Frames that STATEK looks at. It counts those of its own code, too: the numbers below stand for them.

They are those of Python 3.11, whatever runs this, so that a trace is the same everywhere. Newer ones take a frame more
for a step of asyncio's: there STATEK sees one call less far.
"""
_FINDING: Final = 2
"""Frames of the search itself, inside of the tool's."""
_TOOL: Final = 2
"""Frames of a tool."""
_CODE, _CALL = 6, 4
"""Frames beneath agent code, or beneath a tool that the model requested, down to the worker that runs the job."""

_Names = tuple[Mapping[str, object], bool]
"""Variables, and whether they are those of a job and not of a function."""

_SMART_CALL: Final = smart_call.__code__
"""Between agent code and what it calls."""

_CALLS: Final[set[CodeType]] = set()


def runs_a_call(function: F) -> F:
    """Mark the function that runs a call which the model requested: its `execution` holds the names."""
    _CALLS.add(function.__code__)
    return function


def named(text: str, parameter: str, execution: Execution, *, changed: bool) -> object:
    """Return the variable that `text` names, or NOTHING.

    `parameter` takes the text, and `changed` says whether another argument has named something before it.
    """
    wait = execution.job.host.profile.frames_of_a_wait
    if not wait:
        return execution.namespace.get(text, NOTHING)
    inside: Mapping[str, object] = {"name": parameter, "value": text, "parsed": None, "changed": changed}
    if text in inside:
        return inside[text]
    seen = False
    for names, is_base in _around(wait):
        if text in names:
            return names[text]
        seen = seen or is_base
    return NOTHING if seen else execution.namespace.get(text, NOTHING)


def _around(wait: int) -> Iterator[_Names]:
    """Yield the variables of the calls that STATEK would reach, the inner ones first."""
    at, frame = _FINDING + _TOOL, sys._getframe()
    inner: CodeType | None = None
    while at - _TOOL < _REACH and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
        if code in _CALLS:
            # The tool itself is told of them.
            yield frame.f_locals["execution"].namespace, True
            at += _CALL + wait + _TOOL
        elif code is _SMART_CALL:
            at += 1
        elif code.co_filename != FILENAME:
            continue
        elif at >= _REACH:
            return
        elif code.co_name == "<module>":
            yield frame.f_globals, True
            at += 1 + _CODE + wait + _TOOL
        elif inner is not None and inner in code.co_consts:
            # What compilation put around a lambda.
            inner = None
        else:
            yield frame.f_locals, False
            inner = code if code.co_name == "<lambda>" else None
            at += 1
