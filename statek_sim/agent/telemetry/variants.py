"""Named variants of the metrics: every rule on which document 002's section 7 and a good part differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRules:
    """One consistent set of answers. `document` is what its tables say to the letter, where they say anything."""

    name: str

    steps_of: Literal["completed", "ended"]
    """Whose steps are averaged: of tasks that were completed ("average steps to complete a task"), so that a harness
    whose tasks all run into their limit looks short and healthy; or of all that ended."""

    step_time: Literal["all", "without people"]
    """Whether a step's latency has the time in it that a person took to answer."""

    nothing: Literal["not a number", "unknown"]
    """What 0 of 0 is: not a number, which no alert is raised by (0/0 > 10 % is false), or unknown, which is said."""

    between: Literal["healthy", "warn"]
    """What lies between the baseline and the alert, as 5 to 10 % of errors: nothing, so no alert; or a warning."""

    evidence: Literal["point", "interval"]
    """What a share is held against its limit with: its value, so that 2 of 19 is an alert; or its value, and Wilson's
    95 % interval against the healthy limit."""

    before: Literal["the window before", "median of windows"]
    """What "a sudden increase" is an increase over. The document has no window: of two neighbours the second is
    compared with the first; or with the median of up to five windows before that raised no alert, three at least."""

    continuous: Literal["one rise", "trend"]
    """What "continuously increasing" is: a rise from one window to the next; or a trend over six windows, in which
    noise may go down once or twice, and that is 10 % or more from their first half to their second."""


DOCUMENT: Final = MetricRules(
    name="document",
    steps_of="completed",
    step_time="all",
    nothing="not a number",
    between="healthy",
    evidence="point",
    before="the window before",
    continuous="one rise",
)
HARDENED: Final = MetricRules(
    name="hardened",
    steps_of="ended",
    step_time="without people",
    nothing="unknown",
    between="warn",
    evidence="interval",
    before="median of windows",
    continuous="trend",
)
RULES: Final = {rules.name: rules for rules in (HARDENED, DOCUMENT)}
"""Every variant by name, the default first."""


def metric_rules(name: str) -> MetricRules:
    """Return the variant called `name`, or raise BadInput."""
    if name not in RULES:
        problem = (
            f"no variant of the metrics is called {name!r}: {', '.join(RULES)}.{suggestion(name, RULES)}"
        )
        raise BadInput(problem.removesuffix("."))
    return RULES[name]
