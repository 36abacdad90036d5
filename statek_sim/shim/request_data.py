"""STATEK's `Job.get_next_request` and `Job.get_request_data`: a request's parameters, before or after it was sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from statek_sim.runtime.agents.history import with_rule
from statek_sim.runtime.execution.services import parse_temperature
from statek_sim.runtime.jobs.lifecycle import Difficulty
from statek_sim.runtime.state.chat_log import LLM_LogItem
from statek_sim.shim.chat_history import chat_history
from statek_sim.shim.difficulty import TaskDifficulty


def get_next_request(self: Any, difficulty: Any = None) -> dict[str, Any]:
    """Return the parameters of the next request, by default for the current difficulty."""
    return _request(self, self, self.get_current_difficulty() if difficulty is None else difficulty)


def get_request_data(self: Any, turn_num: int) -> dict[str, Any]:
    """Return the parameters of the request for a reply; raises IndexError if there is no such reply."""
    replies = [
        index
        for index, item in enumerate(self.chat_log)
        if isinstance(item, LLM_LogItem) and item.llm_resp is not None
    ]
    if not 0 <= turn_num < len(replies):
        raise IndexError(f"turn_num out of range: {turn_num}")
    reply = self.chat_log[replies[turn_num]]
    then = SimpleNamespace(
        chat_log=self.chat_log[: replies[turn_num]],
        chat_style=self.chat_style,
        console_pos=reply.console_pos,
        job_def=self.job_def,
        py_env=self.py_env,
    )
    static = Difficulty(self.job_def, self.host.default_difficulty).level.lower()
    return _request(self, then, reply.request_difficulty or TaskDifficulty[static])


def _request(job: Any, then: Any, difficulty: Any) -> dict[str, Any]:
    """Return the parameters of a request with the conversation of `then`."""
    metadata: dict[str, Any] = dict(job.job_def.metadata)
    if ":" in metadata["MODEL"]:
        metadata["MODEL"] = {level: job.get_current_model(level) for level in TaskDifficulty.values()}
    options = {
        "temperature": parse_temperature(metadata.get("TEMPERATURE")),
        "chat_style": job.job_def.chat_style,
    }
    return {
        "chat_history": chat_history(then),
        "system_prompt": with_rule(job.system_prompt(difficulty), job.job_def.locale, metadata),
        "model": job.get_current_model(difficulty),
        "metadata": metadata,
        "available_tools": list({tool.__name__: tool for tool in reversed(job.agent.tools)}.values())[::-1],
        "provider_config": None,
        **{name: value for name, value in options.items() if value is not None},
    }
