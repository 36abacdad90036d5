"""Our side of `bench.agent`: a model that calls one tool with a new argument each time, and finally answers.

`python -m bench.agent_ours WHAT TURNS` prints one number: CPU seconds from the first request; for `fifths`, the ratio
of the last fifth of the requests to the first; for `spans`, the spans' percentage of the run.

`fifths` compares medians of a hundred requests each. Two hundreds out of 5,000 are 20 ms longer because of a full
garbage collection, which repeats whenever objects grow by a quarter, so its cost per turn does not grow either.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import median
from time import process_time
from typing import Any, Final

from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.spec import Choice
from statek_sim.agent.tools.tool import Tool, tool_from
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.script import Reply, text, tool_call
from statek_sim.providers.scripted import FunctionLLM, ScriptedLLM
from statek_sim.spans.build import spans_of

MANY: Final = 1_000


def price_of(item: str, number: int) -> str:
    """Return the price of an item.

    Args:
        item: Name of the item.
        number: How many.
    """
    return f"{item}: {3 * number}"


def _run(turns: int, registered: int = 0, *, parts: int = 1) -> list[float]:
    """Run one agent for this many requests; return the seconds for each part."""
    marks: list[float] = []
    part = max(1, turns // parts)

    def answer(request: ChatRequest) -> Reply:
        if (request.turn - 1) % part == 0:
            marks.append(process_time())
        return (
            tool_call("price_of", item="apple", number=request.turn) if request.turn < turns else text("done")
        )

    own = tool_from(price_of)
    others = [
        Tool(name=f"tool_{number}", description=f"Do {number}.", parameters=own.parameters, run=price_of)
        for number in range(registered)
    ]
    agent = AgentHarness(
        FunctionLLM(answer),
        tools=[own, *others],
        choice=Choice(names=["price_of"]),
        max_iterations=turns,
        **BARE,
    )
    run = agent.run("Look the prices up.")
    marks.append(process_time())
    if run.stop != "final" or len(run.counters.turns) != turns or not run.counters.usage.measured_tokens:
        raise SystemExit(f"the run ended by {run.stop} after {len(run.counters.turns)} requests")
    return [after - before for before, after in pairwise(marks)]


class Bodies:
    """A model that immediately answers with HTTP response bytes, comparable to a client that answers with objects."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self.began = 0.0

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer a request."""
        self.began = self.began or process_time()
        if request.turn == self._turns:
            return RawReply(_TEXT)
        return RawReply(_CALL % (request.turn, request.turn))


_USAGE: Final = b'"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}'
_TEXT: Final = (
    b'{"choices":[{"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}],' + _USAGE + b"}"
)
_CALL: Final = (
    b'{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call-%d","type":"function",'
    b'"function":{"name":"price_of","arguments":"{\\"item\\": \\"apple\\", \\"number\\": %d}"}}]},'
    b'"finish_reason":"tool_calls"}],' + _USAGE + b"}"
)


def _bodies(turns: int) -> float:
    """Return the median seconds, from the first request on, of runs whose model costs almost nothing."""
    took = []
    for _ in range(1 + runs_of(turns)):
        model = Bodies(turns)
        run = AgentHarness(model, tools=[price_of], max_iterations=turns, **BARE).run("Look the prices up.")
        took.append(process_time() - model.began)
        if run.stop != "final" or len(run.calls) != turns - 1 or not run.counters.usage.measured_tokens:
            raise SystemExit(f"the run ended by {run.stop} after {len(run.calls)} calls")
    return median(took[1:])


def runs_of(turns: int) -> int:
    """Return how many runs to measure after the first one, because a short run takes only three milliseconds."""
    return max(1, 1_200 // turns)


def _turns(turns: int) -> float:
    _run(50)
    return sum(_run(turns))


def _fifths(turns: int) -> float:
    """Return the ratio of the last fifth's seconds to the first fifth's, by the medians of their tenths."""
    _run(50)
    tenths = _run(turns, parts=50)
    return median(tenths[40:50]) / median(tenths[:10])


def _many_tools(turns: int) -> float:
    _run(50, MANY)
    return sum(_run(turns, MANY))


def _spans(turns: int) -> float:
    """Return the spans' percentage of a run with a scripted model."""
    run_seconds, span_seconds = [], []
    for _ in range(25):
        script = [tool_call("price_of", item="apple", number=number) for number in range(1, turns)]
        agent = AgentHarness(
            ScriptedLLM([*script, text("done")]), tools=[price_of], max_iterations=turns, **BARE
        )
        began = process_time()
        agent.run("Look the prices up.")
        ended = process_time()
        spans = spans_of(agent.trace.events, "bench")
        span_seconds.append(process_time() - ended)
        run_seconds.append(ended - began)
        if len(spans) != 3 * turns:
            raise SystemExit(f"{turns} requests have {len(spans)} spans, expected {3 * turns}")
    return 100 * min(span_seconds) / min(run_seconds)


BARE: Final[Mapping[str, Any]] = {"rescue": False, "protection": False, "context": None}
"""Only the loop is measured."""

_WORK: Final[Mapping[str, Callable[[int], float]]] = {
    "turns": _turns,
    "bodies": _bodies,
    "fifths": _fifths,
    "many_tools": _many_tools,
    "spans": _spans,
}


if __name__ == "__main__":
    print(_WORK[sys.argv[1]](int(sys.argv[2])))
