"""Engine two, the tool-calling agent: its tools, plan, budget, drivers and parts.

`AgentHarness` itself is in `statek_sim`. Your own parts, such as gates and watchers, implement this module's protocols
(`CallGate`, `TurnWatcher`, `ReplyReader`, `ToolChooser`, `Compactor`) and are passed as `Parts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.approvals import Approvals as Approvals
    from statek_sim.agent.approvals import tool_that_asks as tool_that_asks
    from statek_sim.agent.async_driver import AsyncDriver as AsyncDriver
    from statek_sim.agent.async_driver import AsyncModel as AsyncModel
    from statek_sim.agent.async_driver import LoopClock as LoopClock
    from statek_sim.agent.async_driver import model_of as model_of
    from statek_sim.agent.budget import Budget as Budget
    from statek_sim.agent.budget import BudgetName as BudgetName
    from statek_sim.agent.budget import Prices as Prices
    from statek_sim.agent.effects import Ask as Ask
    from statek_sim.agent.effects import CallGate as CallGate
    from statek_sim.agent.effects import Compactor as Compactor
    from statek_sim.agent.effects import Delayed as Delayed
    from statek_sim.agent.effects import Parts as Parts
    from statek_sim.agent.effects import PersonSaid as PersonSaid
    from statek_sim.agent.effects import Question as Question
    from statek_sim.agent.effects import ReplyReader as ReplyReader
    from statek_sim.agent.effects import SideModel as SideModel
    from statek_sim.agent.effects import ToolCall as ToolCall
    from statek_sim.agent.effects import ToolChooser as ToolChooser
    from statek_sim.agent.effects import ToolOutcome as ToolOutcome
    from statek_sim.agent.effects import ToolStatus as ToolStatus
    from statek_sim.agent.effects import TurnWatcher as TurnWatcher
    from statek_sim.agent.loop import AgentRun as AgentRun
    from statek_sim.agent.spec import AgentSpec as AgentSpec
    from statek_sim.agent.step_enforcement import Step as Step
    from statek_sim.agent.step_enforcement import StepPlan as StepPlan
    from statek_sim.agent.tools.registry import Registry as Registry
    from statek_sim.agent.tools.registry import ToolSource as ToolSource
    from statek_sim.agent.tools.tool import Tool as Tool
    from statek_sim.agent.tools.tool import api_format as api_format
    from statek_sim.agent.tools.tool import tool_from as tool_from
    from statek_sim.agent.tools.tool import tool_of_schema as tool_of_schema
    from statek_sim.virtual_loop import VirtualLoop as VirtualLoop
    from statek_sim.virtual_loop import run_in as run_in

__all__, __getattr__, __dir__ = lazy_exports(__name__)
