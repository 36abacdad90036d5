"""Escalation: what is tried after a failure, up to a person (docs/escalation.md).

A `Ladder` of `Level`s is climbed by `escalate`; where it ends at a person, a ticket waits and `resume` goes on.
"""

from statek_sim.agent.escalation.causes import Cause
from statek_sim.agent.escalation.controller import Escalation, Tried, escalate, resume
from statek_sim.agent.escalation.ladder import Judgement, Ladder, Level, Price
from statek_sim.agent.escalation.tickets import (
    FileTickets,
    KeptTickets,
    Ticket,
    Tickets,
    Word,
    by_webhook,
    on_terminal,
)

__all__ = [
    "Cause",
    "Escalation",
    "FileTickets",
    "Judgement",
    "KeptTickets",
    "Ladder",
    "Level",
    "Price",
    "Ticket",
    "Tickets",
    "Tried",
    "Word",
    "by_webhook",
    "escalate",
    "on_terminal",
    "resume",
]
