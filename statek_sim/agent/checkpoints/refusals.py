"""Why a store refuses a worker, in sentences."""

from __future__ import annotations

from statek_sim.agent.checkpoints.records import Lease


def held(session: str, worker: str, seconds: float) -> str:
    """Return why a session cannot be claimed."""
    return f"session {session!r} belongs to worker {worker!r} for {seconds:g} s more; wait, or let it release"


def fenced(lease: Lease, worker: str) -> str:
    """Return why a worker cannot save."""
    now = f"worker {worker!r} has it" if worker else "it was given back since"
    return (
        f"session {lease.session!r} was taken from worker {lease.worker!r}: {now}; "
        "stop this run, nothing of it was saved"
    )


def other_plan(session: str, saved: str, wanted: str) -> str:
    """Return why a session cannot be resumed for a task."""
    return (
        f"session {session!r} was saved for plan {saved}, and {wanted} is to be resumed; "
        "give another task another session, or remove this one"
    )
