from __future__ import annotations

from statek_sim.values import IdSource


def test_each_kind_counts_from_one() -> None:
    ids = IdSource()
    assert [ids.next("job"), ids.next("call"), ids.next("job")] == ["job-1", "call-1", "job-2"]


def test_two_sources_know_nothing_of_each_other() -> None:
    assert IdSource().next("job") == IdSource().next("job")
