"""How warmup goes on, and how its failure ends a job (behaviour 2); `runtime.agents.warmup_source` reads its text."""

from __future__ import annotations

from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus


def fail_warmup(job: Job, error: Exception) -> None:
    """End the job with the error on its definition, not on itself (behaviour 2)."""
    if isinstance(error, StopIteration):
        # STATEK runs the code in a coroutine, and what Python says about that is all that is kept.
        error = RuntimeError("coroutine raised StopIteration")
    job.job_def.set_error(error)
    job.life.finish("warmup", f"{type(error).__name__}: {error}")
    job.notify_handlers(error)


def next_warmup_block(job: Job) -> bool:
    """Move to the next warmup block; return whether warmup is over."""
    if job.warmup_block_num < len(job.job_def.warmup_code) - 1:
        job.warmup_block_num += 1
        return False
    job.life.move_to(JobStatus.STARTED)
    return True
