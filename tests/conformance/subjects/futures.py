"""Waiting for events: where code stops, what runs again, what is lost (behaviour 7)."""

from __future__ import annotations

from typing import Final

from tests.conformance.job import (
    END,
    PLAIN_TOOLS,
    ConformanceJob,
    Resolve,
    Say,
    call,
    calls,
    cli,
    code,
    console,
    dialog,
)

SEVEN = (Resolve("a", 7),)

JOBS: Final[tuple[ConformanceJob, ...]] = (
    console(
        "pair",
        "a pair is unpacked without waiting, each half waits when it is used",
        "a,b=wait_for_pair('a')\nprint('x')\nprint(b)\nexit('ok')",
        happens=(Resolve("a", (1, 2)),),
    ),
    console(
        "unpacking_fails",
        "unpacking a future that is no pair stops the block without a word",
        "note('1')\na,b=wait_for('a')\nnote('2')\nexit('ok')",
        END,
        happens=(Resolve("a", (1, 2)),),
    ),
    console(
        "wait_as_statement",
        "a wait as a statement of its own shows its value and goes on after it",
        "note('1')\nwait_for('a')\nnote('2')",
        END,
        happens=SEVEN,
    ),
    console(
        "wait_in_loop",
        "a loop with a wait starts again from its first round",
        "for i in range(2):\n    note(str(i))\n    x=wait_for('a')\n    print(x)\nexit('ok')",
        happens=(Resolve("a", 7),),
    ),
    console(
        "wait_as_argument",
        "a future given to a tool is waited for first",
        "x=wait_for('a')\nnote(x)\nnote('after')\nexit('ok')",
        happens=(Resolve("a", "v"),),
    ),
    console(
        "wait_in_f_string",
        "a future inside an f-string",
        "x=wait_for('a')\nprint(f'got {x} {x!r} {[1,2]}')\nexit('ok')",
        happens=SEVEN,
    ),
    console(
        "wait_in_try",
        "except and finally around a wait",
        code("""
            note('before')
            try:
                note('in try')
                x = wait_for('a')
                note(f'value {x}')
            except Exception as error:
                note('except')
            finally:
                note('finally')
            note('after')
        """),
        END,
        happens=SEVEN,
    ),
    console(
        "wait_in_bare_except",
        "a bare except sees the wait itself",
        "try:\n    print(wait_for('a') + 1)\nexcept:\n    note('caught')\nnote('after')",
        END,
        END,
        happens=SEVEN,
    ),
    console(
        "wait_in_if",
        "a condition that waits",
        "note('1')\nif wait_for('a') > 5:\n    note('big')\nelse:\n    note('small')\nexit('ok')",
        END,
        happens=SEVEN,
    ),
    console(
        "wait_in_function",
        "a function that waits runs again from its start",
        code("""
            def ask():
                note('asked')
                value = wait_for('a')
                return value + 1
            note('before')
            result = ask()
            note(f'result {result}')
            exit('ok')
        """),
        END,
        END,
        happens=SEVEN,
    ),
    console(
        "wait_in_comprehension",
        "several waits in one statement",
        "values = [wait_for(name) + 0 for name in 'ab']\nprint(values)\nexit('ok')",
        END,
        happens=(Resolve("a", 1), Resolve("b", 2)),
    ),
    console(
        "wait_operators",
        "what one may do to a future before it has a value",
        "x = wait_for('a')\nprint('bound')\ny = x",
        "print(x + 1, -x, x > 3, [x], str(x))",
        END,
        END,
        happens=SEVEN,
    ),
    console(
        "wait_for_object",
        "attributes and members of what a future brings",
        "x = wait_for('a')\nprint(x['k'], x['n'][0], len(x))\nexit('ok')",
        END,
        happens=(Resolve("a", {"k": "v", "n": [1, 2]}),),
    ),
    console(
        "wait_in_exit",
        "an exit value that waits",
        "exit(wait_for('a'))",
        END,
        happens=(Resolve("a", "late"),),
    ),
    console(
        "future_bound_only",
        "a future that nobody asks for is kept, and has its value later",
        "x = wait_for('a')",
        "note('meanwhile')",
        "print(x)",
        END,
        happens=SEVEN,
    ),
    console(
        "two_waits",
        "two waits one after the other",
        "x = wait_for('a')\nprint(x)\ny = wait_for('b')\nprint(y)\nexit('ok')",
        happens=(Resolve("a", 1), Resolve("b", 2)),
    ),
    console(
        "other_event_first",
        "an event that nobody waits for wakes nobody",
        "x = wait_for('a')\nprint(x)\nexit('ok')",
        happens=(Resolve("b", 2), Resolve("a", 1)),
    ),
    console(
        "never_resolved", "a job whose event never comes stays SUSPENDED", "print('1')\nprint(wait_for('a'))"
    ),
    console(
        "condition_fails",
        "a condition that raises ends the worker's loop, not the job",
        "print(wait_unknown('a'))",
        tools=("wait_unknown",),
        happens=(Resolve("a", 7),),
    ),
    console(
        "wait_for_any",
        "the first of two events, made by a tool",
        "x = wait_for_any('a', 'b')\nprint('asked')\nprint(x)\nexit('ok')",
        tools=("wait_for_any",),
        happens=(Resolve("b", "B"), Resolve("a", "A")),
    ),
    console(
        "wait_for_all",
        "two events, made by a tool",
        "x = wait_for_all('a', 'b')\nprint(x)\nexit('ok')",
        tools=("wait_for_all",),
        happens=(Resolve("b", "B"), Resolve("a", "A")),
    ),
    console(
        "get_any_in_code",
        "agent code gets no answer from get_any: both events are waited for",
        "print(get_any(wait_for('a'), wait_for('b')))",
        END,
        END,
        tools=(*PLAIN_TOOLS,),
        happens=(Resolve("a", 1), Resolve("b", 2)),
    ),
    console(
        "pushed_while_waiting",
        "the user writes while the job waits",
        "print('1')\nx = wait_for('a')\nprint(x)",
        END,
        happens=(Say("hurry"), Resolve("a", 7)),
    ),
    console(
        "failure_after_wait",
        "an exception after a wait, and the next reply",
        "note('1')\nx = wait_for('a')\nx / 0\nnote('2')",
        "note('3')\nexit('ok')",
        END,
        happens=SEVEN,
    ),
    dialog(
        "cli_waits",
        "what python_cli printed before its wait is lost",
        calls(cli("print(1)\nx=wait_for('a')\nprint(x)")),
        "bye",
        scope="ALL",
        happens=(Resolve("a", 5),),
    ),
    dialog(
        "cli_waits_after_tools",
        "regular tools of the reply do not run again after the wait",
        calls(call("note", text="tool"), cli("print(wait_for('a'))\nnote('code')")),
        "bye",
        scope="ALL",
        happens=(Resolve("a", 5),),
    ),
    dialog(
        "tool_call_returns_future",
        "a tool call whose result is a future",
        calls(call("wait_for", name="a")),
        "bye",
        "bye",
        scope="ALL",
        happens=(Resolve("a", 5),),
    ),
    dialog(
        "cli_interrupted",
        "a message between a wait and its event makes the next reply start in its middle",
        calls(cli("note('1')\nx=wait_for('a')\nnote('2')")),
        calls(call("note", text="skipped"), cli("note('s0')\nnote('s1')\nnote('s2')")),
        "hm",
        "bye",
        scope="ALL",
        happens=(Say("interrupt"), Resolve("a", 5)),
    ),
    dialog(
        "cli_unpacking_fails",
        "after a failed unpacking in python_cli tools are skipped until a block ends",
        calls(cli("note('1')\na,b=wait_for('a')\nnote('2')")),
        calls(call("note", text="t"), cli("note('3')")),
        calls(cli("note('4')")),
        "bye",
        scope="ALL",
        happens=(Resolve("a", (1, 2)),),
    ),
)
