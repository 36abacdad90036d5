"""A scripted LLM, a deterministic runtime for STATEK jobs, an agent that calls tools, and suites of scenarios.

This package exports the names most often used in tests, agents and tools. More specialized names are in modules such as
`statek_sim.jobs`, `.agents`, `.script`, `.checks`, `.server` and `.evals`. Modules are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.effects import ToolContext as ToolContext
    from statek_sim.agent.harness import AgentHarness as AgentHarness
    from statek_sim.errors import StatekSimError as StatekSimError
    from statek_sim.harness.harness import LLM_Harness as LLM_Harness
    from statek_sim.harness.preset import load_preset as load_preset
    from statek_sim.providers.script import code as code
    from statek_sim.providers.script import fault as fault
    from statek_sim.providers.script import python as python
    from statek_sim.providers.script import raw as raw
    from statek_sim.providers.script import text as text
    from statek_sim.providers.script import timeout as timeout
    from statek_sim.providers.script import tool_call as tool_call
    from statek_sim.providers.script import tool_calls as tool_calls
    from statek_sim.providers.scripted import FunctionLLM as FunctionLLM
    from statek_sim.providers.scripted import ScriptedLLM as ScriptedLLM
    from statek_sim.runtime.agents.agent import Agent as Agent
    from statek_sim.runtime.agents.agent import DialogAgent as DialogAgent
    from statek_sim.runtime.execution.runtime import Runtime as Runtime
    from statek_sim.runtime.state.error_handlers import error_handler as error_handler
    from statek_sim.runtime.tools.declaration import tool as tool

__all__, __getattr__, __dir__ = lazy_exports(__name__)
