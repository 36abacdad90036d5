"""Protection: step limits, detection of repeated calls, and circuit breakers (docs/protection.md).

The pure rules, and the parts of an agent that apply them: `loop_watcher`, `BreakerGate` and `rescued`.
"""

from statek_sim.agent.protection import (
    Breaker,
    Breakers,
    BreakerSettings,
    CallSeen,
    Circuit,
    Loop,
    LoopSettings,
    Permit,
    StepCount,
    TooManySteps,
    TurnSeen,
    Watch,
    next_step,
    observe,
)
from statek_sim.agent.reliability import BreakerGate, loop_watcher, rescued

__all__ = [
    "Breaker",
    "BreakerGate",
    "BreakerSettings",
    "Breakers",
    "CallSeen",
    "Circuit",
    "Loop",
    "LoopSettings",
    "Permit",
    "StepCount",
    "TooManySteps",
    "TurnSeen",
    "Watch",
    "loop_watcher",
    "next_step",
    "observe",
    "rescued",
]
