"""What agents are shown of STATEK's own stored objects: the members that the real ones have, in dbzero's order.

The names are those of STATEK's classes, in the order in which each is first given them; the private ones are shown,
too. An attribute that an object has here and not there is none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from statek_sim.runtime.state.access import FULL, access
from statek_sim.runtime.state.context import current
from statek_sim.runtime.stored.ordering import SOMETHING, Shows, shown_members


def job_members(
    job: Any, shows: Shows, written: Mapping[str, object] = MappingProxyType({})
) -> dict[str, object]:
    """Return the members of a job, with what others have `written` to it."""
    with access(FULL):
        members = {
            "job_def": job.job_def,
            "agent": job.agent,
            "parent_job": job.parent_job,
            "job_status": SOMETHING,
            "py_env": job.py_env,
            "chat_log": [*job.chat_log, *(job.raised_at if _newest() else ())],
            "awaited_result": job.awaited_result,
            "next_instr_num": job.next_instr_num,
            "warmup_block_num": job.warmup_block_num or None,
            "error": job.error,
            "created_at": job.created_at,
            "error_handlers": list(job.error_handlers),
            "_Job__last_difficulty": SOMETHING if job.raised_at else None,
            "usage": job.usage,
            "num_completions": job.num_completions,
            "_Job__ext_ref": None,
            "_Job__pending_chat_log": job.inbox.pending,
            "_Job__shared_context": job.shared_names,
            **written,
        }
    return shown_members(members, shows)


def definition_members(definition: Any, shows: Shows) -> dict[str, object]:
    """Return the members of a job's definition."""
    with access(FULL):
        # An application's definition has the setting's style where it has none of its own.
        style = definition._chat_style if hasattr(definition, "_chat_style") else definition.chat_style
        members = {
            "agent": definition.agent,
            "metadata": dict(definition.metadata),
            "job_params": definition.job_params or None,
            "warmup_code": _warmup(definition.warmup_code),
            "_chat_style": style and SOMETHING,
            "locale": definition.locale,
            "post_processing": list(definition.post_processing) or None,
            "provider_config": None,
        }
    if _newest():
        members["extra_resources"] = None
    return shown_members(members, shows)


def _warmup(blocks: Any) -> object:
    """Return warmup code as it is stored: one block that is nothing but code is a text."""
    if len(blocks) != 1:
        return list(blocks) or None
    block = blocks[0]
    return SOMETHING if block.tool_calls or block.metadata else block.code


def reply_members(item: Any, shows: Shows) -> dict[str, object]:
    """Return the members of a turn in the chat log."""
    members = {
        "console_pos": item.console_pos,
        "tool_log": item.tool_log,
        "timestamp": item.timestamp,
        "llm_resp": item.llm_resp,
        "llm_reasoning_payload": item.reasoning,
    }
    if _newest():
        members |= {"request_difficulty": None, "cumulative_token_usage": item.cumulative_token_usage}
    return shown_members(members, shows)


def warmup_members(item: Any, shows: Shows) -> dict[str, object]:
    """Return the members of a warmup block's entry in the chat log."""
    names = ("console_pos", "tool_log", "timestamp", "warmup_block_num")
    return shown_members({name: getattr(item, name) for name in names}, shows)


def _newest() -> bool:
    """Return whether the job that looks is one of 1.4: its classes have members that earlier ones lack."""
    job: Any = current("job")
    return job is None or job.host.profile.difficulty_extends_tokens
