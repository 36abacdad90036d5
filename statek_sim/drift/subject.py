"""Under which heading of the report a rule comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

HARNESS: Final = "How long a job may go on"
COUNTING: Final = "What counts as an exception"
WARMUP: Final = "Warmup"
WAITING: Final = "Waiting for futures"
DIALOGS: Final = "Dialogs"
NOTICES: Final = "Notifications and results of subtasks"
HANDLERS: Final = "Error handlers"
OFFERED: Final = "What the model is offered, and the size of requests"
PROVIDERS: Final = "Providers and their settings"
STORED: Final = "What a value becomes in the store"
OTHER: Final = "Other rules"

SUBJECTS: Final[dict[str, str]] = {
    "limit_extension": HARNESS,
    "difficulty_extends_tokens": HARNESS,
    "console_error_belongs_to": COUNTING,
    "harness_error_counts": COUNTING,
    "message_may_end_chat_log": DIALOGS,
    "as_tool_binds_assignment": WARMUP,
    "waiting_job_is_dormant": WAITING,
    "warmup_wait_pass_seconds": WAITING,
    "plain_notifications": NOTICES,
    "notifications_before_request": NOTICES,
    "notification_takes_console_position": NOTICES,
    "latest_input_is_bound": HANDLERS,
    "storage": STORED,
    "settings_before_names": PROVIDERS,
    "internal_tools_offered": OFFERED,
    "union_hints_in_schema": OFFERED,
    "system_tools": OFFERED,
}
"""Every rule of a profile, the subjects in the order of the report."""


def subject_of(causes: Sequence[str]) -> str:
    """Return the heading for what these rules cause together: that of the first one in the report's order."""
    order = list(dict.fromkeys(SUBJECTS.values()))
    return min((SUBJECTS.get(cause, OTHER) for cause in causes), key=[*order, OTHER].index, default=OTHER)
