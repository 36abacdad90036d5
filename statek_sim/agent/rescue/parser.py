"""Rescue parsing: from a model's raw text to tool calls, or a refusal with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from statek_sim.agent.rescue.answer import size_of
from statek_sim.agent.rescue.document import greedy
from statek_sim.agent.rescue.hints import Hint, hint_called
from statek_sim.agent.rescue.offered import Offered, Tools
from statek_sim.agent.rescue.scanning import Pass
from statek_sim.agent.rescue.values import Limits, Reason, Refusal, Rescued, Span
from statek_sim.agent.rescue.variants import HARDENED, RescueRules

Reformat = Callable[[str], str | None]
"""The optional last stage: it is given the reply and returns a better one, or None. Document 004's strategy 4."""


def rescue(
    text: str,
    tools: Tools | None = None,
    *,
    rules: RescueRules = HARDENED,
    limits: Limits | None = None,
    reformat: Reformat | None = None,
    dialect: str | None = None,
    coerce: bool = False,
) -> Rescued:
    """Return the calls that `text` makes, and why what looks like a call is none.

    `tools` are the offered tools, names or specs; None accepts any name. `dialect` is the format that the model is
    known to write (a name in `hints.HINTS`); None: every format is read. `reformat` is asked once, when no call was
    found and something was refused; what it returns is read by the same rules, and its calls have `reformat` as
    first stage. `coerce`: a text in a format that writes JSON or Python, where the schema takes none, becomes what the
    schema takes, as the registry converts it in a call on the wire; else such a call does not fit. Raises `BadInput`
    for tools that are none, and for a dialect that is not known.
    """
    offered, bounds = Offered(tools if rules.checks_tools else None, coerce=coerce), limits or Limits()
    hint = hint_called(dialect)
    found = _once(text, offered, rules, bounds, hint)
    if reformat is None or found.calls or not found.refused:
        return found
    better = _reformatted(text, reformat, rules)
    again = None if better is None else _once(better, offered, rules, bounds, hint)
    if again is not None and again.calls:
        calls = tuple(replace(call, stages=("reformat", *call.stages)) for call in again.calls)
        return replace(again, calls=calls, steps=found.steps + again.steps)
    whole = Span(0, size_of(text))
    why = "the model that was asked to reformat the reply gave no call either"
    return replace(found, refused=(*found.refused, Refusal(reason=Reason.REFORMAT, why=why, span=whole)))


def _once(text: str, offered: Offered, rules: RescueRules, limits: Limits, hint: Hint | None) -> Rescued:
    if rules.extraction == "greedy":
        return greedy(text)
    size = size_of(text)
    if size > limits.max_bytes:
        why = f"the reply has {size} bytes; at most {limits.max_bytes} are read"
        return Rescued(refused=(Refusal(reason=Reason.LIMIT, why=why, span=Span(0, size)),), steps=1)
    return Pass(text, offered, rules, limits, hint).run()


def _reformatted(text: str, reformat: Reformat, rules: RescueRules) -> str | None:
    try:
        return reformat(text)
    except Exception:  # the document's `except Exception`, reproduced where the variant says so
        if rules.reformat_errors == "raised":
            raise
        return None
