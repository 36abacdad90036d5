"""Which calls of the kernel a program in bubblewrap may not make, as a filter for `bwrap --seccomp`.

A list of what is refused, like that of Docker 25 in its effect: what makes namespaces, mounts, looks into others, loads
code into the kernel, or has had more holes than uses. On a processor without a table here there is no filter.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping
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
"""The flags of `clone` that ask for a namespace: all seven, and that of time."""
_X32: Final = 0x40000000

_ARCHITECTURES: Final[Mapping[str, tuple[int, int]]] = {
    "x86_64": (0xC000003E, 0),
    "aarch64": (0xC00000B7, 1),
}
"""What the kernel calls a processor, and which of the two numbers below is its own."""

REFUSED: Final[Mapping[str, tuple[int, int]]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "set_mempolicy": (238, 237),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
"""Calls that fail with EPERM, by their numbers on x86_64 and aarch64."""

_CLONE: Final = (56, 220)
_CLONE3: Final = (435, 435)
_SOCKET: Final = (41, 198)
_FAMILIES: Final = (1, 2, 10, 16)
"""What sockets may be of: files, both kinds of addresses, and what the kernel says of them. A namespace holds these.

It does not hold all others: one of `AF_VSOCK` speaks to the machine that this one runs on.
"""


def program(machine: str = "") -> bytes | None:
    """Return the filter as the kernel reads it, None for a processor without a table; `machine` as `uname -m`."""
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
        # Another numbering of the same calls, on x86_64.
        _op(_AT_LEAST, _X32, no=1),
        _op(_RETURN, missing),
        # Its flags are in memory, where a filter cannot look; told that it is not there, libraries use `clone`.
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
    for numbers in REFUSED.values():
        code += [_op(_EQUAL, numbers[own], no=1), _op(_RETURN, refuse)]
    return b"".join([*code, _op(_RETURN, _ALLOW)])


def _op(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """Return one instruction; `yes` and `no` are how many are skipped."""
    return struct.pack("=HBBI", code, yes, no, value)
