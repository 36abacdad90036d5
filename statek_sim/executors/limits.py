"""The resource limits for one task, enforced by the watchdog, and the parser for `--watchdog`."""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass
from typing import Final

from statek_sim.did_you_mean import with_suggestion
from statek_sim.errors import BadInput

OFF: Final = "off"
_MIB: Final = 2**20
_UNITS: Final = {"": 1, "k": 2**10, "m": _MIB, "g": 2**30}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([kmg]?)(?:i?b)?", re.IGNORECASE)

GARBAGE: Final = (50_000, 20, 20)
"""Garbage collection thresholds while many long-lived objects are being loaded."""
GARBAGE_OF_RUNS: Final = (3_000, 5, 50)
"""Garbage collection thresholds while scenarios run, after earlier objects were frozen.

With such a low threshold, garbage is still in the CPU caches when it is collected; a threshold of 50,000
makes runs an eighth slower.
"""


def begin_runs() -> None:
    """Freeze the loaded objects, so that only garbage from runs is collected. Call it only in worker processes."""
    gc.freeze()
    gc.set_threshold(*GARBAGE_OF_RUNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogLimits:
    """Limits for one task, in real seconds and bytes.

    `cpu` is CPU time in seconds, `wall` is elapsed time in seconds, and `memory` is the number of bytes by
    which the process may grow.
    """

    cpu: float = 20.0
    wall: float = 60.0
    memory: int = 1024 * _MIB

    def __str__(self) -> str:
        """Return the limits in the notation of `--watchdog`."""
        return f"cpu={self.cpu:g},wall={self.wall:g},memory={self.memory // _MIB}m"


def parse_watchdog(text: str) -> WatchdogLimits | None:
    """Parse limits such as `cpu=20,wall=60,memory=1g`. Omitted limits keep their defaults; `off` returns None.

    Raises BadInput for any other text.
    """
    if text.strip().lower() == OFF:
        return None
    numbers: dict[str, float] = {}
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign or name not in ("cpu", "wall", "memory"):
            problem = (
                f"--watchdog: unknown limit {part.strip()!r}; expected off, or any of "
                f"{WatchdogLimits()} (in seconds, or bytes with k, m or g)"
            )
            raise BadInput(with_suggestion(problem, name, ("cpu", "wall", "memory", OFF)))
        numbers[name] = _number(name, value)
    usual = WatchdogLimits()
    return WatchdogLimits(
        cpu=numbers.get("cpu", usual.cpu),
        wall=numbers.get("wall", usual.wall),
        memory=int(numbers.get("memory", usual.memory)),
    )


def _number(name: str, value: str) -> float:
    found = _SIZE.fullmatch(value)
    number = 0.0 if found is None else float(found[1])
    if found is None or not number or (found[2] and name != "memory"):
        unit = "bytes, such as 512m or 1g" if name == "memory" else "seconds"
        raise BadInput(f"--watchdog: {name}={value}: expected a number of {unit}, greater than 0")
    return number * _UNITS[found[2].lower()]
