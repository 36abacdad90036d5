"""Rescue parsing as the loop's reader of replies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Final

from statek_sim.agent.effects import Reading, ReplyReader, WrittenCall
from statek_sim.agent.rescue.parser import rescue
from statek_sim.agent.rescue.values import Reason
from statek_sim.agent.rescue.variants import RescueRules, rescue_rules
from statek_sim.values import JSON

SHOWN: Final = frozenset({Reason.QUOTED, Reason.NOT_A_CALL})
"""Refusals of what was never meant as a call: a reply with nothing else is the answer."""


def rescue_reader(variant: str = "hardened") -> ReplyReader:
    """Return a reader that finds calls in text by the rules of rescue parsing that this variant has."""
    return partial(_read, rescue_rules(variant))


def _read(rules: RescueRules, text: str, offered: Mapping[str, Mapping[str, JSON]]) -> Reading:
    found = rescue(text, offered, rules=rules)
    if found.calls:
        calls = tuple(
            WrittenCall("", call.name, json.dumps(call.arguments, ensure_ascii=False)) for call in found.calls
        )
        stages = dict.fromkeys(stage for call in found.calls for stage in call.stages)
        return Reading(calls=calls, text=found.text, stages=tuple(stages))
    refused = [refusal for refusal in found.refused if refusal.reason not in SHOWN]
    stages = dict.fromkeys(refusal.reason.value for refusal in found.refused)
    why = refused[0].why.removesuffix(".") if refused else None
    return Reading(text=text, stages=tuple(stages), refused=why)
