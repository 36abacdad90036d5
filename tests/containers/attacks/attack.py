"""The corpus of attacks: programs, and calls of file tools, as data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.containers.attacks.policies import Call, calls

_PRELUDE = """import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
number = lambda x86, arm: x86 if os.uname().machine == 'x86_64' else arm
os.write(1, b'BEGAN-@NONCE@\\n')
won = lambda: os.write(1, b'WON-@NONCE@\\n')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One program.

    `control`: how it is run without an enforcer ("plain", "namespace", "no: why").
    """

    name: str
    source: str
    control: str = "plain"

    def program(self, names: Mapping[str, object]) -> str:
        """Return the program with the names of a scene filled in."""
        text = _PRELUDE + self.source
        for name, value in names.items():
            text = text.replace(f"@{name}@", str(value))
        return text


@cache
def programs() -> tuple[Attack, ...]:
    """Return the corpus of programs, `attacks.toml`."""
    text = Path(__file__).with_name("attacks.toml").read_text(encoding="utf-8")
    return tuple(Attack(**fields) for fields in tomllib.loads(text)["program"])


def bad_calls() -> tuple[Call, ...]:
    """Return the calls that have to be refused."""
    return tuple(call for call in calls() if not call.good)
