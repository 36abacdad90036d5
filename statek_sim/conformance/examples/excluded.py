"""What random examples leave out, and why: the generators are written so, and nothing is filtered afterwards."""

from __future__ import annotations

from typing import Final

EXCLUDED: Final[dict[str, str]] = {
    "what ends STATEK's process": (
        "A plain value added to a kept list from the left, a kept dict's keys, values or items printed, collections "
        "that hold themselves, tuples with integers beyond 64 bits. The reference runtime stops the job there."
    ),
    "texts of stored objects": (
        "A future, work item or job of the store shows its private fields, and Python's error texts name its class "
        "with the module (`'statek.task.TaskFutureResult' object is not subscriptable`). Futures are waited for, never "
        "put into a container or an operator."
    ),
    "reactivation of a crashed job": (
        "The traceback of a crash becomes part of the next prompt, with the machine's paths and source lines. A "
        "provider fault that kills its job comes only where no message, notification or child starts the job again."
    ),
    "jobs without end": (
        "Warmup code starts no jobs, and compound statements do not delegate: both start jobs for ever, on STATEK too."
    ),
    "code without end": (
        "Endless loops and BaseExceptions hang STATEK or its worker; the reference runtime contains them."
    ),
    "notifications before 1.4.0": "They do not exist, so examples for profile 1.2 go without those events.",
    "measured usage": (
        "Token counts of a tokenizer, because the store's ids in some prompts have as many bytes in every run, "
        "but not as many tokens."
    ),
    "pauses of a wait in warmup before 1.3.2": (
        "The loop never sleeps then, and each entry costs on the real package what it costs: both sides of an example "
        "enter every 0.3 s. Scenarios have the profile's own pause."
    ),
    "the wall clock": "Code that reads it, and tools that do; scenarios for that exist.",
}
"""Each exclusion by its name, with the reason."""
