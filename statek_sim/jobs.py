"""STATEK API names (engine one) that are not in `statek_sim`: jobs, subtasks, futures, the workspace and queues.

`statek_sim` has `Agent`, `DialogAgent`, `tool`, `error_handler`, `Runtime` and `LLM_Harness`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.clock import VirtualClock as VirtualClock
    from statek_sim.errors import LLM_HarnessError as LLM_HarnessError
    from statek_sim.harness.current import get_llm_harness as get_llm_harness
    from statek_sim.harness.current import get_statek_settings as get_statek_settings
    from statek_sim.harness.settings import StatekSettings as StatekSettings
    from statek_sim.runtime.agents.agent import JobDef as JobDef
    from statek_sim.runtime.agents.agent import RecurringReminder as RecurringReminder
    from statek_sim.runtime.execution.runtime import RunOutcome as RunOutcome
    from statek_sim.runtime.execution.toolbox import get_all as get_all
    from statek_sim.runtime.execution.toolbox import get_any as get_any
    from statek_sim.runtime.jobs.job import Job as Job
    from statek_sim.runtime.jobs.job import get_current_agent as get_current_agent
    from statek_sim.runtime.jobs.job import get_current_job as get_current_job
    from statek_sim.runtime.jobs.subtask import SubTaskHandler as SubTaskHandler
    from statek_sim.runtime.jobs.subtask import SubTaskState as SubTaskState
    from statek_sim.runtime.jobs.subtask import TaskError as TaskError
    from statek_sim.runtime.jobs.subtask import complete_sub_task as complete_sub_task
    from statek_sim.runtime.jobs.subtask import create_sub_task as create_sub_task
    from statek_sim.runtime.jobs.subtask import subtask as subtask
    from statek_sim.runtime.state.chat_style import ChatStyle as ChatStyle
    from statek_sim.runtime.state.context import get_current_agent_name as get_current_agent_name
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
    from statek_sim.world.queue import QueueOwner as QueueOwner
    from statek_sim.world.queue import WorkItem as WorkItem
    from statek_sim.world.queue import WorkQueue as WorkQueue

__all__, __getattr__, __dir__ = lazy_exports(__name__)
