"""Stored mappings and sets come in one order, whatever the hash seed and wherever Python puts its objects."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

PROGRAM: Final = """
from statek_sim.jobs import stored
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.stored.containers import Dict, Set, inside
from statek_sim.shim.memo import enum, memo
from statek_sim.shim.store import opened_store

seed = hash("a seed of this process") % 5000
Status = enum("Status", ["NEW", "DONE", "OPEN", "AAA", "LATE"])

@memo
class Row:
    def __init__(self, number):
        self.number = number

@stored
class Plain:
    def __init__(self, number):
        self.number = number

def scattered(kind):
    # Freed places of many sizes are reused, so that addresses tell nothing of the order.
    holes = [kind(-1) for _ in range(40)]
    holes.sort(key=lambda row: (id(row) * (2 * seed + 1)) % 7919)
    rows = []
    for number in range(8):
        holes.pop()
        rows.append(kind(number))
    return rows

PAIRS = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("c", "b", "d", "b")]

def numbers(values):
    return [value.number for value in values]

with opened_store():
    rows = scattered(Row)
    states = Status.values()
    print(numbers(Set(rows)), numbers(Set(reversed(rows))), numbers(inside(set(rows))))
    print(numbers(Dict((row, 1) for row in reversed(rows))))
    print([*map(str, Set(states))], [*map(str, Set(reversed(states)))], [*map(str, inside(set(states)))])
    print([str(key) for key in Dict((state, 1) for state in states)])
    few, many = Set(PAIRS[:3]), Set(PAIRS[1:])
    words, others = {" ".join(pair) for pair in PAIRS}, Set(" ".join(pair) for pair in PAIRS[1:])
    hello = Set("hello")
    common = ([letter for letter in hello if letter in "world"],)
    print(common)
    for made in (words | others, words - others, words ^ others):
        print(made, list(made))
    others |= words
    others &= {"a b", "b a", "d c"}
    print(others)
    for made in (few | many, few ^ many, many - few, few.union(PAIRS), inside(set(PAIRS)), Set(set(PAIRS))):
        print(made)
    few |= set(PAIRS)
    few ^= {("e", "f"), ("f", "e")}
    few -= set(PAIRS[2:3])
    print(few, few.copy())
    print(Set([float("nan"), 2.5, float("nan"), 1.5]))
    plain = scattered(Plain)
    print(numbers(Set(plain)), numbers(inside(set(plain))))

    code = '''
print([row.number for row in set(plain)], [row.number for row in {*plain[:3]} | {*plain[3:]}])
print([row.number for row in set(rows)], [str(state) for state in states], pairs)
print([word for word in words ^ {"b-a", "x y", "y x"}], {"x y", "y x"} | words, words - {"a-b", "d-c"})
exit("ok")
'''
    runtime = Runtime(ScriptedLLM([code]), profile="1.4")
    values = {"rows": rows, "states": set(states), "pairs": set(PAIRS), "plain": plain}
    job = runtime.create_job(Agent("clerk"), shared_vars={**values, "words": {*map("-".join, PAIRS)}})
    runtime.run()
    print(*job.py_env.console, sep="\\n")
"""


def output(seed: str, folder: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_stored_collections_have_one_order_in_every_process(tmp_path: Path) -> None:
    first = output("0", tmp_path)
    assert first.startswith(f"{[*range(8)]} {[*range(8)]} {[*range(8)]}\n{[*range(8)]}\n")
    for seed in ("1", "2", "3", "random"):
        assert output(seed, tmp_path) == first


def test_values_of_an_enumeration_come_as_in_dbzero(tmp_path: Path) -> None:
    """dbzero 0.7.0 yields AAA, NEW, DONE, OPEN."""
    program = (
        "from statek_sim.runtime.stored.containers import Set; from statek_sim.shim.memo import enum\n"
        "print(*Set(enum('Status', ['NEW', 'DONE', 'OPEN', 'AAA']).values()))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"AAA NEW DONE OPEN\n"
