"""The scripted LLM's replies: code, texts, tool calls, and broken replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from statek_sim.values import JSON
from tools.random_programs.draw import Draw, maybe, seldom
from tools.random_programs.subjects import FUTURES, Subject

Written = dict[str, JSON]
"""A part of a scenario as in a scenario file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """An agent's chat style as in the scenario format, and how its last reply ends the job."""

    agent: Written
    last: Written
    runs_code: bool = True


_EXIT: Final[Written] = {"code": "exit('end')", "repeat": "forever"}
_TEXT: Final[Written] = {"text": "That is all.", "repeat": "forever"}

STYLES: Final = (
    Style(agent={"chat_style": "MARKDOWN"}, last=_EXIT),
    Style(agent={"chat_style": "MARKDOWN", "tools_scope": "ALL"}, last=_EXIT),
    Style(agent={"chat_style": "CONSOLE"}, last=_EXIT),
    Style(agent={"chat_style": "CONSOLE", "tools_scope": "APPLICATION"}, last=_EXIT),
    Style(agent={}, last=_EXIT),
    Style(agent={"chat_style": "MD_DIALOG", "dialog": True}, last=_TEXT),
    Style(agent={"chat_style": "MD_DIALOG", "dialog": True, "tools_scope": "ALL"}, last=_TEXT),
    Style(agent={"dialog": True, "answer_tool": False}, last=_TEXT),
    Style(agent={"chat_style": "DIRECT", "dialog": True, "tools_scope": "ALL"}, last=_TEXT, runs_code=False),
    Style(
        agent={"chat_style": "DIRECT", "dialog": True, "tools_scope": "APPLICATION +python_cli"},
        last=_TEXT,
        runs_code=False,
    ),
    Style(agent={"chat_style": "DIRECT", "tools_scope": "SYSTEM +note,-panic"}, last=_TEXT, runs_code=False),
    Style(agent={"chat_style": "DIRECT", "dialog": True}, last=_TEXT, runs_code=False),
)

_TEXTS: Final = (
    "All done.",
    "",
    None,
    "   ",
    'Zażółć gęślą jaźń 😀 "quoted"',
    "Two\nlines\n\nand  spaces.",
    "```python\nprint('fenced')\n```",
    "Before.\n```python\nprint('one')\n```\nBetween.\n```python\nprint('two')\n```\nAfter.",
    "```py\nnote('py')\n```",
    "```\nnote('bare')\n```",
    "```python\nprint('unclosed')",
    "print('unfenced')",
    "note('unfenced')\nprint(a)",
    "# only a comment",
    "```python\n# only a comment\n```",
    "```python\n```",
    "See [the invoice](files/invoice.pdf) and ![chart](img/chart.png).",
    "The file is out/report.csv, (see) {it}; print(1).",
    "Inline `code` and ~~~python\nx\n~~~",
    "<b>html</b> & more",
    "```python\nprint('a')\n```\n```json\n{\"k\": 1}\n```",
)

_ARGUMENTS: Final[tuple[Written, ...]] = (
    {"text": "x"},
    {"value": 1},
    {"value": [1, {"k": "ż"}]},
    {"value": "a"},
    {"value": {"zeta": 1, "a": [True, None], "k": "cut\0off", "10": 2.5, "": {}, "ż": -1}},
    {
        "zeta": 1,
        "a": [True, None],
        "text": "x",
        "b": 2.5,
        "value": {"d": 1, "c": 2},
        "id": "i",
        "x1": "",
        "k": -7,
    },
    {"text": ["a", {"k": 1}]},
    {},
    {"text": 5},
    {"text": "x", "extra": True},
    {"message": "no"},
    {"name": FUTURES[0]},
    {"name": "unknown"},
    {"owner": "owner"},
    {"item": "item"},
    {"id": "invoice-1"},
    {"role": "reader", "id": "scan"},
    {"role": "reader"},
    {"result": "42 pages"},
    {"error": "unreadable"},
    {"body": "The answer."},
)

_FOR_TOOL: Final[dict[str, tuple[Written, ...]]] = {
    "note": ({"text": "x"}, {"text": 5}, {}),
    "say": ({"text": "said\ntwice"},),
    "echo": ({"value": 1}, {"value": "a"}, {"value": [1, {"k": "ż"}]}, {"value": None}),
    "fail": ({"message": "no"},),
    "note_and_refuse": ({"text": "x"},),
    "wait_for": ({"name": FUTURES[0]}, {"name": FUTURES[1]}, {"name": "unknown"}),
    "wait_for_pair": ({"name": FUTURES[0]},),
    "fetch_next_item": ({"owner": "owner"},),
    "claim_or_release": ({"owner": "owner"},),
    "claim_with_failing_cleanup": ({"owner": "owner"},),
    "wait_for_next_item": ({"owner": "owner"},),
    "process_item": ({"item": "item"},),
    "item_status": ({"id": "invoice-1"}, {"id": "nothing"}),
    "start_subtask": ({"role": "reader", "id": "scan"}, {"role": "reader"}),
    "finish_subtask": ({"result": "42 pages"}, {"error": "unreadable"}, {}),
    "delegate": ({"role": "reader"},),
}

_SYSTEM_CALLS: Final[tuple[Written, ...]] = (
    {"name": "answer", "args": {"body": "The answer."}},
    {"name": "panic"},
    {"name": "missing_tool", "args": {"k": 1}},
    {"name": "get_pending_notifications"},
    {"name": "find_sub_task_handler", "args": {"id": "scan"}},
    {"name": "print_locals", "args": {"category": "none"}},
    {"name": "python_cli", "args": {}},
)

_DELAYS: Final[tuple[Written, ...]] = (
    {"http": 503},
    {"http": 429, "retry_after": 7},
    {"timeout": True},
    {"http": 500, "repeat": 2},
    {"text": "late", "latency": 61},
)
"""Faults after which the request is retried, so the job continues."""

_CRASHES: Final[tuple[Written, ...]] = (
    {"http": 401},
    {"http": 404},
    {"http": 500, "repeat": 3},
    {"timeout": True, "repeat": 3},
    {"body": "no json"},
    {"body": {"choices": []}},
    {"body": {"choices": [{"message": {"role": "assistant", "content": "exit('raw')"}}]}},
    {"body": {"choices": [{"message": {"content": None}}], "usage": None}},
    {"body": {}},
    {"body": []},
    {"tools": [{"name": "note"}], "malformed_arguments": '{"text": '},
    {"tools": [{"name": "note"}], "malformed_arguments": "[1]"},
    {"tools": [{"name": "note", "args": {"text": "x"}}, {"name": "echo", "args": {"value": [2**64]}}]},
)
"""Replies that kill the job: see `excluded`, "reactivation of a crashed job"."""


def reply(subject: Subject, style: Style, *, crashes: bool) -> Callable[[Draw], Written]:
    """Return a function that makes an agent's reply; with `crashes`, it may kill the job."""

    def call(draw: Draw) -> Written:
        if seldom(draw):
            return dict(draw.of(_SYSTEM_CALLS))
        if not style.runs_code and maybe(draw):
            return _cli(draw)
        name = draw.of(subject.tools)
        made: Written = {"name": name, "args": draw.of(_FOR_TOOL.get(name, _ARGUMENTS))}
        return {**made, "args": draw.of(_ARGUMENTS)} if seldom(draw) else made

    def _cli(draw: Draw) -> Written:
        return {"name": "python_cli", "args": {"code": draw.part(subject.code)}}

    def code(draw: Draw) -> Written:
        return {"code" if style.runs_code else "python": draw.part(subject.code)}

    def text(draw: Draw) -> Written:
        return {"text": draw.of(_TEXTS)}

    def tools(draw: Draw) -> Written:
        return {"tools": draw.some(call, least=1, most=3)}

    def both(draw: Draw) -> Written:
        calls = tools(draw)
        return {**(text(draw) if maybe(draw) or not style.runs_code else code(draw)), **calls}

    def fault(draw: Draw) -> Written:
        return dict(draw.of((*_DELAYS, *_CRASHES) if crashes else _DELAYS))

    kinds = (
        (code, code, code, text, tools, both, fault)
        if style.runs_code
        else (text, tools, tools, code, code, both, fault)
    )

    def made(draw: Draw) -> Written:
        entry = draw.of((*kinds, fault, fault) if crashes else kinds)(draw)
        latency = draw.of((0, 0, 0, 0, 1, 5, 30))
        if latency and "latency" not in entry:
            entry["latency"] = latency
        if seldom(draw) and "http" not in entry and "timeout" not in entry and "body" not in entry:
            cut_calls = "tools" in entry or "python" in entry
            entry.update(draw.of(_REPORTS if crashes or not cut_calls else _REPORTS[:-1]))
        return entry

    return made


_REPORTS: Final[tuple[Written, ...]] = (
    {"usage": {"prompt": 7, "completion": 2, "cost": 0.001}},
    {"usage": {"prompt": 10, "completion": 3}},
    {"usage": {"prompt": 10, "completion": 3, "cached": 4, "cost": 0.5}},
    {"usage": {}},
    {"repeat": 2},
    # The last one: a call whose arguments are cut kills the job.
    {"truncated": True},
)
