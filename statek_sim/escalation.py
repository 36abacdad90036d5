"""Escalation: further attempts after a failure, with other models and finally a person (docs/escalation.md).

A `Ladder` of `Level`s is a part of an agent: `Parts(ladder=...)`.
"""

from statek_sim.agent.escalation import Cause, Judgement, Ladder, Level, Price

__all__ = ["Cause", "Judgement", "Ladder", "Level", "Price"]
