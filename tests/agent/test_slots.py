"""Slots that agents share: who is next, who gives way, and that nobody is stranded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.agent.slots import Slot, SlotQueue, SlotRules, SlotWorker
from statek_sim.errors import BadInput, SlotRefused
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.agent.slot_interleavings import check_slot_worker
from tests.says import line_with, says
from tests.tables import table_test
from tools import slot_load

T = TypeVar("T")


def play(scene: Coroutine[Any, Any, T]) -> T:
    """Run in virtual time."""
    return run_in(VirtualLoop(), scene)


class Ours:
    """Our worker for the checker."""

    rules = SlotRules()

    def __init__(self) -> None:
        self.worker = SlotWorker(self.rules)

    async def open(self) -> None:
        """Nothing is started."""

    async def submit(self, work: Callable[[], Awaitable[object]], *, name: str, priority: int) -> object:
        return await self.worker.submit(lambda slot: work(), submitter=name, priority=priority)


class Log:
    """Jobs of some seconds that write down when they ran."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def job(self, name: str, slot: Slot, *, seconds: int = 1) -> str:
        for _ in range(seconds):
            await asyncio.sleep(1)
            self.lines.append(f"{asyncio.get_running_loop().time():g} {name}")
            await slot.step()
        return name


# -- every interleaving -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(SlotRules(), id="default"),
        pytest.param(SlotRules(aging=None, share=None, preempts="never"), id="plain", marks=pytest.mark.slow),
    ],
)
def test_no_interleaving_of_four_jobs_harms_anybody(rules: SlotRules) -> None:
    class Worker(Ours):
        pass

    Worker.rules = rules
    assert check_slot_worker(Worker, jobs=4) == 6076


@pytest.mark.slow
def test_no_interleaving_of_five_jobs_harms_anybody() -> None:
    assert check_slot_worker(Ours) == 40_988


# -- urgency ------------------------------------------------------------------------------------------------------


def test_an_urgent_job_gets_the_slot_at_the_next_step_and_the_other_goes_on_after_it() -> None:
    log = Log()

    async def scene() -> list[str]:
        async with SlotWorker() as worker:
            slow = asyncio.ensure_future(
                worker.submit(lambda slot: log.job("slow", slot, seconds=3), submitter="a", priority=9)
            )
            await asyncio.sleep(1.5)
            await worker.submit(lambda slot: log.job("urgent", slot), submitter="b", priority=1)
            return [await slow]

    assert play(scene()) == ["slow"]
    assert log.lines == ["1 slow", "2 slow", "3 urgent", "4 slow"]


def test_background_work_is_not_overtaken_for_ever() -> None:
    log = Log()

    async def scene() -> float:
        async with SlotWorker(SlotRules(aging=10.0, waiting=None)) as worker:
            first = asyncio.ensure_future(
                worker.submit(lambda slot: log.job("first", slot), submitter="z", priority=1)
            )
            await asyncio.sleep(0)
            low = asyncio.ensure_future(
                worker.submit(lambda slot: log.job("low", slot), submitter="a", priority=10)
            )
            urgent = []
            for number in range(200):
                urgent.append(
                    asyncio.ensure_future(
                        worker.submit(
                            lambda slot: log.job("urgent", slot), submitter=f"s{number}", priority=1
                        )
                    )
                )
                await asyncio.sleep(0.9)
            await asyncio.gather(first, low, *urgent)
            return worker.longest_wait

    play(scene())
    ran = [line.split()[1] for line in log.lines].index("low")
    # Nine levels of ten seconds each: who comes later than that does not overtake, and one job takes a second.
    assert 90 <= ran <= 102


def test_a_submitter_with_many_jobs_keeps_nobody_waiting_who_has_one() -> None:
    queue = SlotQueue(SlotRules(waiting=None))
    for _ in range(100):
        queue.add("flood", 5, now=0.0)
    alone, _ = queue.add("alone", 5, now=3.0)
    before = 0
    while (ticket := queue.take(now=4.0)) is not alone:
        assert ticket is not None
        queue.leave(ticket, now=4.0)
        before += 1
    assert before == 4


# -- a full queue -------------------------------------------------------------------------------------------------


def test_a_full_queue_sends_away_who_would_be_last_and_never_delays_the_urgent() -> None:
    async def scene() -> list[object]:
        async with SlotWorker(SlotRules(waiting=1)) as worker:
            log = Log()
            jobs = [
                asyncio.ensure_future(
                    worker.submit(lambda slot: log.job("j", slot), submitter=name, priority=priority)
                )
                for name, priority in (("running", 5), ("low", 9), ("urgent", 1), ("middle", 5))
            ]
            done = await asyncio.gather(*jobs, return_exceptions=True)
            return [str(one) for one in done]

    reason = "1 jobs are already waiting, and this one would be last"
    refused = f"{reason}; submit it again later, or raise SlotRules.waiting"
    assert play(scene()) == ["j", f"low: {refused}", "j", f"middle: {refused}"]


def test_a_full_queue_that_refuses_keeps_who_waits() -> None:
    queue = SlotQueue(SlotRules(waiting=1, full="refuse"))
    queue.add("running", 5, now=0.0)
    queue.take(now=0.0)
    queue.add("low", 9, now=0.0)
    urgent, gone = queue.add("urgent", 1, now=0.0)
    assert gone is urgent


# -- the end ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [False, True])
def test_a_job_that_submits_to_a_worker_is_told_so_instead_of_waiting_for_itself(other: bool) -> None:
    async def scene() -> None:
        worker = SlotWorker()
        second = SlotWorker() if other else worker
        with pytest.raises(SlotRefused, match=line_with("inner: ", "slot", "deadlock")):
            await worker.submit(
                lambda slot: second.submit(lambda inner: asyncio.sleep(0), submitter="inner"),
                submitter="outer",
            )

    play(scene())


def test_a_task_that_a_job_left_behind_may_submit_once_the_job_has_ended() -> None:
    async def scene() -> object:
        worker = SlotWorker()
        left: list[asyncio.Task[object]] = []

        async def later() -> object:
            await asyncio.sleep(1)
            return await worker.submit(lambda slot: asyncio.sleep(0, "ran"), submitter="later")

        async def job(slot: Slot) -> None:
            left.append(asyncio.create_task(later()))

        await worker.submit(job, submitter="first")
        return await left[0]

    assert play(scene()) == "ran"


def test_draining_waits_for_everybody_and_takes_nobody() -> None:
    log = Log()

    async def scene() -> None:
        worker = SlotWorker()
        jobs = [
            asyncio.ensure_future(worker.submit(lambda slot: log.job("j", slot), submitter=f"{n}"))
            for n in range(3)
        ]
        await asyncio.sleep(0)
        draining = asyncio.ensure_future(worker.drain())
        await asyncio.sleep(0)
        with pytest.raises(SlotRefused, match=line_with("late: ", "drained")):
            await worker.submit(lambda slot: log.job("late", slot), submitter="late")
        await draining
        assert all(job.done() for job in jobs)

    play(scene())
    assert log.lines == ["1 j", "2 j", "3 j"]


def test_stopping_strands_nobody_and_cancels_no_submitters_own_task() -> None:
    async def scene() -> list[str]:
        worker = SlotWorker()
        log = Log()

        async def submitter(name: str) -> str:
            try:
                return await worker.submit(lambda slot: log.job(name, slot, seconds=9), submitter=name)
            except SlotRefused as refused:
                await asyncio.sleep(1)
                return str(refused)

        jobs = [asyncio.ensure_future(submitter(name)) for name in ("first", "second")]
        await asyncio.sleep(1.5)
        await worker.stop()
        return [await job for job in jobs]

    first, second = play(scene())
    assert says(first, "first: ", "stopped", "running")
    assert says(second, "second: ", "stopped", "before")


def test_stopping_an_idle_worker_returns_at_once() -> None:
    play(SlotWorker().stop())


def test_a_cancelled_job_that_is_displaced_at_once_harms_nobody() -> None:
    async def scene() -> list[object]:
        log = Log()
        async with SlotWorker(SlotRules(waiting=1)) as worker:
            running = asyncio.ensure_future(worker.submit(lambda slot: log.job("a", slot), submitter="a"))
            waiting = asyncio.ensure_future(
                worker.submit(lambda slot: log.job("b", slot), submitter="b", priority=9)
            )
            await asyncio.sleep(0.5)
            waiting.cancel()
            urgent = await worker.submit(lambda slot: log.job("c", slot), submitter="c", priority=1)
            return [await running, urgent, worker.running, worker.waiting]

    assert play(scene()) == ["a", "c", 0, 0]


def test_a_job_that_has_its_slot_and_has_not_begun_is_stopped_too() -> None:
    async def other(worker: SlotWorker, log: Log) -> str:
        return await worker.submit(lambda slot: log.job("b", slot, seconds=1000), submitter="b")

    async def scene() -> tuple[float, str]:
        worker = SlotWorker()
        log = Log()
        second = asyncio.ensure_future(other(worker, log))
        await worker.submit(lambda slot: log.job("a", slot), submitter="a")
        await worker.stop()
        with pytest.raises(SlotRefused) as refused:
            await second
        return asyncio.get_running_loop().time(), str(refused.value)

    ended, refusal = play(scene())
    assert (ended, says(refusal, "b: ", "stopped", "before")) == (1.0, True)


def test_a_step_of_a_job_that_has_ended_is_refused() -> None:
    async def scene() -> None:
        kept: list[Slot] = []

        async def job(slot: Slot) -> None:
            kept.append(slot)

        await SlotWorker().submit(job, submitter="a")
        with pytest.raises(SlotRefused, match=line_with("a: ", "step()", "after the job ended")):
            await kept[0].step()

    play(scene())


def test_jobs_that_were_sent_away_take_no_room() -> None:
    queue = SlotQueue(SlotRules(waiting=10))
    queue.add("running", 5, now=0.0)
    queue.take(now=0.0)
    for number in range(4000):
        queue.add(f"s{number}", 1 + number % 10, now=float(number))
    assert queue.waiting == 10
    assert len(queue._heap) < 200


# -- laws ---------------------------------------------------------------------------------------------------------

_JOBS = st.lists(
    st.tuples(st.floats(0, 100), st.sampled_from("abc"), st.integers(1, 10)), min_size=2, max_size=30
)


@given(_JOBS)
def test_who_comes_later_than_the_levels_between_them_are_worth_never_overtakes(
    jobs: list[tuple[float, str, int]],
) -> None:
    rules = SlotRules(aging=5.0, share=None, waiting=None)
    queue = SlotQueue(rules)
    tickets = [queue.add(name, priority, now=came)[0] for came, name, priority in sorted(jobs)]
    order = []
    while (ticket := queue.take(now=200.0)) is not None:
        order.append(ticket)
        queue.leave(ticket, now=200.0)
    assert sorted(order, key=lambda one: one.number) == tickets
    for position, ticket in enumerate(order):
        for other in order[position + 1 :]:
            assert ticket.came <= other.came + 5.0 * max(0, other.priority - ticket.priority) + 1e-9


@given(_JOBS, st.integers(1, 3))
def test_no_more_jobs_run_than_there_are_slots_and_none_is_forgotten(
    jobs: list[tuple[float, str, int]], slots: int
) -> None:
    queue = SlotQueue(SlotRules(slots=slots, waiting=None))
    left, now = 0, 0.0
    for came, name, priority in sorted(jobs):
        now = came
        queue.add(name, priority, now=now)
        if queue.take(now=now) is None and queue.running:
            queue.leave(queue.running[0], now=now)
            left += 1
        assert len(queue.running) <= slots
    while queue.waiting or queue.running:
        if queue.take(now=now) is None:
            queue.leave(queue.running[0], now=now)
            left += 1
    assert left == len(jobs)


@table_test(("field", "value"), [("slots", 0), ("waiting", -1), ("aging", 0.0), ("share", float("nan"))])
def test_rules_that_mean_nothing_are_refused(field: str, value: object) -> None:
    with pytest.raises(BadInput, match=rf"^{field}: expected .* got "):
        SlotRules(**{field: value})  # type: ignore[arg-type]  # what is wrong on purpose


def test_a_priority_is_a_number_from_one_to_ten() -> None:
    with pytest.raises(BadInput, match=line_with("priority", "1", "10", "got 0")):
        SlotQueue(SlotRules()).add("a", 0, now=0.0)


# -- under load ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [2, 3])
def test_under_load_nobody_waits_longer_than_is_bounded_and_the_greedy_take_nothing_from_others(
    seed: int,
) -> None:
    load = slot_load.loaded(SlotRules(), seconds=1800, seed=seed)
    for modest in slot_load.MODEST:
        assert load.submitted[modest.name] - load.served[modest.name] < 30
    assert load.longest["urgent"] <= 2
    levels = (SlotRules().aging or 0) * (10 - 1)
    assert max(load.longest.values()) <= levels + (SlotRules().waiting or 0) + 1
    assert load.served["background"] > 0


def test_without_a_fair_share_the_greedy_take_from_others() -> None:
    load = slot_load.loaded(SlotRules(share=None), seconds=1800)
    assert sum(load.served[one.name] for one in slot_load.MODEST) < 30
