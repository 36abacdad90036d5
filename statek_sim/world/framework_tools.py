"""Tools that use the framework itself: delegation, subtasks, its harness, its rules for handlers."""

# No postponed annotations here: STATEK reads the hints of tools as objects, not as text, when it decides whether
# a string argument names a variable.
from collections.abc import Callable
from typing import Any

from statek_sim.world.tool_api import ToolApi
from statek_sim.world.world import World


def framework_tools(_: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the tools that ask the framework about itself."""

    def undecorated(context: Any, error: Any = None) -> None:
        """Lack the decorator."""

    @api.error_handler
    def public_name(context: Any, error: Any = None) -> None:
        """Lack the underscore."""

    @api.error_handler
    def _one_parameter(context: Any) -> None:
        """Lack the error."""

    @api.error_handler
    def _error_required(context: Any, error: Any) -> None:
        """Lack the default."""

    @api.error_handler
    def _good(context: Any, error: Any = None) -> None:
        """Follow the protocol."""

    candidates = {
        "undecorated": undecorated,
        "public name": public_name,
        "one parameter": _one_parameter,
        "error required": _error_required,
        "good": _good,
    }

    @api.tool
    def make_tool_with_handler(kind: str, **kwargs: Any) -> str:
        """Declare a tool whose error handler is of this kind; tell whether the framework took it."""

        def claim(**kwargs: Any) -> None:
            """Claim nothing."""

        try:
            api.tool(error_handler=candidates[kind])(claim)
        except TypeError:
            return "refused"
        return "accepted"

    @api.tool
    def harness_limit(name: str, **kwargs: Any) -> Any:
        """Return a limit of the process's harness."""
        return getattr(api.get_llm_harness(), name)

    return [make_tool_with_handler, harness_limit]


def delegation_tools(_: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the tools that hand work to other agents."""

    @api.subtask
    def start_subtask(role: str, **kwargs: Any) -> Any:
        """Hand a task to another agent."""
        return api.create_new_job(api.agents[role], shared_vars={}, parent_job=api.get_current_job())

    @api.tool
    def finish_subtask(result: Any = None, error: str | None = None, **kwargs: Any) -> None:
        """Report the outcome of this job's task to whoever delegated it."""
        api.complete_sub_task(result=result, error=error)

    @api.tool
    def delegate(role: str, **kwargs: Any) -> Any:
        """Hand a task to another agent and return a future of its outcome."""
        return api.delegate_task(api.agents[role], parent_job=api.get_current_job())

    return [start_subtask, finish_subtask, delegate]
