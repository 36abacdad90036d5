"""A run's record (calls, requests, answer and usage), with assertions that work for any framework.

`trajectory` creates the record from a server (whose client is the agent under test), a guest, an agent, a runtime or an
application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.observed_calls import Call as Call
    from statek_sim.observed_calls import ExpectedCall as ExpectedCall
    from statek_sim.observed_calls import Order as Order
    from statek_sim.observed_calls import Request as Request
    from statek_sim.observed_calls import Trajectory as Trajectory
    from statek_sim.observed_calls import Usage as Usage
    from statek_sim.observed_calls import call as call
    from statek_sim.server.observed_run import trajectory as trajectory

__all__, __getattr__, __dir__ = lazy_exports(__name__)
