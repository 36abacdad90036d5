"""Named variants of the context manager: every rule on which document 004's code and a good part differ (section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.agent.named import named

TierName = Literal["clear", "summarise", "drop", "cut"]
"""The steps of `hardened`; `tiers` has what each does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRules:
    """One consistent set of answers. Sources: document 004 §5, whose code was run, and Forge's `context` package."""

    name: str

    counted: Literal["content characters / 4", "prompt tokens"]
    """What is held against the budget: the characters of `content` divided by four, so that arguments of calls and
    parts of content weigh nothing, four thousand Chinese characters are a thousand tokens and a content of null is a
    TypeError (§5 `_count_tokens`; Forge `_estimate_tokens`); or the tokens of the whole prompt, tools included."""

    due: Literal["over the budget less the reserve", "from three quarters of the budget"]
    """When a history is made shorter: when it has more tokens than the budget without the reserve (§5), or at three
    quarters of the budget, without a reserve (Forge `compact_threshold`)."""

    recent: Literal["twice as many messages", "iterations", "turns with their results"]
    """What the newest N are: 2N messages, so that a call with two results is cut apart and N = 0 keeps everything
    (§5 `messages[-(s.keep_recent * 2):]`; `messages[-0:]` is all of them); iterations of the loop (Forge
    `step_index`); or turns of the model with all of their results."""

    stays: Literal["nothing", "first two messages", "system, task, pinned facts"]
    """What no step takes away: nothing, so that the system prompt and the task are summarised (§5); the first two
    messages (Forge); or the system's messages, the task, and what holds a pinned fact."""

    steps: (
        tuple[TierName, ...] | Literal["a summary, or the oldest cut", "truncate, drop results, drop texts"]
    )
    """How it is made shorter: in these steps, each only as far as it has to go; one summary of everything that is not
    recent, and `_truncate_to_budget`, which does not exist, where there is nothing else (§5); or Forge's three
    phases, whose second leaves calls without their results."""

    summary: Literal["system message", "none", "user message"]
    """What a summary is: a second system message, which some templates refuse and which never reaches Anthropic or
    Gemini, who have no place for it (§5); or a message of the user's behind what stays."""

    summary_checked: bool
    """Whether a summary that failed, is empty, over its limit, or no shorter than what it stands for is left aside and
    a rule writes one. In §5 an exception ends the run and `max_summary_tokens` is never read."""

    result_checked: bool
    """Whether the result is held against the budget and the rules of the wire, and a history that does not fit is an
    error. In §5 and in Forge whatever came out is sent: 400,000 tokens may remain."""


DOCUMENT: Final = ContextRules(
    name="document",
    counted="content characters / 4",
    due="over the budget less the reserve",
    recent="twice as many messages",
    stays="nothing",
    steps="a summary, or the oldest cut",
    summary="system message",
    summary_checked=False,
    result_checked=False,
)
HARDENED: Final = ContextRules(
    name="hardened",
    counted="prompt tokens",
    due="over the budget less the reserve",
    recent="turns with their results",
    stays="system, task, pinned facts",
    steps=("clear", "summarise", "drop", "cut"),
    summary="user message",
    summary_checked=True,
    result_checked=True,
)
FORGE: Final = ContextRules(
    name="forge",
    counted="content characters / 4",
    due="from three quarters of the budget",
    recent="iterations",
    stays="first two messages",
    steps="truncate, drop results, drop texts",
    summary="none",
    summary_checked=False,
    result_checked=False,
)
RULES: Final = {rules.name: rules for rules in (DOCUMENT, HARDENED, FORGE)}


def context_rules(name: str) -> ContextRules:
    """Return the variant called `name`, or raise BadInput."""
    return named(RULES, name, of="the context manager")
