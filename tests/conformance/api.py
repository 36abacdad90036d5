"""The decorators and helpers that the shared tools are written with: those of the package that is being driven.

`drive_installed` imports the real package before anything else here; everywhere else it is ours.
"""

import sys
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING or "statek" not in sys.modules:
    from statek_sim.runtime.jobs.job import get_current_job
    from statek_sim.runtime.jobs.subtask import complete_sub_task, create_sub_task, subtask
    from statek_sim.runtime.state.error_handlers import error_handler
    from statek_sim.runtime.state.futures import (
        FutureError,
        FutureResult,
        get_all_future,
        get_any_future,
        temporal,
    )
    from statek_sim.runtime.stored.storable_types import stored
    from statek_sim.runtime.task import (
        create_new_job,
        delegate_mute_dialog,
        delegate_mute_task,
        delegate_task,
    )
    from statek_sim.runtime.tools.declaration import tool
else:
    import dbzero
    from statek import (
        complete_sub_task,
        create_new_job,
        create_sub_task,
        error_handler,
        get_current_job,
        subtask,
        tool,
    )
    from statek.exceptions import FutureError
    from statek.future import FutureResult, get_all_future, get_any_future, temporal
    from statek.task import delegate_mute_dialog, delegate_mute_task, delegate_task

    stored = dbzero.memo


def text_seen_by_agents(value: Any) -> str:
    """Return what `print(value)` shows to an agent."""
    if "statek" in sys.modules:
        from statek.executors.utils import _fmt_print_arg as shown
    else:
        from statek_sim.sandbox.llm_repr import format_print_arg as shown
    return str(shown(value))


__all__ = [
    "FutureError",
    "FutureResult",
    "complete_sub_task",
    "create_new_job",
    "create_sub_task",
    "delegate_mute_dialog",
    "delegate_mute_task",
    "delegate_task",
    "error_handler",
    "get_all_future",
    "get_any_future",
    "get_current_job",
    "stored",
    "subtask",
    "temporal",
    "text_seen_by_agents",
    "tool",
]
