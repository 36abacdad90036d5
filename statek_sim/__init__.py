"""A deterministic reference runtime for STATEK agents, a scripted LLM, and scenario suites.

The names that agents, tools and tests use are importable from here. Nothing is loaded until it is used, so
importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from statek_sim.agent.asynchronous import AsyncDriver as AsyncDriver
    from statek_sim.agent.asynchronous import LoopClock as LoopClock
    from statek_sim.agent.asynchronous import model_of as model_of
    from statek_sim.agent.budget import Budget as Budget
    from statek_sim.agent.context.contract import check_compaction as check_compaction
    from statek_sim.agent.context.settings import ContextSettings as ContextSettings
    from statek_sim.agent.effects import Delayed as Delayed
    from statek_sim.agent.effects import Parts as Parts
    from statek_sim.agent.effects import ToolContext as ToolContext
    from statek_sim.agent.harness import AgentHarness as AgentHarness
    from statek_sim.agent.protection.contract import check_breaker as check_breaker
    from statek_sim.agent.rescue.contract import check_rescue_parser as check_rescue_parser
    from statek_sim.agent.steps.contract import check_step_enforcer as check_step_enforcer
    from statek_sim.agent.steps.enforcement import Step as Step
    from statek_sim.agent.steps.enforcement import StepPlan as StepPlan
    from statek_sim.agent.tools.contract import check_tool_registry as check_tool_registry
    from statek_sim.agent.tools.registry import Registry as Registry
    from statek_sim.agent.tools.tool import Tool as Tool
    from statek_sim.agent.tools.tool import tool_from as tool_from
    from statek_sim.agent.tools.tool import tool_of_schema as tool_of_schema
    from statek_sim.clock import VirtualClock as VirtualClock
    from statek_sim.errors import LLM_HarnessError as LLM_HarnessError
    from statek_sim.errors import StatekSimError as StatekSimError
    from statek_sim.harness.current import get_llm_harness as get_llm_harness
    from statek_sim.harness.current import get_statek_settings as get_statek_settings
    from statek_sim.harness.harness import LLM_Harness as LLM_Harness
    from statek_sim.harness.preset import load_preset as load_preset
    from statek_sim.harness.settings import StatekSettings as StatekSettings
    from statek_sim.providers.contract import check_provider as check_provider
    from statek_sim.providers.function import FunctionLLM as FunctionLLM
    from statek_sim.providers.network import forbid_network as forbid_network
    from statek_sim.providers.protocol import ChatRequest as ChatRequest
    from statek_sim.providers.protocol import Provider as Provider
    from statek_sim.providers.protocol import RawReply as RawReply
    from statek_sim.providers.script import ScriptedCall as ScriptedCall
    from statek_sim.providers.script import code as code
    from statek_sim.providers.script import fault as fault
    from statek_sim.providers.script import python as python
    from statek_sim.providers.script import raw as raw
    from statek_sim.providers.script import text as text
    from statek_sim.providers.script import timeout as timeout
    from statek_sim.providers.script import tool_call as tool_call
    from statek_sim.providers.script import tool_calls as tool_calls
    from statek_sim.providers.scripted import ScriptedLLM as ScriptedLLM
    from statek_sim.runtime.agents.agent import Agent as Agent
    from statek_sim.runtime.agents.agent import DialogAgent as DialogAgent
    from statek_sim.runtime.agents.agent import RecurringReminder as RecurringReminder
    from statek_sim.runtime.agents.job_def import JobDef as JobDef
    from statek_sim.runtime.execution.builtin_tools import get_all as get_all
    from statek_sim.runtime.execution.builtin_tools import get_any as get_any
    from statek_sim.runtime.execution.runtime import Runtime as Runtime
    from statek_sim.runtime.jobs.current import get_current_agent as get_current_agent
    from statek_sim.runtime.jobs.current import get_current_job as get_current_job
    from statek_sim.runtime.jobs.job import Job as Job
    from statek_sim.runtime.jobs.subtask import SubTaskHandler as SubTaskHandler
    from statek_sim.runtime.jobs.subtask import SubTaskState as SubTaskState
    from statek_sim.runtime.jobs.subtask import TaskError as TaskError
    from statek_sim.runtime.jobs.subtask import complete_sub_task as complete_sub_task
    from statek_sim.runtime.jobs.subtask import create_sub_task as create_sub_task
    from statek_sim.runtime.jobs.subtask import subtask as subtask
    from statek_sim.runtime.state.chat_style import ChatStyle as ChatStyle
    from statek_sim.runtime.state.context import get_current_agent_name as get_current_agent_name
    from statek_sim.runtime.state.error_handlers import error_handler as error_handler
    from statek_sim.runtime.state.error_handlers import is_valid_error_handler as is_valid_error_handler
    from statek_sim.runtime.state.futures import FutureError as FutureError
    from statek_sim.runtime.state.futures import FutureResult as FutureResult
    from statek_sim.runtime.state.futures import Signal as Signal
    from statek_sim.runtime.state.futures import temporal as temporal
    from statek_sim.runtime.state.pyenv import PyEnv as PyEnv
    from statek_sim.runtime.state.status import JobStatus as JobStatus
    from statek_sim.runtime.stored.storable_types import stored as stored
    from statek_sim.runtime.task import create_new_job as create_new_job
    from statek_sim.runtime.task import delegate_mute_dialog as delegate_mute_dialog
    from statek_sim.runtime.task import delegate_mute_task as delegate_mute_task
    from statek_sim.runtime.task import delegate_task as delegate_task
    from statek_sim.runtime.task import start_dialog as start_dialog
    from statek_sim.runtime.tools.declaration import tool as tool
    from statek_sim.world.queue import QueueOwner as QueueOwner
    from statek_sim.world.queue import WorkItem as WorkItem
    from statek_sim.world.queue import WorkQueue as WorkQueue

_HOMES: Final = {
    "statek_sim.agent.asynchronous": (
        "AsyncDriver",
        "LoopClock",
        "model_of",
    ),
    "statek_sim.agent.budget": ("Budget",),
    "statek_sim.agent.context.settings": ("ContextSettings",),
    "statek_sim.agent.effects": (
        "Delayed",
        "Parts",
        "ToolContext",
    ),
    "statek_sim.agent.harness": ("AgentHarness",),
    "statek_sim.agent.steps.enforcement": (
        "Step",
        "StepPlan",
    ),
    "statek_sim.agent.tools.registry": ("Registry",),
    "statek_sim.agent.tools.tool": (
        "Tool",
        "tool_from",
        "tool_of_schema",
    ),
    "statek_sim.agent.context.contract": ("check_compaction",),
    "statek_sim.agent.protection.contract": ("check_breaker",),
    "statek_sim.agent.rescue.contract": ("check_rescue_parser",),
    "statek_sim.agent.steps.contract": ("check_step_enforcer",),
    "statek_sim.agent.tools.contract": ("check_tool_registry",),
    "statek_sim.clock": ("VirtualClock",),
    "statek_sim.errors": ("LLM_HarnessError", "StatekSimError"),
    "statek_sim.harness.current": ("get_llm_harness", "get_statek_settings"),
    "statek_sim.harness.harness": ("LLM_Harness",),
    "statek_sim.harness.preset": ("load_preset",),
    "statek_sim.harness.settings": ("StatekSettings",),
    "statek_sim.providers.contract": ("check_provider",),
    "statek_sim.providers.function": ("FunctionLLM",),
    "statek_sim.providers.network": ("forbid_network",),
    "statek_sim.providers.protocol": ("ChatRequest", "Provider", "RawReply"),
    "statek_sim.providers.script": (
        "ScriptedCall",
        "code",
        "fault",
        "python",
        "raw",
        "text",
        "timeout",
        "tool_call",
        "tool_calls",
    ),
    "statek_sim.providers.scripted": ("ScriptedLLM",),
    "statek_sim.runtime.agents.agent": ("Agent", "DialogAgent", "RecurringReminder"),
    "statek_sim.runtime.execution.builtin_tools": ("get_all", "get_any"),
    "statek_sim.runtime.state.chat_style": ("ChatStyle",),
    "statek_sim.runtime.jobs.current": ("get_current_agent", "get_current_job"),
    "statek_sim.runtime.state.context": ("get_current_agent_name",),
    "statek_sim.runtime.state.error_handlers": ("error_handler", "is_valid_error_handler"),
    "statek_sim.runtime.state.futures": ("FutureError", "FutureResult", "Signal", "temporal"),
    "statek_sim.runtime.jobs.job": ("Job",),
    "statek_sim.runtime.agents.job_def": ("JobDef",),
    "statek_sim.runtime.state.pyenv": ("PyEnv",),
    "statek_sim.runtime.execution.runtime": ("Runtime",),
    "statek_sim.runtime.state.status": ("JobStatus",),
    "statek_sim.runtime.stored.storable_types": ("stored",),
    "statek_sim.runtime.jobs.subtask": (
        "SubTaskHandler",
        "SubTaskState",
        "TaskError",
        "complete_sub_task",
        "create_sub_task",
        "subtask",
    ),
    "statek_sim.runtime.task": (
        "create_new_job",
        "delegate_mute_dialog",
        "delegate_mute_task",
        "delegate_task",
        "start_dialog",
    ),
    "statek_sim.runtime.tools.declaration": ("tool",),
    "statek_sim.world.queue": ("QueueOwner", "WorkItem", "WorkQueue"),
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605  # one list, kept with the modules


def __getattr__(name: str) -> Any:
    """Load a public name from its module at first use."""
    try:
        module = _HOME_OF[name]
    except KeyError:
        raise AttributeError(f"module 'statek_sim' has no attribute {name!r}") from None
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
