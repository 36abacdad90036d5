"""Machine-dependent text made the same by rule."""

from __future__ import annotations

import pytest

from statek_sim.compare.facts import normal, normal_local, normal_text
from tests.tables import table_test


@table_test(
    ("text", "same"),
    [
        ("Job 6f1c-aa failed with error: boom", "Job (id) failed with error: boom"),
        ("<function f at 0x7f30>", "<function f>"),
        ("not 'statek_sim.world.queue.WorkItem' and 'a.B'", "not 'WorkItem' and 'a.B'"),
        (
            'Traceback (most recent call last):\n  File "/a/b.py", line 3, in f\n    g()\nsome.where.Bad: no',
            "Traceback (most recent call last):\nBad: no",
        ),
        (
            'Traceback (most recent call last):\n  File "/a.py", line 1\nKeyError: 1\n\n'
            "During handling of the above exception, another exception occurred:\n\n"
            'Traceback (most recent call last):\n  File "/b.py", line 2\nValueError: 2\n',
            "Traceback (most recent call last):\nValueError: 2\n",
        ),
        (
            '> Traceback (most recent call last):\n>   File "/a.py", line 1\n>     f()\n> a.Bad: no\n> ',
            "> Traceback (most recent call last):\n> Bad: no\n> ",
        ),
    ],
)
def test_ids_frames_and_addresses_go_and_the_rest_stays(text: str, same: str) -> None:
    assert normal_text(text) == same


def test_text_without_anything_of_a_machine_is_left_alone() -> None:
    assert normal_text("Job done: 0x10 items, File 3") == "Job done: 0x10 items, File 3"


def test_every_text_in_a_value_is_made_normal() -> None:
    assert normal({"a": ["x at 0x1f", 1, None]}) == {"a": ["x", 1, None]}


@table_test(
    ("value", "same"),
    [
        ("Happening(deps=None,state_num=0)", "Happening(a future)"),
        ('Job(created_at=datetime("2026-01-01 09:00"),error=None)', "<Object>"),
        ("WorkItem(id=1)", "WorkItem(id=1)"),
        (3, 3),
    ],
)
def test_private_fields_of_futures_and_jobs_are_not_compared(value: str | int, same: str | int) -> None:
    assert normal_local(value) == same


@pytest.mark.parametrize(
    ("shown", "normal"),
    [
        ('Agent(role="clerk",prompt="Read (all).",warmup=None)', 'Agent(role="clerk")'),
        (
            'DialogAgent(send_message=<Object>,reminder=None,role="clerk",prompt="")',
            'DialogAgent(role="clerk")',
        ),
    ],
)
def test_an_agent_is_its_kind_and_its_role(shown: str, normal: str) -> None:
    assert normal_local(f"{shown}, parent_job=<Object>") == f"{normal}, parent_job=<Object>"
