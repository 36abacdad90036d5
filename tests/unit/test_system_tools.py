from __future__ import annotations

import json

import pytest

from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.tools.documentation import docstr
from statek_sim.runtime.tools.spec import system_tool_specs

COMMON = [
    *("find_sub_task_handler", "docstr", "brief", "panic", "python_cli"),
    *("shared_context_set_var", "print_locals"),
    *("list_of_examples", "list_of_documents", "show_document", "show_example"),
]


@pytest.mark.parametrize(
    ("version", "names"),
    [("1.2", COMMON), ("1.4", ["get_pending_notifications", *COMMON, "send_notification_to"])],
)
def test_system_tools_come_in_registration_order(version: str, names: list[str]) -> None:
    assert [tool.name for tool in system_tool_specs(version)] == names


@pytest.mark.parametrize("version", ["1.2", "1.4"])
def test_only_python_cli_is_meant_for_one_style(version: str) -> None:
    targeted = {tool.name: tool.target for tool in system_tool_specs(version) if tool.target is not None}
    assert targeted == {"python_cli": frozenset({ChatStyle.DIRECT})}


@pytest.mark.parametrize(("version", "size"), [("1.2", 4389), ("1.4", 5053)])
def test_the_system_tools_weigh_what_statek_meters(version: str, size: int) -> None:
    assert len(json.dumps([tool.spec for tool in system_tool_specs(version)])) == size


def test_internal_docstrings_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    class Mine(Agent):
        """My agent."""

    class Undocumented(Agent):
        pass

    docstr(Mine)
    docstr(Undocumented)
    docstr(Job, "panic")
    assert "    def " not in (shown := capsys.readouterr().out)
    assert shown.splitlines()[-2:] == [
        "NotImplementedError: class 'Undocumented' needs a docstring of its own on the reference runtime",
        "NotImplementedError: the reference runtime has no documentation of STATEK's Job.panic; use the real package",
    ]
