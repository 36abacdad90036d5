"""Warmup code: blocks, hidden blocks, tool markers, failures (behaviour 7.1)."""

from __future__ import annotations

from typing import Final

from tests.conformance.job import END, ConformanceJob, Resolve, console, dialog

JOBS: Final[tuple[ConformanceJob, ...]] = (
    console(
        "warmup_waits",
        "a wait in warmup",
        END,
        warmup="note('w')\nx=wait_for('a')\nprint(x)",
        happens=(Resolve("a", 7),),
    ),
    console(
        "warmup_waits_other_event",
        "an event that the warmup does not wait for comes first",
        END,
        warmup="note('w')\nprint(wait_for('a'))",
        happens=(Resolve("b", 1), Resolve("a", 7)),
    ),
    console(
        "warmup_blocks",
        "two blocks share their names",
        END,
        warmup="x=1\nprint('one')\n#----------\nprint('two', x)",
    ),
    console(
        "warmup_list",
        "blocks given one by one",
        END,
        warmup=("x=1\nprint('one')", "print('two', x)\n#----------\nprint('three')"),
    ),
    console(
        "warmup_tools",
        "lines marked as tool calls, one of which fails",
        END,
        warmup="note(text='t') #STATEK: as tool\nprint('k')\nfail(message='m') #STATEK: as tool",
    ),
    console(
        "warmup_tool_order",
        "marked calls run before the code of their block",
        "print(1)",
        END,
        warmup="x=1\nnote(text='first') #STATEK: as tool\nnote('second')\n#STATEK: hidden = False",
    ),
    console(
        "warmup_tool_positional",
        "positional arguments of marked calls are not shown to the model",
        "x",
        END,
        warmup="note('positional') #STATEK: as tool\ntalk('a', second=3) #STATEK: as tool\nx = 1",
        tools=("note", "talk"),
    ),
    console(
        "warmup_hidden_block",
        "a hidden block leaves its names, not its output",
        "print(q)",
        END,
        warmup="#STATEK: hidden = True\nq=5\nprint('hid')\n#----------\nprint('vis')",
    ),
    console(
        "warmup_all_hidden",
        "nothing but hidden blocks",
        END,
        warmup="#STATEK: hidden = True\nq=5\nprint('hid')",
    ),
    console(
        "warmup_metadata",
        "other metadata than hidden",
        END,
        warmup="#STATEK: purpose = 'test'\n#STATEK: level = 3\nprint('m')",
    ),
    console(
        "warmup_bad_metadata",
        "metadata that is no constant",
        END,
        warmup="#STATEK: purpose = unknown\nprint('m')",
    ),
    console(
        "warmup_assigned_tool",
        "a marked call may not be assigned, whatever document 003 shows",
        END,
        warmup="x = note('a') #STATEK: as tool",
    ),
    console("warmup_no_python", "warmup that is no Python", END, warmup="print('a'\nx ="),
    console("warmup_fails", "an exception in warmup ends the job", END, warmup="note('a')\n1/0\nnote('b')"),
    console(
        "warmup_fails_later",
        "an exception in the second block",
        END,
        warmup="print('one')\n#----------\nfail('two')\n#----------\nprint('three')",
    ),
    console("warmup_exits", "exit in warmup: no request at all", warmup="exit('early')\nnote('after')"),
    console("warmup_comment", "nothing but a comment", END, warmup="# only a comment"),
    console(
        "warmup_exceptions_caught",
        "caught exceptions and errors of marked calls do not count",
        "1/0",
        END,
        warmup="try:\n    refuse('a')\nexcept ValueError:\n    print('caught')\nfail(message='m') #STATEK: as tool",
    ),
    console(
        "warmup_markdown",
        "warmup in the MARKDOWN style",
        "```python\nprint(x)\n```",
        "```python\nexit('ok')\n```",
        style="MARKDOWN",
        warmup="x = 5\nprint('w')",
    ),
    dialog(
        "warmup_direct",
        "warmup in the DIRECT style is shown as tool calls",
        "bye",
        warmup="print('w')\nnote(text='x') #STATEK: as tool",
    ),
    dialog(
        "warmup_direct_blocks",
        "two blocks in the DIRECT style",
        "bye",
        warmup="print('w')\n#----------\nx = 1",
        scope="ALL",
    ),
    dialog("warmup_dialog", "warmup in MD_DIALOG", "bye", style="MD_DIALOG", warmup="print('w')"),
    dialog(
        "warmup_dialog_fails",
        "a dialog whose warmup fails says nothing",
        "bye",
        style="MD_DIALOG",
        warmup="1/0",
    ),
    console(
        "warmup_hidden_tool",
        "a hidden tool may be used in a hidden block only",
        "secret()",
        END,
        warmup="#STATEK: hidden = True\nx = secret()\n#----------\nprint(x)",
        tools=("secret",),
    ),
    console(
        "warmup_hidden_tool_visible",
        "a hidden tool in a visible block",
        END,
        warmup="x = secret()",
        tools=("secret",),
    ),
    console(
        "warmup_shared_values",
        "warmup sees what the job was started with",
        END,
        warmup="print(topic)\nlength = len(topic)",
        shared={"topic": "apples"},
    ),
)
