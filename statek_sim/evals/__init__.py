"""Agent evaluations: tasks with their own worlds, agents that work on the tasks, and statistics of the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.evals.frameworks import anthropic as anthropic
    from statek_sim.evals.frameworks import from_pydantic_ai as from_pydantic_ai
    from statek_sim.evals.frameworks import langgraph as langgraph
    from statek_sim.evals.frameworks import openai_agents as openai_agents
    from statek_sim.evals.frameworks import pydantic_ai as pydantic_ai
    from statek_sim.evals.frameworks import tools_for_pydantic_ai as tools_for_pydantic_ai
    from statek_sim.evals.model_simulator import simulated_model as simulated_model
    from statek_sim.evals.outcome import FinishedRun as FinishedRun
    from statek_sim.evals.players import Assignment as Assignment
    from statek_sim.evals.players import ModelAccess as ModelAccess
    from statek_sim.evals.players import play as play
    from statek_sim.evals.players import replies as replies
    from statek_sim.evals.suite import load_suite as load_suite
    from statek_sim.evals.verdict import Verdict as Verdict
    from statek_sim.evals.verdict import judge as judge

__all__, __getattr__, __dir__ = lazy_exports(__name__)
