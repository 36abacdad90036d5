"""Settings of an application on the stand-ins: which of them take effect, and which are refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from statek_sim.errors import BadInput
from statek_sim.harness.limits import HarnessLimits
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.runtime.execution.runtime import Runtime, active
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.runtime.task import create_new_job
from statek_sim.shim.agents import SupervisedAgent
from statek_sim.shim.constructors import JobDef
from statek_sim.shim.covered_names import NotCovered
from statek_sim.shim.jobs import BROUGHT
from statek_sim.shim.settings import StatekSettings, get_statek_settings
from statek_sim.shim.store import opened_store
from statek_sim.shim.worker import init, start_statek
from tests.tables import table_test

WITHOUT_EFFECT = {
    "default_acl_str",
    "examples_style",
    "full_agent_trace_backup_count",
    "full_agent_trace_max_bytes",
    "full_agent_trace_path",
    "log_level",
    "statek_rpc_host",
    "statek_rpc_port",
    "xml_box_example",
}
"""STATEK does not read these settings, or only with settings that are refused, or for its own log."""
REFUSED: dict[str, Any] = {
    "documents_dir": "documents",
    "examples_dir": "examples",
    "full_agent_trace": True,
    "llm_api_settings": {"OPENAI": {"api_url": "https://example.org", "api_key": "key"}},
    "logs_path": "logs",
    "statek_provider_config": "providers.json",
}
LIMITS = {*HarnessLimits.__dataclass_fields__}
IN_USE = {
    "chat_style",
    "default_llm_api_provider",
    "prompt_defs",
    "prompt_files_dir",
    "statek_default_difficulty",
    "statek_model_info_dir",
    "warmup_defs_dir",
    "xml_box_console",
    "python_sandbox_mode",
    "python_sandbox_max_source_bytes",
    "python_sandbox_max_ast_nodes",
    "python_sandbox_allowed_imports",
    "python_sandbox_allowed_tools",
}
"""Settings whose effects `tests/applications/supervision.py` compares with the real package."""


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    made = Runtime(ScriptedLLM([]), brought=BROUGHT)
    with opened_store(), active(made):
        yield made


def test_every_setting_takes_effect_or_is_refused_or_has_no_effect_in_statek() -> None:
    assert set(StatekSettings.model_fields) == {*WITHOUT_EFFECT, *REFUSED, *LIMITS, *IN_USE}


@table_test("name", sorted(REFUSED))
def test_a_setting_that_is_not_supported_is_refused(runtime: Runtime, name: str) -> None:
    unused = StatekSettings(**{name: REFUSED[name]})
    with pytest.raises(NotCovered, match=rf"^StatekSettings\.{name}="):
        init(unused)
    with pytest.raises(NotCovered, match=rf"^StatekSettings\.{name}="):
        start_statek(settings=unused)
    settings = get_statek_settings()
    before = getattr(settings, name)
    with pytest.raises(NotCovered, match=rf"^StatekSettings\.{name}="):
        setattr(settings, name, REFUSED[name])
    assert getattr(settings, name) == before


@table_test("name", sorted(LIMITS))
def test_a_limit_is_not_assigned_to_the_settings_of_a_test(runtime: Runtime, name: str) -> None:
    init(StatekSettings(**{name: 3}))
    with pytest.raises(BadInput, match=rf"^{name}=4: the test's limits apply"):
        setattr(get_statek_settings(), name, 4)


@table_test("name", ["sources", "_env_file"])
def test_another_source_of_settings_is_refused(name: str) -> None:
    with pytest.raises(NotCovered, match=rf"^StatekSettings\({name}="):
        StatekSettings(**{name: []})


def test_settings_are_assigned_before_and_outside_a_test() -> None:
    settings = StatekSettings()
    settings.max_turns, settings.logs_path = 9, "logs"
    assert (settings.max_turns, settings.logs_path) == (9, "logs")


def test_a_sandbox_setting_is_read_by_init_from_then_on(runtime: Runtime) -> None:
    settings = get_statek_settings()
    settings.python_sandbox_max_ast_nodes = 7
    assert runtime.services.policy.max_ast_nodes == 7
    init()
    settings.python_sandbox_max_ast_nodes = 8
    assert runtime.services.policy.max_ast_nodes == 7
    init()
    assert runtime.services.policy.max_ast_nodes == 8


def test_a_folder_of_prices_that_is_missing_is_an_error(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected a folder with price files"):
        init(StatekSettings(statek_model_info_dir=str(tmp_path / "nowhere")))


def test_extra_resources_are_refused(runtime: Runtime) -> None:
    metadata = {"MODEL": "a/b", "EXTRA_RESOURCES": "H:donor"}
    agent = SupervisedAgent("taker", None, [], _metadata=metadata)
    plain = SupervisedAgent("plain", None, [], _metadata={"MODEL": "a/b"})
    for make in (
        lambda: create_new_job(agent),
        agent.create_job_def,
        lambda: start_statek([agent]),
        lambda: JobDef(plain, metadata=metadata),
    ):
        with pytest.raises(NotCovered, match=r"^EXTRA_RESOURCES='H:donor' in the metadata of agent"):
            make()


def test_a_definition_with_resources_of_its_own_is_refused(runtime: Runtime) -> None:
    agent = SupervisedAgent("plain", None, [], _metadata={"MODEL": "a/b"})
    for make in (
        partial(agent.create_job_def, provider_config=1),
        partial(agent.create_job_def, extra_resources=1),
    ):
        with pytest.raises(NotCovered, match=r"^create_job_def with a provider_config"):
            make()


def test_a_worker_runs_at_least_one_job_at_a_time(runtime: Runtime) -> None:
    with pytest.raises(BadInput, match="expected max_concurrency to be 1 or more, got 0"):
        start_statek(max_concurrency=0)


def test_a_worker_that_is_killed_does_not_raise_an_earlier_workers_error(runtime: Runtime) -> None:
    agent = SupervisedAgent("clerk", None, [], _metadata={"MODEL": "a/b"})

    def size(error: BaseException) -> int:
        raise error

    with pytest.raises(ValueError, match=r"^queue one$"):
        start_statek([agent], task_queue_size_funcs={agent: partial(size, ValueError("queue one"))})
    start_statek([agent], task_queue_size_funcs={agent: partial(size, WorkerKilled("killed"))})
    assert not runtime.worker_alive
