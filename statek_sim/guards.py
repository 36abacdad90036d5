"""Guards: checks between a user, a model and its tools (docs/guards.md).

A `GuardSet` contains your own guards (`Guard`) and shipped ones, and `in_loop` puts it into an agent.
"""

from statek_sim.agent.effects import GuardPoint, Subject
from statek_sim.agent.guards.guard import Find, Guard, Judgement
from statek_sim.agent.guards.pipeline import GuardSet, LoopGuards, Outcome, Record, in_loop
from statek_sim.agent.guards.settings import guard_of, guards_file, judge_model
from statek_sim.agent.guards.shipped import (
    arguments,
    budget,
    citations,
    confirmation,
    injection,
    judged,
    judged_by_model,
    length,
    output_format,
    personal_data,
    rate,
    roles,
    scripts,
    secrets,
)

__all__ = [
    "Find",
    "Guard",
    "GuardPoint",
    "GuardSet",
    "Judgement",
    "LoopGuards",
    "Outcome",
    "Record",
    "Subject",
    "arguments",
    "budget",
    "citations",
    "confirmation",
    "guard_of",
    "guards_file",
    "in_loop",
    "injection",
    "judge_model",
    "judged",
    "judged_by_model",
    "length",
    "output_format",
    "personal_data",
    "rate",
    "roles",
    "scripts",
    "secrets",
]
