"""Jobs as applications are handed them: what they have beyond the runtime's, and how they refuse the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from statek_sim import code, tool
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.runtime.execution.runtime import Runtime, active
from statek_sim.runtime.task import create_new_job
from statek_sim.shim.agents import SupervisedAgent
from statek_sim.shim.covered_names import NotCovered
from statek_sim.shim.internal_attrs import NOT_COVERED
from statek_sim.shim.jobs import BROUGHT
from statek_sim.shim.memo import memo
from statek_sim.shim.prompts import make_system_prompt
from statek_sim.shim.store import opened_store
from tests.tables import table_test
from tests.unit.runtime_samples import UNLIMITED


@memo
class Box:
    """A stored object with members of every kind."""

    size = 3

    def __init__(self) -> None:
        self.colour = "red"

    def open(self) -> str:
        """A method that uses a private one."""
        return self._key()

    def _key(self) -> str:
        return "key"

    @property
    def empty(self) -> None:
        """A property without a value."""


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    replies = [code(f"print(box.{name})") for name in ("colour", "open()", "size", "empty", "nope")]
    made = Runtime(
        ScriptedLLM([*replies, code("exit(1)")]), harness=UNLIMITED, brought=BROUGHT, profile="1.4"
    )
    with opened_store(), active(made):
        yield made


def agent(*tools: Callable[..., object]) -> Any:
    return SupervisedAgent(
        role="worker",
        _system_prompt=make_system_prompt("You work."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o"},
    )


@table_test("name", sorted(NOT_COVERED["Job"]))
@pytest.mark.usefixtures("runtime")
def test_a_member_that_is_not_there_is_refused_by_name(name: str) -> None:
    job = create_new_job(agent())
    with pytest.raises(NotCovered, match=rf"^Job\.{name}: the reference runtime does not support it"):
        getattr(job, name)


@pytest.mark.usefixtures("runtime")
def test_members_of_what_a_job_holds_are_refused_too() -> None:
    job: Any = create_new_job(agent())
    for holder, name in (
        (job.py_env, "next_instr_id"),
        (job.job_def, "provider_config"),
        (job.usage, "for_model"),
    ):
        with pytest.raises(NotCovered, match=rf"^{type(holder).__name__}\.{name}: "):
            getattr(holder, name)
        with pytest.raises(AttributeError, match=r"object has no attribute 'nonsense'$"):
            holder.nonsense  # noqa: B018  # reading it is the test


def test_agent_code_reads_stored_objects_as_the_store_lets_it(runtime: Runtime) -> None:
    job = create_new_job(agent(), {"box": Box()})
    runtime.run()
    denied = "AttributeError: Restricted memo attribute access denied: "
    assert job.console[:5] == ["red", "key", f"{denied}size", f"{denied}empty", f"{denied}nope"]


@pytest.mark.usefixtures("runtime")
def test_definitions_are_given_a_style_and_their_jobs_with_them() -> None:
    job: Any = create_new_job(agent(), chat_style="DIRECT")
    assert (job.job_def.chat_style, job.job_def.job_params) == (None, {"chat_style": "DIRECT"})
    job.job_def.set_chat_style("MARKDOWN")
    assert job.job_def.chat_style == "MARKDOWN"


WARMUP = """\
claim = fetch_next_item(owner) #STATEK: as tool
if claim is None:
    print("No item is available.")
else:
    owner, item = claim
    print("Claimed:", item)
"""


@tool
def fetch_next_item(owner: str, **kwargs: Any) -> list[str]:
    """Claim an item."""
    return [owner, "box 7"]


def test_the_documents_warmup_is_an_agents_own_where_the_documents_hold() -> None:
    profiled = Runtime(ScriptedLLM(["exit(item)"]), harness=UNLIMITED, brought=BROUGHT, profile="docs")
    with opened_store(), active(profiled):
        made = agent(fetch_next_item)
        assert made.update_warmup_def(WARMUP)
        assert not made.update_warmup_def(WARMUP)
        job = create_new_job(made, {"owner": "me"})
        profiled.run()
    assert (job.py_env.console[0], job.py_env.exit_status) == ("Claimed: box 7", "box 7")
    published = Runtime(ScriptedLLM([]), brought=BROUGHT, profile="1.4")
    with opened_store(), active(published), pytest.raises(SyntaxError):
        agent().update_warmup_def(WARMUP)
