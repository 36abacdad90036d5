"""The record of a run: its calls, requests, answer and usage, with assertions that work with any framework.

`trajectory(statek_llm_server)` has the actions of the server's client; a guest, an agent, a runtime or an application
has a trajectory too.
"""

from statek_sim.observed_calls import Call, ExpectedCall, Order, Request, Trajectory, Usage, call
from statek_sim.server.observed_run import trajectory

__all__ = ["Call", "ExpectedCall", "Order", "Request", "Trajectory", "Usage", "call", "trajectory"]
