"""Small scenarios that the tests of exploring share."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from statek_sim import tool
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.run import builtin_suites

CLAIM = """
suite: samples
scenarios:
  - id: claims
    title: A claim is processed and the job ends.
    world: {queue: {items: [invoice-1]}}
    agents: {clerk: {prompt: You process invoices., tools: [fetch_next_item, process_item]}}
    jobs: {main: {message: Go., locals: {owner: {$world: owner}}}}
    script:
      clerk:
        - {code: "owner, item = fetch_next_item(owner)"}
        - {code: "print(process_item(item))\\nexit('ok')"}
"""

WAITS = """
suite: samples
scenarios:
  - id: waits
    title: A job waits for an approval.
    world: {futures: [approval]}
    agents: {clerk: {prompt: You wait., tools: [wait_for, note]}}
    jobs: {main: {message: Go.}}
    script:
      clerk:
        - {code: "answer = wait_for('approval')\\nnote('asked')\\nnote(f'got {answer}')\\nexit('ok')"}
    events: [{at: 10, resolve: approval, value: granted}]
"""

TWO_JOBS = """
suite: samples
scenarios:
  - id: two-jobs
    title: Two jobs step in any order.
    world: {queue: {items: [a, b]}}
    agents: {clerk: {prompt: You work., tools: [fetch_next_item, process_item]}, idle: {prompt: You think.}}
    jobs:
      one: {agent: clerk, message: Go., locals: {owner: {$world: owner}}}
      two: {agent: clerk, message: Go., locals: {owner: {$world: owner}}}
    script:
      job:one: [{code: "owner, item = fetch_next_item(owner)\\nprocess_item(item)\\nexit(item.id)"}]
      job:two: [{code: "owner, item = fetch_next_item(owner)\\nprocess_item(item)\\nexit(item.id)"}]
"""

THINKERS = """
suite: samples
scenarios:
  - id: thinkers
    title: Jobs that share nothing.
    agents: {idle: {prompt: You think.}}
    jobs: {one: {message: Go.}, two: {message: Go.}, three: {message: Go.}}
    script:
      job:one: [{code: "exit(1)"}]
      job:two: [{code: "exit(2)"}]
      job:three: [{code: "exit(3)"}]
"""

COIN = """
suite: samples
scenarios:
  - id: coin
    title: A clerk throws a coin.
    agents: {clerk: {prompt: You throw., tools: ["coins:throw"]}}
    jobs: {main: {message: Go.}}
    script:
      clerk:
        - {code: "print(throw())"}
        - {code: "exit('ok')"}
"""


def built_in(suite: str, scenario_id: str) -> Scenario:
    """Return the built-in scenario of this id."""
    (found,) = [
        scenario for scenario in load_or_fail([builtin_suites() / suite]) if scenario.id == scenario_id
    ]
    return found


def throws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be a module `coins` whose tools never say the same twice."""
    thrown = itertools.count()

    @tool
    def throw(**kwargs: object) -> int:
        """Throw."""
        return next(thrown)

    def toss() -> int:
        """Toss."""
        return next(thrown)

    module = ModuleType("coins")
    module.throw = throw  # type: ignore[attr-defined]  # a module made here
    module.toss = toss  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "coins", module)


def scenario(folder: Path, text: str, *, extra: str = "") -> Scenario:
    """Return the scenario of a text; `extra` is added to it at the end."""
    path = folder / "sample.yaml"
    path.write_text(text.rstrip("\n") + "\n" + extra)
    return load_or_fail([path])[0]


GIVES_BACK = """
suite: samples
scenarios:
  - id: gives-back
    title: A tool finishes its item whatever happens.
    world: {queue: {items: [invoice-1]}}
    agents: {clerk: {prompt: You process invoices., tools: ["tests.explore.samples:careful"]}}
    jobs: {main: {message: Go., locals: {owner: {$world: owner}, queue: {$world: queue}}}}
    script:
      clerk:
        - {code: "careful(owner, queue)\\nexit('ok')"}
"""

ASYNC = """
suite: samples
scenarios:
  - id: async
    title: Two jobs wait for slow tools on one stack.
    agents: {clerk: {prompt: You wait., tools: [slow_note]}}
    jobs: {one: {message: Go.}, two: {message: Go.}}
    script:
      job:one: [{code: "slow_note('one', 1)\\nexit('ok')"}]
      job:two: [{code: "slow_note('two', 5)\\nexit('ok')"}]
"""

GATHERS = """
suite: samples
scenarios:
  - id: gathers
    title: An async tool claims two items at once.
    world: {queue: {items: [a, b]}}
    agents: {clerk: {prompt: You process invoices., tools: ["tests.explore.samples:claim_all"]}}
    jobs: {main: {message: Go., locals: {owner: {$world: owner}, queue: {$world: queue}}}}
    script:
      clerk:
        - {code: "claim_all(owner, queue)\\nexit('ok')"}
"""

GIVES_UP = """
suite: samples
scenarios:
  - id: gives-up
    title: A tool marks an item as failed, whoever holds it.
    world: {queue: {items: [invoice-1]}}
    agents: {clerk: {prompt: You process invoices., tools: ["tests.explore.samples:give_up", fetch_next_item]}}
    jobs: {main: {message: Go., locals: {owner: {$world: owner}, queue: {$world: queue}}}}
    script:
      clerk: [{code: "fetch_next_item(owner)"}, {code: "give_up(queue)\\nexit('ok')"}]
"""

DIVIDED = """
suite: samples
scenarios:
  - id: divided
    title: Two jobs of one agent do different work.
    world: {queue: {items: [invoice-1]}}
    agents: {clerk: {prompt: You process invoices., tools: ["tests.explore.samples:give_up", note]}}
    jobs:
      one: {message: Go., locals: {owner: {$world: owner}}}
      two: {message: Go., locals: {owner: {$world: owner}, queue: {$world: queue}}}
    script:
      job:one: [{code: "exit('nothing')"}]
      job:two: [{code: "note('seen')\\ngive_up(queue)\\nexit('ok')"}]
"""

HANDS_OVER = """
suite: samples
scenarios:
  - id: hands-over
    title: A message comes to a job that is started late.
    agents: {clerk: {prompt: You work.}}
    jobs: {main: {message: Go.}, late: {message: Go., at: 10}}
    script:
      clerk: [{code: "exit('ok')"}]
    events: [{at: 20, push: late, message: More.}]
"""

UNPACKS = """
suite: samples
scenarios:
  - id: unpacks
    title: A job unpacks a future that declares no tuple, and waits for it.
    world: {futures: [payment]}
    agents: {clerk: {prompt: You wait., tools: [wait_for]}}
    jobs: {main: {message: Go.}}
    script:
      clerk: [{code: "amount, currency = wait_for('payment')"}, {code: "exit('nothing')"}]
    events: [{at: 10, resolve: payment, value: [40, EUR]}]
"""

PAYS = """
suite: samples
scenarios:
  - id: agent-pays
    title: An agent pays, and pays again after a crash.
    engine: agent
    tools: {pay: {description: Pay., result: paid, after_crash: again}}
    agents: {assistant: {prompt: You work.}}
    jobs: {main: {message: Work.}}
    script: {assistant: [{tools: [{name: pay}]}, {text: Done.}]}
"""


@tool
def careful(owner: Any, queue: Any, **_: Any) -> str:
    """Claim the next item, and finish it whatever happens."""
    item = queue.claim_next(owner)
    if item is None:
        return "nothing"
    try:
        return str(item.id)
    finally:
        queue.complete(item)


@tool
async def claim_all(owner: Any, queue: Any, **_: Any) -> None:
    """Claim two items side by side, and finish them whatever happens."""

    async def claim(seconds: float) -> None:
        item = queue.claim_next(owner)
        try:
            await asyncio.sleep(seconds)
        finally:
            queue.complete(item)

    await asyncio.gather(claim(1), claim(2))


@tool
def give_up(queue: Any, **_: Any) -> None:
    """Mark the first item as failed, whoever holds it."""
    queue.mark_error(queue.items["invoice-1"], "no")


@tool
def end_process(**_: Any) -> None:
    """End the process, as a fault in C code would."""
    os._exit(3)
