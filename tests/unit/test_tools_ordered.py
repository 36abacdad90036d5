"""Sets in arguments and in results come in one order, wherever they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

from tests.tables import table_test

ARGUMENTS: Final = """
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple
from pydantic import BaseModel, RootModel
from statek_sim.agent.tools.tool import tool_from

class Root(RootModel[set[str]]):
    pass
class Model(BaseModel):
    tags: set[str]
    deep: list[frozenset[str]]
@dataclass(frozen=True)
class Frozen:
    tags: set[str]
class Named(NamedTuple):
    tags: set[str]

def joined(
    a: list[set[str]], b: Model, c: Frozen, d: Root, e: deque[set[str]], f: tuple[set[str], int],
    g: dict[str, set[str]], h: Named,
) -> list[str]:
    sets = (a[0], b.tags, b.deep[0], c.tags, d.root, e[0], f[0], g["k"], h.tags)
    return [",".join(each) for each in sets]

NAMES = ["gamma", "alpha", "epsilon", "beta", "delta"]
print(tool_from(joined).run(
    a=[NAMES], b={"tags": NAMES, "deep": [NAMES]}, c={"tags": NAMES}, d=NAMES, e=[NAMES], f=[NAMES, 1],
    g={"k": NAMES}, h=[NAMES],
) == ["alpha,beta,delta,epsilon,gamma"] * 9)
"""

RESULTS: Final = """
from collections import deque
from pydantic import RootModel
from statek_sim.agent.tools.tool import result_text

class Root(RootModel[set[str]]):
    pass
class Nested(RootModel[dict[str, Root]]):
    pass
NAMES = {"gamma", "alpha", "epsilon", "beta", "delta"}
values = (Root(NAMES), deque([NAMES]), {"a": Root(NAMES)}, Nested({"a": Root(NAMES)}))
print(all('["alpha","beta","delta","epsilon","gamma"]' in result_text(value) for value in values))
"""


@table_test("seed", ["1", "2"])
def test_sets_come_in_one_order_under_every_hash_seed_wherever_they_stand(seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", ARGUMENTS + RESULTS]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("True\nTrue\n", "")
