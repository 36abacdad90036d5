"""Guards: checks between a user, a model and its tools (docs/guards.md).

A `GuardSet` contains built-in guards and your own (`Guard`); `in_loop` adapts it for an agent's loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.effects import GuardPoint as GuardPoint
    from statek_sim.agent.effects import Subject as Subject
    from statek_sim.agent.guards.guard import Find as Find
    from statek_sim.agent.guards.guard import Guard as Guard
    from statek_sim.agent.guards.guard import Judgement as Judgement
    from statek_sim.agent.guards.pipeline import GuardSet as GuardSet
    from statek_sim.agent.guards.pipeline import LoopGuards as LoopGuards
    from statek_sim.agent.guards.pipeline import Outcome as Outcome
    from statek_sim.agent.guards.pipeline import Record as Record
    from statek_sim.agent.guards.pipeline import in_loop as in_loop
    from statek_sim.agent.guards.settings import guard_of as guard_of
    from statek_sim.agent.guards.settings import guards_file as guards_file
    from statek_sim.agent.guards.settings import judge_model as judge_model
    from statek_sim.agent.guards.shipped import arguments as arguments
    from statek_sim.agent.guards.shipped import budget as budget
    from statek_sim.agent.guards.shipped import citations as citations
    from statek_sim.agent.guards.shipped import confirmation as confirmation
    from statek_sim.agent.guards.shipped import injection as injection
    from statek_sim.agent.guards.shipped import judged as judged
    from statek_sim.agent.guards.shipped import judged_by_model as judged_by_model
    from statek_sim.agent.guards.shipped import length as length
    from statek_sim.agent.guards.shipped import output_format as output_format
    from statek_sim.agent.guards.shipped import personal_data as personal_data
    from statek_sim.agent.guards.shipped import rate as rate
    from statek_sim.agent.guards.shipped import roles as roles
    from statek_sim.agent.guards.shipped import scripts as scripts
    from statek_sim.agent.guards.shipped import secrets as secrets

__all__, __getattr__, __dir__ = lazy_exports(__name__)
