"""Named variants of escalation: every rule on which document 002's section 5 and a good part differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationRules:
    """One consistent set of answers. Source: document 002, section 5, whose code was read."""

    name: str

    climbs: Literal["always", "by cause"]
    """What goes on after a failure: everything, a wrong key, a spent budget and a bug too (`catch (error)
    { continue }`); or what the table says."""

    backoff: Literal["none", "doubling"]
    """How long the next attempt waits after a cause that time may cure."""

    carries: Literal["original task", "as declared"]
    """What an attempt is told: the original task, whatever the one before did, or what its level declares."""

    best: Literal["lost", "kept"]
    """What becomes of the best answer when none was good enough."""

    no_attempts: Literal["skipped", "error"]
    """What a level with no attempts is: skipped, and recorded as "failed after 0 retries"; or an error."""

    last_recorded: bool
    """Whether the step from the last model to a person, or to nobody, is recorded (`if (i < levels.length - 1)`)."""


DOCUMENT: Final = EscalationRules(
    name="document",
    climbs="always",
    backoff="none",
    carries="original task",
    best="lost",
    no_attempts="skipped",
    last_recorded=False,
)
HARDENED: Final = EscalationRules(
    name="hardened",
    climbs="by cause",
    backoff="doubling",
    carries="as declared",
    best="kept",
    no_attempts="error",
    last_recorded=True,
)
RULES: Final = {rules.name: rules for rules in (HARDENED, DOCUMENT)}


def escalation_rules(name: str) -> EscalationRules:
    """Return the variant called `name`, or raise BadInput; `forge`, which has no ladder, is `hardened`."""
    if name == "forge":
        return HARDENED
    if name not in RULES:
        problem = f"no variant of escalation is called {name!r}: {', '.join(RULES)}.{suggestion(name, RULES)}"
        raise BadInput(problem.removesuffix("."))
    return RULES[name]
