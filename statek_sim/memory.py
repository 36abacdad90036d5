"""Memory: the handoff file between sessions, and a project's instruction files (docs/memory.md).

`HandoffFile` reads and writes the state for the next session. `discover` finds the instructions that apply to a folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.memory import Handoff as Handoff
    from statek_sim.agent.memory import HandoffFile as HandoffFile
    from statek_sim.agent.memory import Instructions as Instructions
    from statek_sim.agent.memory import discover as discover
    from statek_sim.agent.memory import instructions_block as instructions_block
    from statek_sim.agent.memory import memory_block as memory_block
    from statek_sim.agent.memory import project_of as project_of
    from statek_sim.agent.memory import reader_of as reader_of
    from statek_sim.store.disk import RealDisk as RealDisk

__all__, __getattr__, __dir__ = lazy_exports(__name__)
