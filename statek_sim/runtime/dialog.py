"""Delivering a dialog agent's text to its user (behaviour 6.4)."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from statek_sim.runtime.async_tools import run_virtual
from statek_sim.runtime.markup import dialog_messages

if TYPE_CHECKING:
    from statek_sim.runtime.job import Job


def deliver(job: Job, text: str) -> None:
    """Send the dialog part of a reply through the agent's `send_message`; without one it is a TypeError."""
    send_message = getattr(job.agent, "send_message", None)
    if send_message is None:
        raise TypeError(
            f"MD_DIALOG/DIRECT chat style requires a DialogAgent, got {type(job.agent).__name__}."
        )
    for body, media in dialog_messages(text):
        result = send_message(body=body) if media is None else send_message(body=body, media=media)
        if inspect.iscoroutine(result):
            _, slept = run_virtual(result)
            job.spend(slept)
