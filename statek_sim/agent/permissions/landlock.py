"""Landlock: a process gives up, for good, everything but some folders; so does all that it starts.

Linux 5.13 and later, where it is switched on; what is held grows with the kernel's version of it: TCP from 4 on,
abstract sockets and signals to others from 6 on. It holds files, and not memory, processes or time: a container does.
Run as a program it restricts itself and becomes another one: `python landlock.py --read DIR --write DIR -- PROGRAM`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Sequence
from typing import Final

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_READS: Final = 0b1101
"""Execute, read a file, read a folder."""
_ON_FILES: Final = 0b1100_0000_0000_0111
"""What means something on a file: execute, write, read, truncate, ioctl on devices."""
_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights on files each version knows; 16 from 5 on."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """Return the version of Landlock that this kernel has, 0 for none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def restrict(reads: Sequence[str], writes: Sequence[str]) -> None:
    """Let this thread, and all that it starts, only read below `reads` and do anything below `writes`.

    It cannot be taken back. No TCP, abstract socket or signal leaves what is restricted, where the kernel can.
    `OSError` where there is no Landlock, or a folder is not there.
    """
    known = version()
    if known == 0:
        raise OSError(errno.ENOSYS, "this kernel has no Landlock, or it is switched off")
    rights = (1 << _RIGHTS.get(known, 16)) - 1
    rules = _Ruleset(rights, 0b11 if known >= 4 else 0, 0b11 if known >= 6 else 0)
    # Older kernels refuse what they do not know: a shorter structure.
    size = 8 if known < 4 else 16 if known < 6 else 24
    made = _called(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in reads:
            _allow(made, path, rights & _READS)
        for path in writes:
            _allow(made, path, rights)
        if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs cannot be set")
        _called(_RESTRICT, ctypes.c_int(made), ctypes.c_uint32(0))
    finally:
        os.close(made)


def _allow(made: int, path: str, rights: int) -> None:
    number = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(number).st_mode):
            rights &= _ON_FILES
        rule = _Beneath(rights, number)
        _called(_ADD, ctypes.c_int(made), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(number)


def _called(number: int, *arguments: object) -> int:
    found = int(_libc().syscall(ctypes.c_long(number), *arguments))
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return found


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def main(arguments: Sequence[str]) -> None:
    """Restrict this process and become the program after `--`; what is in the way of that is one line, and code 2."""
    before, program = _apart(arguments)
    options, folders = before[::2], before[1::2]
    if not program or len(options) != len(folders) or not {*options} <= {"--read", "--write"}:
        sys.exit(_refused("expected --read DIR and --write DIR, as often as wanted, and -- PROGRAM"))
    try:
        # A folder may be called `--write`.
        named = list(zip(options, folders, strict=True))
        restrict(*([folder for option, folder in named if option == way] for way in ("--read", "--write")))
    except OSError as error:
        sys.exit(_refused(f"{error.filename or 'Landlock'}: {error.strerror}"))
    try:
        os.execvp(program[0], program)
    except OSError as error:
        sys.exit(
            _refused(
                f"{program[0]} cannot be run: {error.strerror}; its folder and its libraries' take --read"
            )
        )


def _apart(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:at]), list(arguments[at + 1 :])


def _refused(what: str) -> int:
    print(f"landlock: {what}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main(sys.argv[1:])
