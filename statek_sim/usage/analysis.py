"""Usage of turns, jobs, scenarios and suites as frozen values: what tables, pages and gates read.

Five counts of the same calls that never mix: bytes and STATEK's estimate of them, characters // 4, tokens by a
tokenizer, tokens as the provider reported them, and money by STATEK's price files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from typing import Self

from statek_sim.usage.pricing import Tokens, summed
from statek_sim.usage.totals import BYTES_PER_TOKEN, NO_TOKENIZER
from statek_sim.usage.waterfall import CallParts, Waterfall, waterfall

_JOINED = " + "


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Money. None where there is neither a price nor a report.

    `statek` is what `job.usage.total_cost` says; `billed` is the same tokens by the provider's own rules; `reported`
    is what the provider said. `problems` are sentences about costs that are negative, impossible or doubtful.
    """

    statek: Decimal | None = None
    billed: Decimal | None = None
    reported: Decimal | None = None
    problems: tuple[str, ...] = ()

    def plus(self, other: Cost) -> Cost:
        """Return both together; a problem that both have is told once."""
        return Cost(
            statek=_sum(self.statek, other.statek),
            billed=_sum(self.billed, other.billed),
            reported=_sum(self.reported, other.reported),
            problems=tuple(dict.fromkeys((*self.problems, *other.problems))),
        )


NO_COST = Cost()


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The usage of some answered calls. Sizes are bytes, everything else tokens unless its name says otherwise.

    `characters` are those of all texts sent, tool definitions and replies. `reporting` is how many of the calls the
    provider reported tokens for; `reported` is their sum.
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
        """Request bodies as STATEK counts them."""
        return self.parts.bytes_sent

    @property
    def bytes_received(self) -> int:
        """Response bodies."""
        return self.parts.bytes_received

    @property
    def approx_tokens(self) -> int:
        """STATEK's estimate. A job's or a scenario's is floored once; that of a suite is the sum of its scenarios'."""
        return self.waterfall.estimate

    @property
    def character_tokens(self) -> int:
        """The rule of thumb `characters // 4`."""
        return self.characters // BYTES_PER_TOKEN

    @property
    def measured_tokens(self) -> int:
        """Prompts and completions by the tokenizer."""
        return self.measured_prompt + self.measured_completion

    @property
    def reported_tokens(self) -> int | None:
        """Prompts and completions as reported; None when no call was reported."""
        return self.reported.prompt + self.reported.completion if self.reporting else None

    @property
    def ratio(self) -> float | None:
        """Estimate / measured; None when nothing was measured."""
        return self.approx_tokens / self.measured_tokens if self.measured_tokens else None

    @property
    def tokenizer(self) -> str:
        """The tokenizers' labels; a stand-in says that it is one."""
        return _JOINED.join(self.tokenizers) or NO_TOKENIZER

    @classmethod
    def together(cls, uses: Iterable[Use], cost: Cost) -> Self:
        """Return the usage of a job or a scenario: one floor division over all its bytes."""
        found = tuple(uses)
        parts = reduce(CallParts.plus, (use.parts for use in found), CallParts())
        return cls._summed(found, parts, waterfall(parts), cost)

    @classmethod
    def total(cls, uses: Iterable[Use]) -> Self:
        """Return the sum of several scenarios' usage: columns add up, each estimate keeps its own rounding."""
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
    """One answered call; `turn` counts the job's calls from 1, unanswered ones too."""

    turn: int
    model: str
    provider: str
    use: Use


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUse:
    """One job: its answered calls in order and their sum. `stop` is why it ended, None when it did not."""

    name: str
    agent: str
    stop: str | None
    turns: tuple[TurnUse, ...]
    use: Use


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioUse:
    """One scenario under one profile. `tags` are its own; jobs without an answered call are left out."""

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
    """Several scenarios together: a suite, a language, all."""

    name: str
    scenarios: int
    use: Use

    @classmethod
    def of(cls, name: str, members: Sequence[ScenarioUse]) -> Self:
        """Return the group of these scenarios."""
        return cls(name=name, scenarios=len(members), use=Use.total(member.use for member in members))


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageAnalysis:
    """Everything about the usage of a run of scenarios, sorted by suite, scenario and profile.

    `silent` are the names of scenarios without an answered call. `price_problems` are lines about the price files.
    """

    preset: str | None
    scenarios: tuple[ScenarioUse, ...]
    suites: tuple[Group, ...]
    overall: Group
    silent: tuple[str, ...]
    price_problems: tuple[str, ...] = field(default=())


def total_cost(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    return reduce(Cost.plus, costs, NO_COST)


def _sum(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    if left is None:
        return right
    return left if right is None else left + right
