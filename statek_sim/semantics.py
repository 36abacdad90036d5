"""Named behaviour profiles: every rule on which STATEK's documents and versions differ.

A rule that differs is one field of `Profile`, read by the code that follows it; no other code checks which version it
imitates. `docs` follows the documents "Harness Policies", "Jobs" and "Error Handling" to the letter and version 1.4
where they are silent. Sources are given per field: "behaviour N" is section N of docs/statek-behaviour.md, checked
against the released packages.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One consistent set of answers to the questions on which documents and versions disagree."""

    name: str

    limit_extension: Literal["additive", "multiplicative"]
    """How completions extend a limit: `base + (1 + ext) * n` (Harness Policies; up to 1.2.7) or `base * (1 + ext * n)`
    (from 1.3.0). Behaviour 0.2 item 1."""

    as_tool_binds_assignment: bool
    """Whether `claim = f(owner) #STATEK: as tool` is accepted and binds `claim` (Error Handling, Warmup Failures), or
    is a SyntaxError (every release). Behaviour 0.2 item 2."""

    waiting_job_is_dormant: bool
    """Whether a waiting job stays untouched until its future is ready (from 1.3.2), or a job waiting in
    warmup re-enters its block on every pass of the loop (up to 1.3.1). Behaviour 7.2."""

    warmup_wait_pass_seconds: float
    """Virtual seconds between two entries of a block that waits in warmup, where such a job is not dormant. The loop
    of those releases never sleeps then: it waits up to 0.3 s for the first step to end, and that step ends at once, so
    that a pass takes what the machine needs for it (90 to 380 a second were measured). 0.011 s, at the kind end of
    that, stands for it everywhere. Behaviour 7.2."""

    plain_notifications: bool
    """Whether `Job.send_notification` and `send_notification_to` exist (from 1.4.0). Behaviour 9."""

    notifications_before_request: bool
    """Whether queued notifications also reach the history before each LLM request (from 1.4.0), or only when
    the job would become DONE. Behaviour 9."""

    notification_takes_console_position: Literal["queued", "delivered"]
    """Which console output is shown before a notification: up to where it was queued (before 1.4.0; what the turn
    printed after that is never shown), or up to where it is delivered. Behaviour 9, checked with 1.2.7."""

    internal_tools_offered: bool
    """Whether tools whose name starts with `_` are offered to the provider (before 1.3.0). Behaviour 0.1."""

    difficulty_extends_tokens: bool
    """Whether raising the difficulty extends the token limit by the usage so far (from 1.4.1). Behaviour 4.3."""

    latest_input_is_bound: bool
    """Whether each accepted user message is bound to the agent's `critical_error_handler` adapter
    (from 1.3.1). Behaviour 8."""

    union_hints_in_schema: bool
    """Whether `X | None` in a tool's signature is understood in its schema (from 1.4.0). Behaviour 0.1."""

    console_error_belongs_to: Literal["position", "turn"]
    """Which turns a console error counts for: every turn that began at the console position of the newest item of
    the chat log, so that turns which printed nothing fail together and several errors at one position are one
    (up to 1.2.6), or the turn in which it happened (from 1.2.7). Behaviour 4.4."""

    harness_error_counts: bool
    """Whether the error by which the harness stops a job is afterwards counted as one of the job's exceptions
    (up to 1.2.6). Behaviour 4.4."""

    message_may_end_chat_log: bool
    """Whether a step survives a user's message that is the newest item of the chat log (from 1.2.6), or the worker
    fails on it, fails again while it records that, and takes the same step again without end (1.2.5): a dialog
    without warmup never begins, and one that is interrupted never goes on. Behaviour 7.4."""

    settings_before_names: bool
    """Whether a provider is refused for want of settings before its name is looked at (before 1.3.3), so that an
    unknown name reads like a known one that is not configured. Behaviour 0.1."""

    prints_stay_apart: bool
    """Whether what an async tool prints goes to its own job (Jobs, Many Jobs in One Process), or to the code that began
    last to wait for such a tool, whichever job that is of (every release). Behaviour 3."""

    storage: Literal["dbzero", "plain"]
    """What a value becomes when STATEK stores it: dbzero's collections, 64-bit integers, and nothing at all for kinds
    that dbzero refuses (every release), or what it was, with a remark where a release would do otherwise (Jobs, The
    Python Workspace: local variables persist between steps). docs/storage.md."""

    system_tools: str
    """Which system tools are registered, by the name of their file (part of the tools payload). Behaviour 5."""


V1_2: Final = Profile(
    name="1.2",
    limit_extension="additive",
    as_tool_binds_assignment=False,
    waiting_job_is_dormant=False,
    warmup_wait_pass_seconds=0.011,
    plain_notifications=False,
    notifications_before_request=False,
    notification_takes_console_position="queued",
    internal_tools_offered=True,
    difficulty_extends_tokens=False,
    latest_input_is_bound=False,
    union_hints_in_schema=False,
    console_error_belongs_to="turn",
    harness_error_counts=False,
    message_may_end_chat_log=True,
    settings_before_names=True,
    prints_stay_apart=False,
    storage="dbzero",
    system_tools="1.2",
)
"""STATEK 1.2.7."""

V1_2_5: Final = replace(
    V1_2,
    name="1.2.5",
    console_error_belongs_to="position",
    harness_error_counts=True,
    message_may_end_chat_log=False,
)
"""STATEK 1.2.5. Its other differences from 1.2.7 (the agent `Coordinator`, `start_statek` without
`task_queue_size_funcs`) are no rules of a running job."""

V1_4: Final = Profile(
    name="1.4",
    limit_extension="multiplicative",
    as_tool_binds_assignment=False,
    waiting_job_is_dormant=True,
    warmup_wait_pass_seconds=0.0,
    plain_notifications=True,
    notifications_before_request=True,
    notification_takes_console_position="delivered",
    internal_tools_offered=False,
    difficulty_extends_tokens=True,
    latest_input_is_bound=True,
    union_hints_in_schema=True,
    console_error_belongs_to="turn",
    harness_error_counts=False,
    message_may_end_chat_log=True,
    settings_before_names=False,
    prints_stay_apart=False,
    storage="dbzero",
    system_tools="1.4",
)
"""STATEK 1.4.2."""

DOCS: Final = replace(
    V1_4,
    name="docs",
    limit_extension="additive",
    as_tool_binds_assignment=True,
    prints_stay_apart=True,
    storage="plain",
)
"""The published documents "Harness Policies", "Jobs" and "Error Handling"; where they are silent, as 1.4."""

PROFILES: Final[dict[str, Profile]] = {profile.name: profile for profile in (DOCS, V1_2_5, V1_2, V1_4)}
"""Every profile by name, the default first."""

PROFILE_WORDS: Final = " or ".join(", ".join(PROFILES).rsplit(", ", 1))
"""The names, for help texts."""

LATEST: Final = V1_4
"""The newest behaviour: the default for applications and recordings."""

PART_OF: Final[dict[str, str]] = {V1_2_5.name: V1_2.name}
"""Profiles of a single release of a line. A scenario supports one only if it names it, since a release's defects are
seldom what a scenario is about; but scenarios for the line can be compared under it.
"""

DEFAULT_PROFILES: Final[tuple[str, ...]] = tuple(name for name in PROFILES if name not in PART_OF)
"""The profiles of a scenario that names none."""

NEWER: Final = "newer"
"""The Python for a release: the newest one that is installed and known to work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release with which the reference runtime is compared.

    `profile` describes it, `pythons` are the versions of Python it runs on. A release that is not listed has the
    profile of the newest listed one of its line (1.2.6 that of 1.2.7).
    """

    version: str
    profile: str
    pythons: tuple[str, ...]

    @property
    def line(self) -> str:
        """The first two numbers of the version."""
        return line_of(self.version)


RELEASES: Final[tuple[Release, ...]] = (
    Release(version="1.2.5", profile=V1_2_5.name, pythons=("3.11",)),
    Release(version="1.2.7", profile=V1_2.name, pythons=("3.11",)),
    Release(version="1.4.2", profile=V1_4.name, pythons=("3.11", NEWER)),
)
"""Every release, oldest first: used by `make conformance`, `make record`, CI, `compare` and the installed backend."""


def line_of(version: str) -> str:
    """Return the first two numbers of a version."""
    return ".".join(version.split(".")[:2])


def profile_of(version: str) -> str | None:
    """Return the profile of a release: its own, else that of the newest listed one of its line, else None."""
    own = [release for release in RELEASES if release.version == version]
    line = [release for release in RELEASES if release.line == line_of(version)]
    return next((release.profile for release in (*own, *reversed(line))), None)


def profile_named(name: str) -> Profile:
    """Return the profile called `name`; for an unknown name, `BadInput` with the known ones and a suggestion."""
    try:
        return PROFILES[name]
    except KeyError:
        problem = f"profile {name!r} is unknown; expected one of: {', '.join(PROFILES)}."
        raise BadInput((problem + profile_hint(name, PROFILES)).removesuffix(".")) from None


def profile_hint(name: str, known: Collection[str]) -> str:
    """Return a hint for an unknown profile name: a release's version means that release's profile."""
    meant = profile_of(name)
    if meant is not None and meant in known:
        return f" STATEK {name} has the profile {meant!r}"
    return suggestion(name, known)
