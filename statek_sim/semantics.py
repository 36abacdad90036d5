"""Behaviour profiles: all rules on which STATEK's documents and versions differ.

Each of these rules is a field of `Profile`, which the code reads; no other code checks versions. The profile `docs`
follows the documents "Harness Policies", "Jobs" and "Error Handling" literally, and version 1.4 where they are silent.
Each field states its source: "behaviour N" is section N of docs/statek-behaviour.md, checked against the released
packages.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Values for all rules on which documents and versions differ."""

    name: str

    limit_extension: Literal["additive", "multiplicative"]
    """How completions extend a limit: `base + (1 + ext) * n` (Harness Policies; up to 1.2.7) or `base * (1 + ext * n)`
    (from 1.3.0). Behaviour 0.2 item 1.
    """

    as_tool_binds_assignment: bool
    """Whether `claim = f(owner) #STATEK: as tool` is accepted and binds `claim` (Error Handling, Warmup Failures) or is
    a SyntaxError (every release). Behaviour 0.2 item 2.
    """

    waiting_job_is_dormant: bool
    """Whether a waiting job is left alone until its future is ready (from 1.3.2). Otherwise, a job that waits in warmup
    enters its block again on every pass of the loop (up to 1.3.1). Behaviour 7.2.
    """

    warmup_wait_pass_seconds: float
    """Virtual seconds between two entries into a block that waits in warmup, if waiting jobs are not dormant. Releases
    enter the block without a pause (90 to 380 times a second, depending on the machine), which 0.011 s approximates.
    Behaviour 7.2.
    """

    plain_notifications: bool
    """Whether `Job.send_notification` and `send_notification_to` exist (from 1.4.0). Behaviour 9."""

    notifications_before_request: bool
    """Whether queued notifications are added to the history before each LLM request (from 1.4.0), or only when the job
    would become DONE. Behaviour 9.
    """

    notification_takes_console_position: Literal["queued", "delivered"]
    """Whether a notification shows the console output up to where it was queued, hiding the turn's later output (before
    1.4.0), or up to where it is delivered. Behaviour 9, checked with 1.2.7.
    """

    internal_tools_offered: bool
    """Whether tools whose name starts with `_` are offered to the provider (before 1.3.0). Behaviour 0.1."""

    subtasks_get_context: bool
    """Whether subtask functions are passed `_local_context` among their keywords (before 1.3.0). Behaviour 0.1."""

    difficulty_extends_tokens: bool
    """Whether raising the difficulty extends the token limit by the usage so far (from 1.4.1). Behaviour 4.3."""

    latest_input_is_bound: bool
    """Whether each accepted user message is bound to the agent's `critical_error_handler` adapter
    (from 1.3.1). Behaviour 8."""

    union_hints_in_schema: bool
    """Whether a tool's schema supports `X | None` in its signature (from 1.4.0). Behaviour 0.1."""

    console_error_belongs_to: Literal["position", "turn"]
    """Which turns a console error counts towards: all turns with the same console position, so that turns without
    output fail together (up to 1.2.6), or only the turn in which it happened (from 1.2.7). Behaviour 4.4.
    """

    harness_error_counts: bool
    """Whether the error with which the harness stops a job counts as one of the job's exceptions (up to 1.2.6).
    Behaviour 4.4.
    """

    message_may_end_chat_log: bool
    """Whether a step works when the newest chat log item is a user message (from 1.2.6). In 1.2.5 the worker fails and
    repeats the step forever, so a dialog without warmup never begins, and an interrupted one never continues. Behaviour
    7.4.
    """

    settings_before_names: bool
    """Whether a provider's missing settings are reported before its unknown name (before 1.3.3). Behaviour 0.1."""

    prints_stay_apart: bool
    """Whether the output of an async tool goes to its own job (Jobs, Many Jobs in One Process), or to the job that last
    began to wait for such a tool (every release). Behaviour 3.
    """

    storage: Literal["dbzero", "plain"]
    """Whether stored values are converted as by dbzero (every release) to its own collections and 64-bit integers,
    dropping unsupported types; or stay unchanged, with a remark where a release would differ (Jobs, The Python
    Workspace). See docs/storage.md.
    """

    system_tools: str
    """The name of the file with the registered system tools, which are part of the tools payload. Behaviour 5."""


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
    subtasks_get_context=True,
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
`task_queue_size_funcs`) do not affect running jobs.
"""

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
    subtasks_get_context=False,
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
"""The published documents "Harness Policies", "Jobs" and "Error Handling"; like 1.4 where they are silent."""

PROFILES: Final[dict[str, Profile]] = {profile.name: profile for profile in (DOCS, V1_2_5, V1_2, V1_4)}
"""All profiles, keyed by name; the first is the default."""

LATEST: Final = V1_4
"""The newest behaviour, which is the default for applications and recordings."""

PART_OF: Final[dict[str, str]] = {V1_2_5.name: V1_2.name}
"""Profiles for a single release, mapped to their release line's profile. A scenario runs under such a profile only if
it lists the profile, because few scenarios concern the defects in one release. Comparisons also run the line's
scenarios under the profile.
"""

DEFAULT_PROFILES: Final[tuple[str, ...]] = tuple(name for name in PROFILES if name not in PART_OF)
"""The profiles for a scenario that does not list any."""

NEWER: Final = "newer"
"""Means the newest installed Python version that is known to work with a release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release with which the reference runtime is compared.

    `profile` is the name of its profile; `pythons` lists the Python versions that it supports. An unlisted release has
    the same profile as the newest listed release in its line: 1.2.6 has the same one as 1.2.7.
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
"""All releases, oldest first, for `make conformance`, `make record`, CI, `compare` and the installed backend."""


def line_of(version: str) -> str:
    """Return the first two numbers of a version."""
    return ".".join(version.split(".")[:2])


def profile_of(version: str) -> str | None:
    """Return the name of a release's profile, or else of the newest listed release's profile in its line, or None."""
    own = [release for release in RELEASES if release.version == version]
    line = [release for release in RELEASES if release.line == line_of(version)]
    return next((release.profile for release in (*own, *reversed(line))), None)


def profile_named(name: str) -> Profile:
    """Return the profile with this name; raises `BadInput`, with a suggestion, for an unknown name."""
    try:
        return PROFILES[name]
    except KeyError:
        problem = f"profile {name!r} is unknown; expected one of: {', '.join(PROFILES)}."
        raise BadInput((problem + profile_hint(name, PROFILES)).removesuffix(".")) from None


def profile_hint(name: str, known: Collection[str]) -> str:
    """Return a hint about an unknown profile name: the release's profile if it is a version, else a similar name."""
    meant = profile_of(name)
    if meant is not None and meant in known:
        return f" STATEK {name} has the profile {meant!r}"
    return suggestion(name, known)
