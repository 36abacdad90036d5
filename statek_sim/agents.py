"""Engine two, the agent that calls tools: its parts, tools, plan and drivers. `AgentHarness` is in `statek_sim`.

Your own gates, watchers and other parts implement the protocols here (`CallGate`, `TurnWatcher`, `ReplyReader`,
`ToolChooser`, `Compactor`, `Guard`) and are passed as `Parts`.
"""

from statek_sim.agent.approvals import Approvals, tool_that_asks
from statek_sim.agent.async_driver import AsyncDriver, AsyncModel, LoopClock, model_of
from statek_sim.agent.budget import Budget, BudgetName, Prices
from statek_sim.agent.effects import (
    Ask,
    CallGate,
    Compactor,
    Delayed,
    Parts,
    PersonSaid,
    Question,
    ReplyReader,
    SideModel,
    ToolCall,
    ToolChooser,
    ToolOutcome,
    ToolStatus,
    TurnWatcher,
)
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.spec import AgentSpec
from statek_sim.agent.step_enforcement import Step, StepPlan
from statek_sim.agent.tools.registry import Registry, ToolSource
from statek_sim.agent.tools.tool import Tool, api_format, tool_from, tool_of_schema
from statek_sim.agent.virtual_loop import VirtualLoop, run_in

__all__ = [
    "AgentRun",
    "AgentSpec",
    "Approvals",
    "Ask",
    "AsyncDriver",
    "AsyncModel",
    "Budget",
    "BudgetName",
    "CallGate",
    "Compactor",
    "Delayed",
    "LoopClock",
    "Parts",
    "PersonSaid",
    "Prices",
    "Question",
    "Registry",
    "ReplyReader",
    "SideModel",
    "Step",
    "StepPlan",
    "Tool",
    "ToolCall",
    "ToolChooser",
    "ToolOutcome",
    "ToolSource",
    "ToolStatus",
    "TurnWatcher",
    "VirtualLoop",
    "api_format",
    "model_of",
    "run_in",
    "tool_from",
    "tool_of_schema",
    "tool_that_asks",
]
