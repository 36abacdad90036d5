r"""Usage by turn, job, scenario and suite, for tables, pages and gates.

The same calls are measured in five ways: bytes with STATEK's estimate, characters // 4, tokens counted by a tokenizer,
tokens reported by the provider, and the cost based on STATEK's price files.

The waterfall leads from STATEK's estimate to the tokens that a model sees, step by step, in whole tokens that add up.
Each level is a separate count of all answered calls in a job or scenario: bytes // 4 of one sum, as in STATEK, plus the
tokens of the parts that are already counted as the model sees them. A step is the difference between neighbouring
levels, so the steps add up exactly.

    level      bytes // 4                                        + tokens
    once       everything, but each message only once
    estimate   everything: what the harness counts
    unescaped  the same bodies in UTF-8, without \uXXXX
    framed     without the JSON around the texts of requests     + the chat format's frame
    tooled     texts of requests, whole reply bodies             + tool definitions
    bare       texts of requests and replies                     + the frame of tool calls in replies
    measured                                                     everything the tokenizer counts
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Final, NamedTuple, Self

from statek_sim.usage.pricing import Tokens, summed
from statek_sim.usage.token_usage import BYTES_PER_TOKEN, NO_TOKENIZER, approx_tokens, sum_reported

_JOINED = " + "


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of calls. A field is None if there is no price or no report.

    `statek` is the cost that STATEK computes (`job.usage.total_cost`), `billed` is the cost of the same tokens by the
    provider's rules, and `reported` is the cost that the provider reported. `problems` lists negative, impossible or
    doubtful costs.
    """

    statek: Decimal | None = None
    billed: Decimal | None = None
    reported: Decimal | None = None
    problems: tuple[str, ...] = ()

    def plus(self, other: Cost) -> Cost:
        """Add two costs, listing each problem once."""
        return Cost(
            statek=sum_reported(self.statek, other.statek),
            billed=sum_reported(self.billed, other.billed),
            reported=sum_reported(self.reported, other.reported),
            problems=tuple(dict.fromkeys((*self.problems, *other.problems))),
        )


NO_COST = Cost()


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The usage of answered calls, in bytes and tokens.

    `characters` counts the characters of messages, tool definitions and replies. `reporting` is the number of calls for
    which the provider reported tokens, and `reported` is the sum of these tokens.
    """

    calls: int
    parts: CallParts
    waterfall: Waterfall
    characters: int
    measured_prompt: int
    measured_completion: int
    reporting: int
    reported: Tokens
    cost: Cost
    tokenizers: tuple[str, ...]

    @property
    def bytes_sent(self) -> int:
        """The bytes of request bodies, as STATEK counts them."""
        return self.parts.bytes_sent

    @property
    def bytes_received(self) -> int:
        """The bytes of response bodies."""
        return self.parts.bytes_received

    @property
    def approx_tokens(self) -> int:
        """STATEK's estimate, rounded down once per job or scenario; for a suite, the sum across its scenarios."""
        return self.waterfall.estimate

    @property
    def character_tokens(self) -> int:
        """The rule of thumb `characters // 4`."""
        return self.characters // BYTES_PER_TOKEN

    @property
    def measured_tokens(self) -> int:
        """Prompt and completion tokens, counted with a tokenizer."""
        return self.measured_prompt + self.measured_completion

    @property
    def reported_tokens(self) -> int | None:
        """Prompt and completion tokens that the provider reported; None if it reported none."""
        return self.reported.prompt + self.reported.completion if self.reporting else None

    @property
    def ratio(self) -> float | None:
        """The estimate divided by the measured tokens; None if these are 0."""
        return self.approx_tokens / self.measured_tokens if self.measured_tokens else None

    @property
    def tokenizer(self) -> str:
        """The labels of all tokenizers used, joined by ` + `; the label of a substitute contains `proxy`."""
        return _JOINED.join(self.tokenizers) or NO_TOKENIZER

    @classmethod
    def together(cls, uses: Iterable[Use], cost: Cost) -> Self:
        """Return the usage of a job or a scenario, whose estimate is computed once from all bytes."""
        found = tuple(uses)
        parts = reduce(CallParts.plus, (use.parts for use in found), CallParts())
        return cls._summed(found, parts, waterfall(parts), cost)

    @classmethod
    def total(cls, uses: Iterable[Use]) -> Self:
        """Return the usage of several scenarios, whose estimates, each rounded, are added."""
        found = tuple(uses)
        parts = reduce(CallParts.plus, (use.parts for use in found), CallParts())
        steps = reduce(Waterfall.plus, (use.waterfall for use in found), Waterfall())
        return cls._summed(found, parts, steps, total_cost(use.cost for use in found))

    @classmethod
    def _summed(cls, uses: Sequence[Use], parts: CallParts, steps: Waterfall, cost: Cost) -> Self:
        return cls(
            calls=sum(use.calls for use in uses),
            parts=parts,
            waterfall=steps,
            characters=sum(use.characters for use in uses),
            measured_prompt=sum(use.measured_prompt for use in uses),
            measured_completion=sum(use.measured_completion for use in uses),
            reporting=sum(use.reporting for use in uses),
            reported=summed(use.reported for use in uses),
            cost=cost,
            tokenizers=tuple(sorted({label for use in uses for label in use.tokenizers})),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUse:
    """The usage of one answered call; `turn` is the one-based number among all of the job's calls."""

    turn: int
    model: str
    provider: str
    use: Use


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUse:
    """A job's usage: the answered calls, in order, and their total. `stop` is None for a job that did not end."""

    name: str
    agent: str
    stop: str | None
    turns: tuple[TurnUse, ...]
    use: Use


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioUse:
    """A scenario's usage under one profile; jobs without answered calls are omitted."""

    suite: str
    id: str
    profile: str
    tags: tuple[str, ...]
    jobs: tuple[JobUse, ...]
    use: Use

    @property
    def name(self) -> str:
        """`suite/scenario[profile]`."""
        return f"{self.suite}/{self.id}[{self.profile}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The total usage for a group of scenarios, such as a suite."""

    name: str
    scenarios: int
    use: Use

    @classmethod
    def of(cls, name: str, members: Sequence[ScenarioUse]) -> Self:
        """Return the group with these scenarios."""
        return cls(name=name, scenarios=len(members), use=Use.total(member.use for member in members))


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageAnalysis:
    """The usage analysis for a scenario run, sorted by suite, scenario and profile.

    `silent` lists the scenarios without answered calls. `price_problems` describes problems in the price files.
    """

    preset: str | None
    scenarios: tuple[ScenarioUse, ...]
    suites: tuple[Group, ...]
    overall: Group
    silent: tuple[str, ...]
    price_problems: tuple[str, ...]


def total_cost(costs: Iterable[Cost]) -> Cost:
    """Return the total cost."""
    return reduce(Cost.plus, costs, NO_COST)


STEPS: Final = ("history", "escaping", "envelope", "tools", "response", "density")
"""The step names, in order; `history` leads to the estimate, all others from there to the measured tokens."""

MEANINGS: Final = {
    "history": "messages from the job's earlier requests, sent again",
    "escaping": r"\uXXXX escapes instead of UTF-8: six bytes per character, twelve per emoji",
    "envelope": "the JSON around request texts, compared with the model's chat format",
    "tools": "tool definitions: bytes / 4 of their JSON Schema, compared with their prompt tokens",
    "response": "the response body around the reply's text: ids, usage, quotes",
    "density": "the text itself: UTF-8 bytes / 4, compared with the tokenizer",
}
"""One-line descriptions of the steps."""


class CallParts(NamedTuple):
    """The sizes of an answered call's parts, or their totals for several calls.

    `history_bytes` are messages, with separators, already sent in one of the job's earlier answered requests.
    `tools_bytes` are tool definitions without escapes, and `escape_bytes` are the escapes in messages and tool
    definitions. `frame_tokens` and `call_tokens` are the tokens that the chat format adds to prompts and replies.
    """

    bytes_sent: int = 0
    bytes_received: int = 0
    history_bytes: int = 0
    escape_bytes: int = 0
    tools_bytes: int = 0
    text_bytes: int = 0
    reply_bytes: int = 0
    frame_tokens: int = 0
    tools_tokens: int = 0
    call_tokens: int = 0
    measured_tokens: int = 0

    def plus(self, other: CallParts) -> CallParts:
        """Add the sizes of two calls."""
        return CallParts(*(mine + its for mine, its in zip(self, other, strict=True)))


class Waterfall(NamedTuple):
    """The steps in tokens: `once + history` is STATEK's estimate; the sum of all steps is the measured tokens."""

    once: int = 0
    history: int = 0
    escaping: int = 0
    envelope: int = 0
    tools: int = 0
    response: int = 0
    density: int = 0

    @property
    def estimate(self) -> int:
        """STATEK's token estimate."""
        return self.once + self.history

    @property
    def measured(self) -> int:
        """The tokens counted with a tokenizer."""
        return sum(self)

    def plus(self, other: Waterfall) -> Waterfall:
        """Add two waterfalls, step by step."""
        return Waterfall(*(mine + its for mine, its in zip(self, other, strict=True)))


def waterfall(parts: CallParts) -> Waterfall:
    """Return the steps from messages counted once to the measured tokens, for these call parts."""
    sent, received = parts.bytes_sent, parts.bytes_received
    texts = parts.text_bytes + parts.reply_bytes
    once = (sent + received - parts.history_bytes) // BYTES_PER_TOKEN
    estimate = approx_tokens(sent, received)
    unescaped = (sent + received - parts.escape_bytes) // BYTES_PER_TOKEN
    framed = (parts.tools_bytes + parts.text_bytes + received) // BYTES_PER_TOKEN + parts.frame_tokens
    seen = parts.frame_tokens + parts.tools_tokens
    tooled = (parts.text_bytes + received) // BYTES_PER_TOKEN + seen
    bare = texts // BYTES_PER_TOKEN + seen + parts.call_tokens
    return Waterfall(
        once=once,
        history=estimate - once,
        escaping=unescaped - estimate,
        envelope=framed - unescaped,
        tools=tooled - framed,
        response=bare - tooled,
        density=parts.measured_tokens - bare,
    )
