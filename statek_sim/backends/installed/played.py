"""The run that is being played, as far as its facts and its handover to the next process are concerned."""

from __future__ import annotations

from typing import Protocol

from statek_sim.backends.driver import Driver
from statek_sim.backends.installed.cast import Cast
from statek_sim.backends.installed.loop import WorkerLoop
from statek_sim.backends.installed.transport import Transport
from statek_sim.backends.installed.virtual_time import VirtualTime
from statek_sim.backends.installed.witness import Witness
from statek_sim.values import JSON


class Played(Protocol):
    """The objects of one run; `stage.Stage` has them."""

    time: VirtualTime
    witness: Witness
    driver: Driver
    transport: Transport
    loop: WorkerLoop
    cast: Cast
    delivered: dict[str, list[JSON]]
    error: dict[str, JSON] | None
    settled: bool
    broke_off: bool
