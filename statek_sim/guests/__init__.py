"""Runs third-party harnesses as guests, with a scripted LLM, faults, virtual time and a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.guests.forge import ScriptedClient as ScriptedClient
    from statek_sim.guests.guest import Guest as Guest
    from statek_sim.guests.pydantic_ai import compaction_of as compaction_of
    from statek_sim.guests.pydantic_ai import history_of as history_of
    from statek_sim.guests.pydantic_ai import processor_of as processor_of
    from statek_sim.guests.pydantic_ai import recorded_tools as recorded_tools
    from statek_sim.guests.pydantic_ai import scripted_model as scripted_model

__all__, __getattr__, __dir__ = lazy_exports(__name__)
