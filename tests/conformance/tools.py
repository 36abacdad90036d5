"""The tools of the conformance agents, written once and run on both runtimes.

Module-level functions without postponed annotations: the real package stores tools by name and reads their hints.
"""

import asyncio
import datetime
from typing import Any, Optional

from tests.conformance.api import (
    FutureError,
    FutureResult,
    complete_sub_task,
    create_new_job,
    create_sub_task,
    delegate_mute_dialog,
    delegate_mute_task,
    delegate_task,
    error_handler,
    get_all_future,
    get_any_future,
    get_current_job,
    stored,
    subtask,
    temporal,
    tool,
)
from tests.conformance.world import WORLD

# -- plain tools ---------------------------------------------------------------------------------------------------


@tool
def note(text: str, **kwargs: Any) -> None:
    """Write a line into the ledger."""
    WORLD.ledger.append(str(text))


@tool
def refuse(text: str, **kwargs: Any) -> None:
    """Write a line into the ledger, then refuse."""
    WORLD.ledger.append(str(text))
    raise ValueError("refused")


@tool
def fail(message: str, **kwargs: Any) -> None:
    """Fail."""
    raise RuntimeError(message)


@tool
async def slow(text: str, **kwargs: Any) -> str:
    """Take a moment.

    The first paragraph alone is shown.

    Args:
        text: What to say before and after.
    """
    print(f"enter {text}")
    await asyncio.sleep(0.01)
    print(f"leave {text}")
    return text


@tool
async def slow_failure(text: str, **kwargs: Any) -> str:
    """Take a moment, then fail."""
    print(f"enter {text}")
    await asyncio.sleep(0.01)
    raise LookupError(text)


@tool
def talk(first: str, second: int = 2, **kwargs: Any) -> str:
    """Print two lines and return a third."""
    print(first)
    print(second, [1, "x"])
    return f"{first} {second}"


@tool
def table(rows: int = 3, **kwargs: Any) -> list[dict[str, Any]]:
    """Return a table of numbers."""
    return [{"id": n, "name": f"row {n}", "share": n / 4} for n in range(rows)]


@tool
def echo(value: Any, **kwargs: Any) -> Any:
    """Return the value."""
    return value


@tool
def kind(value: int, **kwargs: Any) -> str:
    """Tell what kind of value arrived where a number was wanted."""
    return f"{type(value).__name__} {value}"


@tool
def kind_of_text(value: str, **kwargs: Any) -> str:
    """Tell what kind of value arrived where text was wanted."""
    return f"{type(value).__name__} {value}"


@tool
def day_after(day: datetime.date, **kwargs: Any) -> str:
    """Return the day after."""
    return f"{type(day).__name__} {day + datetime.timedelta(days=1)}"


@tool
def how_many(values: Optional[list[Any]] = None, *, unit: str = "pieces", **kwargs: Any) -> str:  # noqa: UP045
    """Count values.

    Args:
        values: A list, or its name.
        unit: What they are counted in.
    """
    return f"{'no' if values is None else len(values)} {unit}"


@tool
def maybe(value: int | None = None, **kwargs: Any) -> str:
    """Take a number or nothing."""
    return f"{type(value).__name__} {value}"


@tool
def locals_seen(name: str, **kwargs: Any) -> str:
    """Look a name up in the workspace."""
    context = kwargs.get("_local_context") or {}
    return f"{name} is {context.get(name)!r}"


@tool
def leave(status: str, **kwargs: Any) -> str:
    """End the job from inside a tool."""
    exit(status)  # noqa: PLR1722  # the runtime's exit
    return "left"


@tool
def interrupt(text: str, **kwargs: Any) -> None:
    """Let the user write to this job while the tool runs."""
    get_current_job().push_user_message(text)  # type: ignore[union-attr]  # tools run in jobs


@tool
def _count(**kwargs: Any) -> int:
    """Count the lines of the ledger; not for models."""
    return len(WORLD.ledger)


@tool(hidden=True)
def secret(**kwargs: Any) -> str:
    """Return something that models must not see."""
    WORLD.ledger.append("secret")
    return "hidden value"


# -- waiting -------------------------------------------------------------------------------------------------------


@stored
class Awaited(FutureResult):
    """The value of an external event."""

    def __init__(self, name: str) -> None:
        super().__init__(deps=None, state_num=0)
        self.name = name


def _has_happened(future: Any) -> bool:
    return future.name in WORLD.happened


def _value(future: Any) -> Any:
    if future.name not in WORLD.happened:
        raise FutureError(future)
    return WORLD.happened[future.name]


def _pair(future: Any) -> tuple[Any, Any]:
    return _value(future)  # type: ignore[no-any-return]  # the case resolves it with two values


@temporal(complement=_value, condition=_has_happened)
@tool
def wait_for(name: str, **kwargs: Any) -> Any:
    """Wait for an event."""
    WORLD.ledger.append(f"wait {name}")
    return Awaited(name)


@temporal(complement=_pair, condition=_has_happened)
@tool
def wait_for_pair(name: str, **kwargs: Any) -> Any:
    """Wait for an event that brings two values."""
    return Awaited(name)


def _one(name: str) -> Any:
    future = Awaited(name)
    future.set_complement_functions(_value, _has_happened)
    return future


@tool
def wait_for_any(first: str, second: str, **kwargs: Any) -> Any:
    """Wait for the first of two events."""
    return get_any_future(_one(first), _one(second))


@tool
def wait_for_all(first: str, second: str, **kwargs: Any) -> Any:
    """Wait for two events."""
    return get_all_future(_one(first), _one(second))


def _cannot_tell(future: Any) -> bool:
    raise ConnectionError(f"nobody knows about {future.name}")


@temporal(complement=_value, condition=_cannot_tell)
@tool
def wait_unknown(name: str, **kwargs: Any) -> Any:
    """Wait for an event that nobody can ask about."""
    return Awaited(name)


# -- claims and their cleanup --------------------------------------------------------------------------------------


@stored
class Item:
    """A thing that can be claimed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = "CLAIMED"


def _record(handler: str, context: Any, error: Any) -> None:
    shown = "None" if context is None else f"{context.name} {context.status}"
    kind_of_error = "None" if error is None else f"{type(error).__name__}: {error}"
    WORLD.handled.append(f"{handler}({shown}) after {kind_of_error}")


@error_handler
def _give_back(context: Any, error: Any = None) -> None:
    _record("give_back", context, error)
    if context is not None:
        context.status = "READY"


@error_handler
def _break_down(context: Any, error: Any = None) -> None:
    _record("break_down", context, error)
    raise RuntimeError("cleanup failed")


@tool(error_handler=_give_back)
def claim(name: str, **kwargs: Any) -> Any:
    """Claim an item; it is given back if the job dies."""
    WORLD.ledger.append(f"claim {name}")
    return Item(name)


@tool(error_handler=_give_back)
def claim_nothing(**kwargs: Any) -> Any:
    """Find nothing to claim."""
    return None


@tool(error_handler=_break_down)
def claim_fragile(name: str, **kwargs: Any) -> Any:
    """Claim an item whose cleanup fails."""
    return Item(name)


@tool(error_handler=_give_back)
def claim_and_fail(name: str, **kwargs: Any) -> Any:
    """Claim an item, then fail."""
    WORLD.ledger.append(f"claim {name}")
    raise RuntimeError(f"cannot claim {name}")


def _claimed(future: Any) -> Any:
    if future.name not in WORLD.happened:
        raise FutureError(future)
    return Item(future.name)


@temporal(complement=_claimed, condition=_has_happened)
@tool(error_handler=_give_back)
def claim_later(name: str, **kwargs: Any) -> Any:
    """Claim an item as soon as there is one."""
    return Awaited(name)


@tool
def status_of(item: Item, **kwargs: Any) -> str:
    """Return the status of an item."""
    return item.status


# -- other jobs ----------------------------------------------------------------------------------------------------


@subtask
def start_task(role: str, **kwargs: Any) -> Any:
    """Hand a task to another agent."""
    return create_new_job(WORLD.agents[role], shared_vars={}, parent_job=get_current_job())


@subtask
def start_prepared_task(role: str, **kwargs: Any) -> Any:
    """Hand a task with a handler of its own to another agent."""
    job = create_new_job(WORLD.agents[role], shared_vars={"topic": "prepared"}, parent_job=get_current_job())
    return create_sub_task(job, id="prepared")


@tool
def finish_task(result: Any = None, error: str | None = None, **kwargs: Any) -> None:
    """Report the outcome of this task."""
    complete_sub_task(result=result, error=error)


@tool
def delegate(role: str, topic: str = "none", **kwargs: Any) -> Any:
    """Hand a task to another agent and wait for its outcome."""
    return delegate_task(WORLD.agents[role], parent_job=get_current_job(), shared_vars={"topic": topic})


@tool
def outcome(result: Any, **kwargs: Any) -> str:
    """Return the exit value of a delegated task."""
    return f"exit {result[0]!r}, {result[1].status}"


@tool
def ask_mute(role: str, **kwargs: Any) -> Any:
    """Hand a task to another agent and wait for what it says."""
    return delegate_mute_task(WORLD.agents[role], parent_job=get_current_job())


@tool
def ask_dialog(role: str, message: str, **kwargs: Any) -> Any:
    """Start a dialog with another agent and wait for what it says."""
    return delegate_mute_dialog(WORLD.agents[role], message)


@tool
def tell_parent(text: str, **kwargs: Any) -> None:
    """Send a plain notification to the job that started this one."""
    get_current_job().parent_job.send_notification(text)  # type: ignore[union-attr]  # tools run in jobs


# -- adapters ------------------------------------------------------------------------------------------------------


def send(body: str, media: str | None = None) -> None:
    """Deliver a message to the user."""
    WORLD.sent.append([body, media])
    if "unsendable" in body:
        raise ConnectionError("the user is away")


def warn(context: Any, error: Any = None) -> None:
    """Report that the job died over its latest input."""
    WORLD.handled.append(f"warn({context}) after {type(error).__name__}: {error}")
