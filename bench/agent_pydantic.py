"""pydantic-ai's side of `bench.agent`: the same work on its FunctionModel.

`python -m bench.agent_pydantic TURNS` prints the CPU seconds for a run with this many requests.
"""

from __future__ import annotations

import sys
from time import process_time

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from bench.agent_ours import price_of


def turns(count: int) -> float:
    """Run one agent for `count` requests; return the seconds it took, without setup."""
    requests = 0

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        nonlocal requests
        requests += 1
        if requests % count:
            call = ToolCallPart(
                "price_of", {"item": "apple", "number": requests}, tool_call_id=f"call-{requests}"
            )
            return ModelResponse(parts=[call])
        return ModelResponse(parts=[TextPart("done")])

    agent = Agent(FunctionModel(answer), tools=[price_of])
    started = process_time()
    agent.run_sync("Look the prices up.", usage_limits=UsageLimits(request_limit=None))
    return process_time() - started


if __name__ == "__main__":
    turns(5)
    print(turns(int(sys.argv[1])))
