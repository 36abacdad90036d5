"""The rest of the STATEK API (engine one): jobs, subtasks, futures, the workspace, queues and time.

`statek_sim` itself has `Agent`, `DialogAgent`, `tool`, `error_handler`, `Runtime` and `LLM_Harness`.
"""

from statek_sim.clock import VirtualClock
from statek_sim.errors import LLM_HarnessError
from statek_sim.harness.current import get_llm_harness, get_statek_settings
from statek_sim.harness.settings import StatekSettings
from statek_sim.runtime.agents.agent import JobDef, RecurringReminder
from statek_sim.runtime.execution.runtime import RunOutcome
from statek_sim.runtime.execution.toolbox import get_all, get_any
from statek_sim.runtime.jobs.job import Job, get_current_agent, get_current_job
from statek_sim.runtime.jobs.subtask import (
    SubTaskHandler,
    SubTaskState,
    TaskError,
    complete_sub_task,
    create_sub_task,
    subtask,
)
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.context import get_current_agent_name
from statek_sim.runtime.state.error_handlers import is_valid_error_handler
from statek_sim.runtime.state.futures import FutureError, FutureResult, Signal, temporal
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.stored.storable_types import stored
from statek_sim.runtime.task import (
    create_new_job,
    delegate_mute_dialog,
    delegate_mute_task,
    delegate_task,
    start_dialog,
)
from statek_sim.world.queue import QueueOwner, WorkItem, WorkQueue

__all__ = [
    "ChatStyle",
    "FutureError",
    "FutureResult",
    "Job",
    "JobDef",
    "JobStatus",
    "LLM_HarnessError",
    "PyEnv",
    "QueueOwner",
    "RecurringReminder",
    "RunOutcome",
    "Signal",
    "StatekSettings",
    "SubTaskHandler",
    "SubTaskState",
    "TaskError",
    "VirtualClock",
    "WorkItem",
    "WorkQueue",
    "complete_sub_task",
    "create_new_job",
    "create_sub_task",
    "delegate_mute_dialog",
    "delegate_mute_task",
    "delegate_task",
    "get_all",
    "get_any",
    "get_current_agent",
    "get_current_agent_name",
    "get_current_job",
    "get_llm_harness",
    "get_statek_settings",
    "is_valid_error_handler",
    "start_dialog",
    "stored",
    "subtask",
    "temporal",
]
