"""Orders: none that comes to something else is left out, and what is drawn is drawn as promised."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from statek_sim.explore.explorer import Bounds, Explorer
from statek_sim.explore.orders import Priorities, explore_orders, probability_of, runs_needed
from statek_sim.explore.result import Count
from statek_sim.explore.statek_player import StatekPlayer
from statek_sim.explore.variation import Ending, Variation, undisturbed, varied
from statek_sim.scenario.events import Deviation
from tests.explore import samples

MIXED = """
suite: samples
scenarios:
  - id: mixed
    title: Two jobs that claim, and one that thinks.
    world: {queue: {items: [a, b]}}
    agents: {clerk: {prompt: You work., tools: [fetch_next_item, note]}, idle: {prompt: You think.}}
    jobs:
      one: {agent: clerk, message: Go., locals: {owner: {$world: owner}}}
      two: {agent: clerk, message: Go., locals: {owner: {$world: owner}}}
      three: {agent: idle, message: Go.}
    script:
      job:one: [{code: "owner, item = fetch_next_item(owner)"}, {code: "note(item.id)\\nexit(item.id)"}]
      job:two: [{code: "owner, item = fetch_next_item(owner)\\nexit(item.id)"}]
      job:three: [{code: "exit(3)"}]
"""


HELPED = """
suite: samples
scenarios:
  - id: helped
    title: Who claims the first item delegates it, and the helper is told something.
    world: {queue: {items: [a, b]}, futures: [signature]}
    agents:
      clerk: {prompt: You work., tools: [fetch_next_item, delegate]}
      reader: {prompt: You read., tools: [wait_for]}
    jobs:
      one: {agent: clerk, message: Go., locals: {owner: {$world: owner}}}
      two: {agent: clerk, message: Go., locals: {owner: {$world: owner}}}
    events: [{at: 10, push: job-1, message: Hurry.}]
    script:
      job:one:
        - code: |
            owner, item = fetch_next_item(owner)
            if item.id == 'a':
                status, child = delegate(role='reader')
            exit(item.id)
      job:two: [{code: "owner, item = fetch_next_item(owner)\\nexit(item.id)"}]
      reader: [{code: wait_for('signature')}]
"""


def fails(_: object, error: Exception) -> bool:
    """No order fails here."""
    raise error


def every_ending(base: Variation, choices: int = 4) -> set[Ending]:
    """Play every sequence of picks, without any pruning."""
    found = set()
    for picks in product(range(3), repeat=choices):
        left = list(picks)

        def pick(choice: object, _trace: object, left: list[int] = left) -> int:
            wanted = left.pop(0) if left else 0
            return min(wanted, len(choice.jobs) - 1)  # type: ignore[attr-defined]  # a Choice

        with varied(base, (), pick=pick) as variation:
            found.add(variation.ending)
    return found


@pytest.mark.parametrize("text", [samples.TWO_JOBS, MIXED])
def test_sleep_sets_leave_out_no_outcome(tmp_path: Path, text: str) -> None:
    player = StatekPlayer(samples.scenario(tmp_path, text), "docs")
    endings: set[Ending] = set()
    orders = explore_orders(player, 1000, lambda _, variation: endings.add(variation.ending), fails)
    assert orders.complete
    assert endings == every_ending(player.base)
    assert len(endings) > 1


def test_jobs_that_share_nothing_are_hardly_swapped(tmp_path: Path) -> None:
    player = StatekPlayer(samples.scenario(tmp_path, samples.THINKERS), "docs")
    orders = explore_orders(player, 1000, lambda *_: None, fails)
    assert orders.complete
    assert orders.played < 36


def test_an_order_can_be_played_again_from_its_deviations(tmp_path: Path) -> None:
    player = StatekPlayer(samples.scenario(tmp_path, samples.TWO_JOBS), "docs")
    seen: list[tuple[tuple[Deviation, ...], str]] = []
    explore_orders(
        player, 100, lambda deviations, variation: seen.append((deviations, variation.digest)), fails
    )
    for deviations, digest in seen:
        with varied(player.base, deviations) as again:
            assert again.digest == digest
            assert again.steering.plan.absent() == ()


def test_a_cap_says_how_many_orders_are_left(tmp_path: Path) -> None:
    player = StatekPlayer(samples.scenario(tmp_path, samples.TWO_JOBS), "docs")
    orders = explore_orders(player, 1, lambda *_: None, fails)
    assert orders.played == 1
    assert not orders.complete


def test_runs_needed_are_those_of_the_published_bound() -> None:
    assert runs_needed(2, 8, 2, 0.99) == 72
    assert runs_needed(2, 8, 3, 0.99) == 588
    assert probability_of(2, 8, 2, 72) >= 0.99 > probability_of(2, 8, 2, 71)


def test_drawn_orders_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    base = undisturbed(samples.scenario(tmp_path, MIXED), "docs")
    digests = []
    for seed in (1, 1, 2, 3, 4):
        with varied(base, (), pick=Priorities(seed, len(base.choices), 3)) as variation:
            digests.append(variation.digest)
    assert digests[0] == digests[1]
    assert len(set(digests)) > 1


def test_an_order_that_the_application_cannot_follow_ends_no_exploration(tmp_path: Path) -> None:
    player = StatekPlayer(samples.scenario(tmp_path, HELPED), "docs")
    assert player.base.ending.error is None
    refused: list[str] = []

    def failed(_: object, error: Exception) -> bool:
        refused.append(str(error).rpartition(": there")[2])
        return False

    orders = explore_orders(player, 100, lambda *_: None, failed)
    assert set(refused) == {" is no job 'job-1'; jobs: one, two"}
    assert orders.complete
    found = Explorer(player.scenario, "docs", {}, Bounds(kinds=("orders",))).explore()
    assert (found.proven["orders"], found.failures) == (Count(orders.played, orders.played), ())
