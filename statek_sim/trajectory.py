"""What an agent did, as data: its calls of tools in order, and expectations on them that hold for any framework.

`trajectory(statek_llm_server)` has the calls that a client of the server made; a guest, an agent or a runtime has a
trajectory too.
"""

from statek_sim.server.trajectory import Call, ExpectedCall, Order, Trajectory, call, trajectory

__all__ = ["Call", "ExpectedCall", "Order", "Trajectory", "call", "trajectory"]
