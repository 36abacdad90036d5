"""Containment: a model's programs in bubblewrap or Docker (docs/containment.md).

A `Program` runs in a container within `Limits`and sees only its `Mount`s.
"""

from statek_sim.agent.containers.bubblewrap import Bubblewrap
from statek_sim.agent.containers.docker import Docker
from statek_sim.agent.containers.program import Container, Ended, Limits, Mount, Program
from statek_sim.agent.containers.tools import Answer, ScriptedContainer, shell_tool

__all__ = [
    "Answer",
    "Bubblewrap",
    "Container",
    "Docker",
    "Ended",
    "Limits",
    "Mount",
    "Program",
    "ScriptedContainer",
    "shell_tool",
]
