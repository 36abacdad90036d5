"""Named variants of loop protection: every rule on which document 002's code and a good part differ (section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from statek_sim.agent.named import named


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionRules:
    """One consistent set of answers. Sources: document 002, 6.1 to 6.3, whose code was run."""

    name: str

    steps_after_resume: Literal["from zero", "from the checkpoint"]
    """Where the step counter starts when a run is taken up again: 6.1 counts in a local variable."""

    compared: Literal["texts", "calls"]
    """What repeats: the texts of outputs (6.2), or signatures of calls (tool, arguments, result), and texts only where
    a turn makes no call."""

    similarity: Literal["listed trigrams", "edit distance"]
    """How alike texts are: the share of one text's trigrams, repeated ones included, that occur in the other (6.2;
    0.99 one way and 0.005 the other, 0/0 under three characters), or a symmetric measure, equality first."""

    loop_when: Literal["half of the window", "repeated period"]
    """When it is a loop: at least half, rounded down, of the last 5 outputs are like the newest (A, B, A is one, A, B,
    A, B is none), or the newest turns are one period of 1 to k turns several times over."""

    forgets: Literal["never", "on progress"]
    """Whether progress clears what was seen."""

    probes: Literal["everybody", "one leased"]
    """Who is let through when the cooldown has passed: everybody until the first result (6.3), or one call, whose
    right to be the probe ends after a time."""

    late_results: Literal["counted", "ignored"]
    """What the result of a call does that was let through before the breaker opened or closed: a late success closes
    an open breaker and a late failure extends it (6.3), or nothing."""

    cooldown_over: Literal["after it", "at its end"]
    """Whether a call at exactly the end of the cooldown is refused (6.3 asks for more than the cooldown)."""


DOCUMENT: Final = ProtectionRules(
    name="document",
    steps_after_resume="from zero",
    compared="texts",
    similarity="listed trigrams",
    loop_when="half of the window",
    forgets="never",
    probes="everybody",
    late_results="counted",
    cooldown_over="after it",
)
HARDENED: Final = ProtectionRules(
    name="hardened",
    steps_after_resume="from the checkpoint",
    compared="calls",
    similarity="edit distance",
    loop_when="repeated period",
    forgets="on progress",
    probes="one leased",
    late_results="ignored",
    cooldown_over="at its end",
)
FORGE: Final = replace(HARDENED, name="forge")
"""Nothing in loop protection is known of Forge that differs in kind: it is `hardened`."""
RULES: Final = {rules.name: rules for rules in (DOCUMENT, HARDENED, FORGE)}


def protection_rules(name: str) -> ProtectionRules:
    """Return the variant called `name`, or raise BadInput."""
    return named(RULES, name, of="loop protection")
