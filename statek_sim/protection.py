"""Protection: step limits, detection of repeated calls, and circuit breakers (docs/protection.md).

The rules are pure functions. As parts of an agent, `loop_watcher`, `BreakerGate` and `rescued` apply them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.protection import Breaker as Breaker
    from statek_sim.agent.protection import Breakers as Breakers
    from statek_sim.agent.protection import BreakerSettings as BreakerSettings
    from statek_sim.agent.protection import CallSeen as CallSeen
    from statek_sim.agent.protection import Circuit as Circuit
    from statek_sim.agent.protection import Loop as Loop
    from statek_sim.agent.protection import LoopSettings as LoopSettings
    from statek_sim.agent.protection import Permit as Permit
    from statek_sim.agent.protection import StepCount as StepCount
    from statek_sim.agent.protection import TooManySteps as TooManySteps
    from statek_sim.agent.protection import TurnSeen as TurnSeen
    from statek_sim.agent.protection import Watch as Watch
    from statek_sim.agent.protection import next_step as next_step
    from statek_sim.agent.protection import observe as observe
    from statek_sim.agent.reliability import BreakerGate as BreakerGate
    from statek_sim.agent.reliability import loop_watcher as loop_watcher
    from statek_sim.agent.reliability import rescued as rescued

__all__, __getattr__, __dir__ = lazy_exports(__name__)
