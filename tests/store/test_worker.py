"""Which workers are certainly dead."""

from __future__ import annotations

import os

from statek_sim.store.worker import is_gone, worker_name
from tests.store.dying import in_a_process


def test_only_processes_of_this_machine_can_be_known_to_be_dead() -> None:
    assert not is_gone(worker_name())
    assert not is_gone("elsewhere/1")
    assert not is_gone("")


def test_a_worker_of_another_container_of_the_same_name_is_not_gone() -> None:
    """Its process number says nothing here; nor does that of a process before the machine was started anew."""
    reader, writer = os.pipe()

    def tell() -> None:
        os.write(writer, worker_name().encode())

    in_a_process(tell)
    os.close(writer)
    with open(reader, encoding="utf-8") as told:
        name = told.read()
    node, number, world, start, token = name.split("/")
    assert is_gone(name)
    assert not is_gone("/".join((node, number, world[::-1] + "0", start, token)))
    assert not is_gone("/".join((node, number, "", start, token)))
    assert not is_gone(f"{node}/{number}")


def test_a_process_that_has_the_number_of_a_dead_one_is_not_that_worker() -> None:
    node, number, world, start, token = worker_name().split("/")
    assert is_gone("/".join((node, number, world, f"{int(start) - 1}", token)))
    assert not is_gone("/".join((node, number, world, start, token)))


def test_a_zombie_is_dead_also_before_its_parent_asks_how_it_ended() -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, worker_name().encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as told:
        name = told.read()
    # It is there until it is waited for.
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    os.kill(child, 0)
    assert is_gone(name)
    os.waitpid(child, 0)
    assert is_gone(name)
