"""The examples' subjects: their agents' tools and the statements that use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from tools.random_programs.draw import Draw
from tools.random_programs.expressions import NAMES
from tools.random_programs.statements import PLAIN, Statement, code

FUTURES: Final = ("approval", "payment")
ITEMS: Final = ("invoice-1", "invoice-2", "invoice-3")

_BASE: Final = ("note", "echo", "say", "fail", "note_and_refuse", "wait_for")


def _named(form: str, draw: Draw) -> str:
    return form.format(
        name=draw.of(NAMES), other=draw.of(NAMES), future=draw.of(FUTURES), item=draw.of(ITEMS)
    )


def _forms(*forms: str) -> tuple[Statement, ...]:
    return tuple(partial(_named, form) for form in forms)


_WAITS: Final = _forms(
    "{name} = wait_for('{future}')",
    "print('got', wait_for('{future}'))",
    "wait_for('{future}')",
    "{name} = wait_for('{future}')\nnote('after')\nprint({name})",
    "{name}, {other} = wait_for_pair('{future}')\nprint({name}, {other})",
    "{name} = wait_for('{future}')\nprint(is_waiting({name}))",
    "{name} = wait_for_any('approval', 'payment')\nprint({name})",
    "print(wait_for_all('approval', 'payment'))",
    "for i in FUTURE_NAMES:\n    note(i)\n    print(wait_for(i))".replace(
        "FUTURE_NAMES", repr(list(FUTURES))
    ),
    "try:\n    note('trying')\n    print(wait_for('{future}'))\nexcept Exception as error:\n    print('caught', error)",
    "if wait_for('{future}'):\n    note('true')\nelse:\n    note('false')",
    "print('value', wait_for('{future}'))",
    "{name} = wait_for_all('approval', 'payment')\nnote('all')\nprint({name})",
    "note(wait_for('{future}'))",
    "def f():\n    return wait_for('{future}')\nprint(f())",
    "x = wait_for('unknown')",
    "{name} = lambda: wait_for('{future}')\nprint({name}())",
)

_CLAIMS: Final = _forms(
    "{name} = fetch_next_item(owner)",
    "claim = fetch_next_item(owner)\nprint(claim)",
    "_, item = fetch_next_item(owner)\nprint(item)",
    "_, item = claim_or_release(owner)\nprint(process_item(item))",
    "claim_or_release(owner)",
    "claim_unguarded(owner)",
    "claim_with_failing_cleanup(owner)",
    "claim_without_cleanup(owner)",
    "print(fetch_status(owner))",
    "print(item_status('{item}'))",
    "add_item('extra')",
    "print(process_item(item))",
    "{name} = wait_for_next_item(owner)\nprint({name})",
    "_, item = wait_for_next_item(owner)",
    "_, item = claim_or_release(owner)\nprint(item.id, item.status, item.owner_id, item.held_by(owner))",
    "{name} = fetch_next_item(owner)\nprint({name}[1].id)",
    "print(item.missing)",
    "print([owner] + [item], [owner, item][0].id)",
    "{name} = [owner, item]\nprint({name}[1].id, owner in {name})",
    "print(owner.id, item == owner, item in [item], f'{{item}}')",
)

_WAITS_FOR_A_JOB: Final = _forms(
    "outcome = delegate(role='reader')",
    "status, child = delegate(role='reader')\nprint(status, child.status)",
    "delegate(role='nobody')",
)

_DELEGATION: Final = (
    *_forms(
        "start_subtask(role='reader', id='scan')",
        "task = start_subtask(role='reader', id='{name}')",
        "finish_subtask(result='42 pages')",
        "finish_subtask(error='unreadable')",
        "finish_subtask(result={{'pages': [1, 2]}})",
        "finish_subtask()",
        "finish_subtask(result=1, error='both')",
        "print(find_sub_task_handler(id='scan'))",
        "print(find_sub_task_handler())",
        "print(find_sub_task_handler(id='scan').state)",
        "{name} = find_sub_task_handler(id='scan')\nprint({name}[0])",
        "print(find_sub_task_handler(id='scan').job + 1)",
        "send_notification_to(find_sub_task_handler(id='scan'), 'hurry')",
        "print(get_pending_notifications())",
    ),
    *_WAITS_FOR_A_JOB,
)

_CORNERS: Final = _forms(
    "start_subtask(role='reader', id='scan')\nstart_subtask(role='reader', id='scan')",
    "a, b = start_subtask(role='reader', id='one'), start_subtask(role='reader')\nprint(a.id, b.state)",
    "finish_subtask(result='x')\nexit('reported')",
    "start_subtask(role='reader', id='later')\nfinish_subtask(result='x')",
    "finish_subtask(result='x')\nfinish_subtask(error='twice')",
    "find_sub_task_handler(id='scan').complete(result='by hand')",
    "task = start_subtask(role='reader', id='scan')\nprint(task.state, task.job.status)\nprint(task)",
    "start_subtask(role='nobody', id='scan')",
    "start_subtask()",
    "for i in ('one', 'two'):\n    start_subtask(role='reader', id=i)\nprint(find_sub_task_handler(id='two').state)",
    "try:\n    finish_subtask(result='x')\nexcept Exception as error:\n    print('caught', error)",
    "{name} = start_subtask(role='reader', id='scan')\nprint({name} == {name}, [{name}], f'{{{name}.state}}')",
)

_SLOW: Final = _forms(
    "{name} = slow_echo('{other}', 2)",
    "print(slow_echo('{other}'), slow_echo('again', 0.5))",
    "slow_echo('{name}', seconds=0)",
    "try:\n    slow_echo('{name}', 'soon')\nexcept Exception as error:\n    print('caught', error)",
    "for i in (1, 2):\n    print(slow_echo(str(i), i))",
    "note(slow_echo('{name}', 3))\nraise ValueError('after')",
    "slow_echo()",
    "exit(slow_echo('{name}', 5))",
    "slow_note('{name}', 4)",
    "{name} = slow_note('{other}', 7)\nnote('after {other}')",
    "try:\n    slow_note('{name}', 5, timeout=2)\nexcept Exception as error:\n    print('late', error)",
    "try:\n    slow_note('{name}', 6)\nfinally:\n    note('finally {name}')",
    "def f(x):\n    return slow_note(x, 1.5)\nprint([f(x) for x in ('{name}', '{other}')])",
    "slow_note('{name}', 5, timeout=1)",
    "{name} = slow_note('{other}', 2), slow_echo('{name}', 3)",
)

_SYSTEM: Final = _forms(
    "panic()",
    "panic()\npanic()",
    "print_locals('none')",
    "python_cli('1')",
    "say('said')",
    "{name} = say('{other}')",
    "echo(value=1)",
    "echo(2)",
    "echo()",
    "echo(1, 2)",
    "note_and_refuse()",
    "note_and_refuse('one', 'two')",
    "echo({name}=1, value=2)",
    "note('{name}', x=1)",
    "missing_tool(1)",
    "note",
    "print(read_clock())",
    "{name} = read_clock()\nprint({name})",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A type of example."""

    name: str
    tools: tuple[str, ...]
    code: Callable[[Draw], str]
    warmup_code: Callable[[Draw], str]
    """Code that starts no jobs, for warmup that waits or that belongs to jobs started by others."""
    starting_code: Callable[[Draw], str] | None
    """Code that starts jobs without waiting for them: see `EXCLUDED`, "code that starts jobs without end"."""


def _plain(draw: Draw) -> str:
    return draw.of(PLAIN)(draw)


def _one_of(own: tuple[Statement, ...]) -> Statement:
    def one(draw: Draw) -> str:
        return draw.of(own)(draw)

    return one


def _block(own: tuple[Statement, ...], inner: tuple[Statement, ...]) -> Callable[[Draw], str]:
    return code(_kinds(own), _kinds(inner))


def _kinds(own: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return as many of a subject's own statements as others."""
    return (_plain, _one_of(own)) if own else (_plain,)


def _subject(
    name: str, tools: tuple[str, ...], own: tuple[Statement, ...], *, starting: tuple[Statement, ...] = ()
) -> Subject:
    begins = tuple(statement for statement in starting if statement not in _WAITS_FOR_A_JOB)
    return Subject(
        name=name,
        tools=(*_BASE, *tools),
        code=_block((*own, *starting), (*own, *begins)),
        warmup_code=_block(own, own),
        starting_code=_block(begins, begins) if begins else None,
    )


_CLAIM_TOOLS: Final = (
    "fetch_next_item",
    "claim_or_release",
    "claim_unguarded",
    "claim_with_failing_cleanup",
    "claim_without_cleanup",
    "fetch_status",
    "wait_for_next_item",
    "process_item",
    "add_item",
    "item_status",
)
_WAIT_TOOLS: Final = ("wait_for_pair", "wait_for_any", "wait_for_all", "is_waiting", "get_any", "get_all")
_TASK_TOOLS: Final = ("start_subtask", "finish_subtask", "delegate")

_SLOW_TOOLS: Final = ("slow_echo", "slow_note")

CODE: Final = _subject("code", (), ())
WAITING: Final = _subject("waiting", _WAIT_TOOLS, _WAITS)
CLAIMS: Final = _subject("claims", _CLAIM_TOOLS, _CLAIMS)
DELEGATION: Final = _subject(
    "delegation", _TASK_TOOLS, (*_WAITS[:4], *_CLAIMS[:1]), starting=(*_DELEGATION, *_CORNERS)
)
TOOLS: Final = _subject("tools", ("read_records", "harness_limit", "read_clock"), _SYSTEM)
SLOW: Final = _subject("slow", _SLOW_TOOLS, _SLOW)
SLOW_TASKS: Final = _subject(
    "slow tasks", (*_TASK_TOOLS, *_SLOW_TOOLS), (*_SLOW, *_WAITS[:4]), starting=(*_DELEGATION, *_CORNERS)
)
EVERYTHING: Final = _subject(
    "everything",
    (*_CLAIM_TOOLS, *_WAIT_TOOLS, *_TASK_TOOLS, *_SLOW_TOOLS),
    (*_WAITS, *_CLAIMS, *_SYSTEM, *_SLOW),
    starting=_DELEGATION,
)

SUBJECTS: Final = (CODE, WAITING, CLAIMS, DELEGATION, TOOLS, EVERYTHING, DELEGATION, SLOW, SLOW_TASKS)
