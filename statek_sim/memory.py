"""Memory: the handoff file between sessions, and a project's instructions (docs/memory.md).

`HandoffFile` reads and writes the state for the next session; `discover` finds the instructions for a folder.
"""

from statek_sim.agent.memory import (
    Handoff,
    HandoffFile,
    Instructions,
    discover,
    instructions_block,
    memory_block,
    project_of,
    reader_of,
)
from statek_sim.store.disk import RealDisk

__all__ = [
    "Handoff",
    "HandoffFile",
    "Instructions",
    "RealDisk",
    "discover",
    "instructions_block",
    "memory_block",
    "project_of",
    "reader_of",
]
