"""Writes the request specs of STATEK's system tools as JSON, with the output of `docstr` and `brief`.

The file also contains the docstrings of STATEK's other tools: models see them if an agent has these tools.

Run it with the interpreter of an environment that has `statek[dbzero]` installed:

    python tools/capture_system_tools.py statek_sim/runtime/tools/system_tools_1_4.json   # statek 1.4.2
    python tools/capture_system_tools.py statek_sim/runtime/tools/system_tools_1_2.json   # statek 1.2.7
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.metadata import version
from inspect import getdoc
from pathlib import Path

import statek.task
from statek.system import brief, docstr, find_tools, get_all, get_any
from statek.utils import format_tool_spec

NOTE = (
    "System tools of STATEK {version} as its requests carry them under LLM_TOOLS_SCOPE: ALL, "
    "in the order they are registered. "
    "Names and descriptions come from the package statek, Copyright 2026 Statek authors, Apache License 2.0. "
    "Written by tools/capture_system_tools.py; do not edit."
)

TOOLS = (
    *(statek.task.delegate_task, statek.task.delegate_mute_task, statek.task.delegate_mute_dialog),
    *(get_any, get_all),
)


def entry(tool: Callable[..., object]) -> dict[str, object]:
    """Return one tool: its chat styles (null for all), its request spec and its documentation."""
    target = getattr(tool, "tool_target", None)
    return {
        "target": None if target is None else sorted(str(style) for style in target),
        "spec": format_tool_spec(tool),
        **documentation(tool),
    }


def documentation(tool: Callable[..., object]) -> dict[str, str]:
    """Return what `docstr` and `brief` print about a tool."""
    return {"docstr": printed(docstr, tool), "brief": printed(brief, tool)}


def printed(print_documentation: Callable[[object], object], tool: object) -> str:
    """Return the text printed about a tool, without the trailing line break."""
    with redirect_stdout(io.StringIO()) as output:
        print_documentation(tool)
    return output.getvalue().removesuffix("\n")


def main(path: str) -> None:
    """Write the registered, visible system tools and the docstrings to `path`."""
    content = {
        "note": NOTE.format(version=version("statek")),
        "statek": version("statek"),
        "tools": [entry(tool) for tool in find_tools("SYSTEM")],
        "docstrings": {tool.__name__: getdoc(tool) for tool in TOOLS},
        "documentation": {tool.__name__: documentation(tool) for tool in TOOLS},
    }
    Path(path).write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
