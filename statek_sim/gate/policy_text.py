"""A policy file as types: what may stand in it, and the JSON Schema of that."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, Strict

FORMAT: Final = "statek-sim/policy@1"

Percent = Annotated[int, Field(ge=0, le=99)]
Positive = Annotated[int, Field(ge=1)]
Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Strict(False)]
Money = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SelectText(_Part):
    """Which scenarios a rule judges; nothing said: every one."""

    tags: Words = Field(default=(), description="Scenarios with one of these tags.")
    scenarios: Words = Field(default=(), description="Scenarios with one of these names: suite/id, or id.")
    without_tags: Words = Field(default=(), description="But none with one of these tags.")


class HeadroomText(_Part):
    """The share of each limit that has to be left, in percent; a limit that is not said may be used up."""

    max_turns: Percent = Field(default=0, description="Of the LLM turns.")
    max_exceptions: Percent = Field(default=0, description="Of the exceptions in total.")
    max_consecutive_exceptions: Percent = Field(
        default=0, description="Of the longest streak of failing turns."
    )
    max_token_usage: Percent = Field(default=0, description="Of the estimated tokens.")


class RuleText(_Part):
    """One rule."""

    name: Annotated[str, Field(min_length=1)] = Field(description="The demand in the team's words.")
    select: SelectText = Field(description="Which scenarios it judges.")
    must: Literal["finish", "stop"] | None = Field(
        default=None, description="finish: every job comes to its own end. stop: a limit stops what goes bad."
    )
    headroom_percent: Percent | HeadroomText | None = Field(
        default=None, description="With finish: the share that has to be left, of every limit or by limit."
    )
    within_turns: Positive | None = Field(
        default=None, description="With stop: LLM turns at most, the one on which the job goes bad included."
    )
    within_tokens: Positive | None = Field(
        default=None, description="With stop: measured tokens at most, from that turn on."
    )
    within_cost: Money | None = Field(
        default=None, description='With stop: cost at most, from that turn on, as text: "0.05". Needs prices.'
    )
    claims_leak: bool = Field(default=True, description="false: no claim may leak.")
    max_crash_tokens: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="Measured tokens at most that one crash of the worker adds, wherever it dies.",
    )
    max_crash_cost: Money | None = Field(
        default=None, description='Cost at most that one crash adds, as text: "0.05". Needs prices.'
    )


class BaselineText(_Part):
    """What the committed baseline allows."""

    worse_by_percent: Annotated[int, Field(ge=0)] = Field(
        default=0, description="How much worse than the baseline a figure may get."
    )


class PolicyText(_Part):
    """A policy file."""

    version: Literal[1] = Field(default=1, description="Version of this format.")
    prices: str | None = Field(
        default=None, description="Folder of STATEK's price files, from the policy's folder."
    )
    rule: Annotated[tuple[RuleText, ...], Strict(False), Field(min_length=1)] = Field(
        description="The rules; each judges every scenario that it selects."
    )
    baseline: BaselineText = Field(default_factory=BaselineText, description="How baselines are compared.")


def policy_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of policy files (draft 2020-12), for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT.replace('/', ':').replace('@', ':')}",
        **PolicyText.model_json_schema(),
        "title": f"{FORMAT}: what a team demands of its presets",
    }
