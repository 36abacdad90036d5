"""Containment: runs programs written by a model in bubblewrap or Docker (docs/containment.md).

A `Program` runs in a container within `Limits` and sees only its `Mount`s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.containers.bubblewrap import Bubblewrap as Bubblewrap
    from statek_sim.agent.containers.docker import Docker as Docker
    from statek_sim.agent.containers.program import Container as Container
    from statek_sim.agent.containers.program import Ended as Ended
    from statek_sim.agent.containers.program import Limits as Limits
    from statek_sim.agent.containers.program import Mount as Mount
    from statek_sim.agent.containers.program import Program as Program
    from statek_sim.agent.containers.tools import Answer as Answer
    from statek_sim.agent.containers.tools import ScriptedContainer as ScriptedContainer
    from statek_sim.agent.containers.tools import shell_tool as shell_tool

__all__, __getattr__, __dir__ = lazy_exports(__name__)
