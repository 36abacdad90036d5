"""Escalation: further attempts after a failure, with other models and finally a person (docs/escalation.md).

Pass a `Ladder` of `Level`s to an agent as `Parts(ladder=...)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.escalation import Cause as Cause
    from statek_sim.agent.escalation import Judgement as Judgement
    from statek_sim.agent.escalation import Ladder as Ladder
    from statek_sim.agent.escalation import Level as Level
    from statek_sim.agent.escalation import Price as Price

__all__, __getattr__, __dir__ = lazy_exports(__name__)
