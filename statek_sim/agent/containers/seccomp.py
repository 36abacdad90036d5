"""The filter for `bwrap --seccomp`, which blocks system calls by programs in bubblewrap.

The deny list has the same effect as Docker 25's: it blocks calls that create namespaces or mounts, inspect other
processes, load code into the kernel, or are rarely needed and often exploited. There is no filter for a processor
without a table here.
"""

from __future__ import annotations

import platform
import struct
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL: Final = 0x80000000
_EPERM: Final = 1
_ENOSYS: Final = 38
_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06
_NAMESPACES: Final = 0x7E020000 | 0x00000080
"""The `clone` flags that create namespaces: all seven, and the time namespace."""
_X32: Final = 0x40000000

_ARCHITECTURES: Final[Mapping[str, tuple[int, int]]] = {
    "x86_64": (0xC000003E, 0),
    "aarch64": (0xC00000B7, 1),
}
"""Each processor's audit architecture, and the index of its numbers in the pairs below."""


@cache
def refused_calls() -> Mapping[str, tuple[int, int]]:
    """Return the calls that fail with EPERM, with their numbers on x86_64 and aarch64."""
    text = (resources.files("statek_sim.agent.containers") / "syscalls.toml").read_text("utf-8")
    return {name: (first, second) for name, (first, second) in tomllib.loads(text).items()}


_CLONE: Final = (56, 220)
_CLONE3: Final = (435, 435)
_SOCKET: Final = (41, 198)
_FAMILIES: Final = (1, 2, 10, 16)
"""Allowed socket families: Unix sockets, both internet families, and netlink, which a namespace isolates.

A namespace does not isolate every family: an `AF_VSOCK` socket reaches the machine that hosts this one.
"""


def program(machine: str = "") -> bytes | None:
    """Return the filter in the kernel's format, or None for a processor without a table.

    `machine` comes from `uname -m`.
    """
    known = _ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    audit, own = known
    refuse, missing = _ERRNO | _EPERM, _ERRNO | _ENOSYS
    code = [
        _op(_LOAD, 4),
        _op(_EQUAL, audit, yes=1),
        _op(_RETURN, _KILL),
        _op(_LOAD, 0),
        # The x32 numbering of the same calls, on x86_64.
        _op(_AT_LEAST, _X32, no=1),
        _op(_RETURN, missing),
        # Its flags are in memory, where a filter cannot read them; on ENOSYS, libraries fall back to `clone`.
        _op(_EQUAL, _CLONE3[own], no=1),
        _op(_RETURN, missing),
        _op(_EQUAL, _CLONE[own], no=4),
        _op(_LOAD, 16),
        _op(_ANY_BIT, _NAMESPACES, no=1),
        _op(_RETURN, refuse),
        _op(_RETURN, _ALLOW),
        _op(_EQUAL, _SOCKET[own], no=len(_FAMILIES) + 3),
        _op(_LOAD, 16),
        *(_op(_EQUAL, family, yes=len(_FAMILIES) - at) for at, family in enumerate(_FAMILIES)),
        _op(_RETURN, refuse),
        _op(_RETURN, _ALLOW),
    ]
    for numbers in refused_calls().values():
        code += [_op(_EQUAL, numbers[own], no=1), _op(_RETURN, refuse)]
    return b"".join([*code, _op(_RETURN, _ALLOW)])


def _op(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """Return an instruction; `yes` and `no` are the numbers of instructions to skip."""
    return struct.pack("=HBBI", code, yes, no, value)
