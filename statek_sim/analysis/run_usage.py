"""Computes the usage, costs and tasks of finished scenarios from their records, in linear time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby

from statek_sim.backends.call_log import AnsweredCall, reply_texts
from statek_sim.backends.record import RunRecord
from statek_sim.errors import BadInput
from statek_sim.scenario.schema import PROFILES, ScenarioText
from statek_sim.suite.result import ScenarioResult
from statek_sim.telemetry.facts import Cost as TaskCost
from statek_sim.telemetry.facts import TaskFacts, task_facts
from statek_sim.trace import LLMRequested
from statek_sim.usage.breakdown import (
    CallParts,
    Cost,
    Group,
    JobUse,
    ScenarioUse,
    TurnUse,
    UsageAnalysis,
    Use,
    total_cost,
    waterfall,
)
from statek_sim.usage.messages import REPLY_PRIMING, ReplySizes, Sizes, ToolSizes, message_sizes
from statek_sim.usage.pricing import PriceList, Tokens, cost_problems, provider_cost, statek_cost, summed
from statek_sim.usage.tokenizers import Tokenizer, TokenizerRegistry, tokenizer_for_model
from statek_sim.values import Message, ToolSpec


def tasks_of(results: Iterable[ScenarioResult], *, cost: TaskCost | None = None) -> list[TaskFacts]:
    """Return the data for each task in the results, in order and grouped by suite.

    `cost` computes a request's cost; the default uses the prices in the agents' budgets.
    """
    return [
        task
        for result in results
        for task in task_facts(
            result.record.events,
            run=result.id,
            group=result.scenario.suite,
            cost=cost or _own_cost(result.scenario),
        )
    ]


def _own_cost(scenario: ScenarioText) -> TaskCost | None:
    """Return a function that computes request costs from the prices in agents' budgets, or None if there are none."""
    prices: dict[str, set[tuple[float | None, float | None]]] = {}
    for agent in scenario.agents.values():
        budget = agent.harness.budget
        if budget.prompt_price is not None:
            prices.setdefault(agent.model, set()).add((budget.prompt_price, budget.completion_price))
            for model, text in budget.model_prices.items():
                prices.setdefault(model, set()).add((text.prompt_price, text.completion_price))

    def cost(model: str, prompt: int, completion: int) -> Decimal | None:
        found = prices.get(model, set())
        if len(found) != 1:
            return None  # Agents that pay different prices for the same model cannot be distinguished here.
        ((of_prompt, of_completion),) = found
        if of_completion is None:
            return None
        return (prompt * Decimal(str(of_prompt)) + completion * Decimal(str(of_completion))) / 1_000_000

    return cost if prices else None


def cost_by(prices: PriceList) -> TaskCost:
    """Return a function that computes request costs from the model's price rows, for any provider.

    Raises `BadInput` for a model with two prices, because a trace does not contain the provider.
    """

    def cost(model: str, prompt: int, completion: int) -> Decimal | None:
        fitting = {
            (price.input, price.output): price
            for price in prices.prices
            if price.model.casefold() == model.casefold()
        }
        if len(fitting) > 1:
            places = ", ".join(price.place for price in fitting.values())
            raise BadInput(f"model {model!r} has more than one price ({places}); keep only one of them")
        for price in fitting.values():
            return (prompt * price.input + completion * price.output) / 1_000_000
        return None

    return cost


_SEPARATOR = len(", ")
NO_PRICES = PriceList()
NO_TOOLS = ToolSizes()


def analyse(
    results: Iterable[ScenarioResult],
    *,
    prices: PriceList = NO_PRICES,
    tokenizers: TokenizerRegistry | None = None,
    preset: str | None = None,
) -> UsageAnalysis:
    """Analyse the usage of finished scenarios, given in any order.

    `tokenizers` must be the tokenizers with which the runs were measured. Only runs on the reference backend have calls
    to analyse.
    """
    ordered = sorted(results, key=_place)
    read = [scenario_use(result, prices=prices, tokenizers=tokenizers) for result in ordered]
    answered = tuple(use for use in read if use.use.calls)
    suites = groupby(answered, lambda use: use.suite)
    return UsageAnalysis(
        preset=preset,
        scenarios=answered,
        suites=tuple(Group.of(suite, list(members)) for suite, members in suites),
        overall=Group.of("all", answered),
        silent=tuple(use.name for use in read if not use.use.calls),
        price_problems=prices.problems,
    )


def scenario_use(
    result: ScenarioResult, *, prices: PriceList = NO_PRICES, tokenizers: TokenizerRegistry | None = None
) -> ScenarioUse:
    """Return a finished scenario's usage by job and turn."""
    jobs = tuple(_jobs(result.record, prices, tokenizers))
    return ScenarioUse(
        suite=result.scenario.suite,
        id=result.scenario.id,
        profile=result.profile,
        tags=tuple(result.scenario.tags),
        jobs=jobs,
        use=Use.together((job.use for job in jobs), total_cost(job.use.cost for job in jobs)),
    )


def _jobs(record: RunRecord, prices: PriceList, tokenizers: TokenizerRegistry | None) -> Iterable[JobUse]:
    requests: dict[str, list[LLMRequested]] = {}
    for event in record.events:
        if isinstance(event, LLMRequested):
            requests.setdefault(event.job, []).append(event)
    for name, calls in groupby(record.calls, lambda call: call.job):
        reader = _Reader(requests[name], prices, tokenizers)
        answered = list(calls)
        turns = tuple(map(reader.turn, answered))
        cost = _cost(prices, answered[-1], answered)
        yield JobUse(
            name=name,
            agent=record.jobs[name].agent,
            stop=record.jobs[name].stop,
            turns=turns,
            use=Use.together((turn.use for turn in turns), cost),
        )


@dataclass(slots=True)
class _Reader:
    """Follows a job's requests, tracking message sizes and the number of messages already answered."""

    requests: Sequence[LLMRequested]
    prices: PriceList
    tokenizers: TokenizerRegistry | None
    messages: list[Message] = field(default_factory=list)
    sums: list[Sizes] = field(default_factory=list)
    read: int = 0
    carried: int = 0
    label: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_sizes: ToolSizes = NO_TOOLS

    def turn(self, call: AnsweredCall) -> TurnUse:
        """Return the usage of the job's next answered call."""
        self._follow(call.turn)
        model = tokenizer_for_model(call.model, self.tokenizers)
        if model.label != self.label:
            # A new tokenizer must measure the whole conversation again.
            self.sums.clear()
            self.tools, self.tool_sizes = (), NO_TOOLS
            self.label = model.label
        sizes, tools = self._sizes(model.tokenizer), self._tool_sizes(call.tools, model.tokenizer)
        use = _use(call, sizes, tools, self._history(), self.prices)
        self.carried = len(self.messages)
        return TurnUse(turn=call.turn, model=call.model, provider=call.provider, use=use)

    def _follow(self, turn: int) -> None:
        """Replace the messages with those in a turn's request, which may also have fewer messages."""
        while self.read < len(self.requests) and self.requests[self.read].turn <= turn:
            request = self.requests[self.read]
            self.read += 1
            del self.messages[request.kept :], self.sums[request.kept :]
            self.carried = min(self.carried, request.kept)
            self.messages += request.new

    def _sizes(self, tokenizer: Tokenizer) -> Sizes:
        """Return the total size of all messages."""
        for message in self.messages[len(self.sums) :]:
            before = self.sums[-1] if self.sums else Sizes()
            self.sums.append(before.plus(message_sizes(message, tokenizer)))
        return self.sums[-1] if self.sums else Sizes()

    def _history(self) -> int:
        """Return the bytes in messages that an earlier answered request already contained, including separators."""
        if not self.carried:
            return 0
        return self.sums[self.carried - 1].json_bytes + _SEPARATOR * min(self.carried, len(self.messages) - 1)

    def _tool_sizes(self, tools: tuple[ToolSpec, ...], tokenizer: Tokenizer) -> ToolSizes:
        """Return the tool sizes, which are the same in nearly all of a job's requests."""
        if tools is not self.tools:
            self.tools, self.tool_sizes = tools, ToolSizes.of(tools, tokenizer)
        return self.tool_sizes


def _use(call: AnsweredCall, sizes: Sizes, tools: ToolSizes, history: int, prices: PriceList) -> Use:
    """Return a call's usage."""
    usage, reply = call.usage, ReplySizes.of(reply_texts(call))
    parts = CallParts(
        bytes_sent=usage.bytes_sent,
        bytes_received=usage.bytes_received,
        history_bytes=history,
        escape_bytes=sizes.escape_bytes + tools.escape_bytes,
        tools_bytes=tools.json_bytes - tools.escape_bytes,
        text_bytes=sizes.text_bytes,
        reply_bytes=reply.text_bytes,
        frame_tokens=sizes.frame_tokens + REPLY_PRIMING,
        tools_tokens=tools.tokens,
        call_tokens=reply.frame_tokens,
        measured_tokens=usage.measured_tokens,
    )
    return Use(
        calls=1,
        parts=parts,
        waterfall=waterfall(parts),
        characters=sizes.characters + tools.characters + reply.characters,
        measured_prompt=usage.measured_prompt,
        measured_completion=usage.measured_completion,
        reporting=int(_is_reported(call)),
        reported=_tokens(call),
        cost=_cost(prices, call, [call]),
        tokenizers=(usage.tokenizer,),
    )


def _is_reported(call: AnsweredCall) -> bool:
    return call.usage.reported_tokens is not None and call.usage.reported_tokens > 0


def _tokens(call: AnsweredCall) -> Tokens:
    usage = call.usage
    return Tokens(
        prompt=usage.reported_prompt or 0,
        completion=usage.reported_completion or 0,
        cached=usage.reported_cached or 0,
    )


def _cost(prices: PriceList, last: AnsweredCall, calls: Sequence[AnsweredCall]) -> Cost:
    """Return the calls' cost; as in STATEK, all tokens are charged at the price of the last call's model."""
    tokens = summed(map(_tokens, calls))
    costs = [call.usage.reported_cost for call in calls if call.usage.reported_cost is not None]
    reported = sum((Decimal(str(cost)) for cost in costs), Decimal()) if costs else None
    found = prices.find(last.provider, last.model)
    problems = [] if reported is None or reported >= 0 else [f"negative cost {reported:f} reported"]
    if not found or tokens.prompt + tokens.completion <= 0:
        return Cost(statek=reported, billed=reported, reported=reported, problems=tuple(problems))
    price = found[0]
    if len(found) > 1:
        places = ", ".join(usage.place for usage in found)
        problems.append(
            f"{last.provider} {last.model} has several prices ({places}); which price STATEK uses is unspecified"
        )
    problems += cost_problems(price, tokens, last.provider)
    if len({call.model for call in calls}) > 1:
        problems.append(f"several models, with all tokens charged at the price of {last.model}")
    return Cost(
        statek=statek_cost(price, tokens),
        billed=provider_cost(price, tokens, last.provider),
        reported=reported,
        problems=tuple(problems),
    )


def _place(result: ScenarioResult) -> tuple[str, str, int]:
    known: tuple[str, ...] = PROFILES
    place = known.index(result.profile) if result.profile in known else len(known)
    return result.scenario.suite, result.scenario.id, place
