"""Script files: what `statek-sim serve llm` plays, without a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from statek_sim.errors import BadScenario
from statek_sim.scenario.files import located, mapping_in
from statek_sim.scenario.locate import findings_of
from statek_sim.scenario.part import Count, Items, Part, Positive, Seconds, exactly_one, refused, shape
from statek_sim.scenario.problem import Problem
from statek_sim.scenario.reply import Reply, When
from statek_sim.scenario.tree import Node, node_value

FAULTS: Final = (
    "http",
    "silence",
    "slow_first_byte",
    "slow_tokens",
    "reset",
    "truncated",
    "malformed",
    "empty_choices",
    "null_usage",
    "no_usage",
    "content_type",
)
"""The kinds of faults; a fault has exactly one."""

RealSeconds = Annotated[float, Field(ge=0)]


class FaultText(Part):
    """A fault and its requests: all given conditions among requests, rate, when and times must hold."""

    http: Annotated[int, Field(ge=400, le=599)] = Field(
        default=500, description="This status; the script is not touched."
    )
    retry_after: Seconds | None = Field(
        default=None, description="`Retry-After` of an `http` fault, in seconds."
    )
    silence: Literal[True] = Field(default=True, description="No answer; the script is not touched.")
    slow_first_byte: RealSeconds = Field(default=0.0, description="Real seconds until the answer starts.")
    slow_tokens: RealSeconds = Field(default=0.0, description="Real seconds before each event of a stream.")
    reset: Count = Field(
        default=1, description="Connection reset after this many events, or after half an answer."
    )
    truncated: Literal[True] = Field(default=True, description="Half of the answer.")
    malformed: Literal[True] = Field(default=True, description="JSON that closes with the wrong bracket.")
    empty_choices: Literal[True] = Field(default=True, description="No choices.")
    null_usage: Literal[True] = Field(default=True, description="Usage is null.")
    no_usage: Literal[True] = Field(default=True, description="No usage.")
    content_type: str = Field(default="text/html", description="The content type of the answer.")

    requests: Items[Positive] = Field(default=(), description="Numbers of the requests, from 1.")
    rate: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="Share of the requests."
    )
    seed: int = Field(default=0, description="Seed of the rate.")
    when: When | None = Field(default=None, description="Only such requests.")
    times: Positive | None = Field(default=None, description="At most so often.")

    @property
    def kind(self) -> str:
        """Return the kind of this fault."""
        return next(kind for kind in FAULTS if self.said(kind))

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if exactly_one(self, FAULTS) != "http" and self.said("retry_after"):
            raise refused("retry_after needs http")
        if not any(self.said(key) for key in ("requests", "rate", "when", "times")):
            raise refused("expected at least one of requests, rate, when, times")
        return self


Script = Annotated[
    Annotated[Items[Reply], Tag("<list>")] | Annotated[dict[str, Items[Reply]], Tag("<mapping>")],
    Discriminator(
        shape,
        custom_error_type="refused",
        custom_error_message="expected a list of replies, or a mapping of such lists by model or agent",
    ),
]


Number = Annotated[float, Field(allow_inf_nan=False)]


class ServeFile(Part):
    """A script file."""

    script: Script = Field(
        description="Replies in order; or by model, agent (`x-statek-agent`) or `job:NAME`."
    )
    faults: Items[FaultText] = Field(default=(), description="Faults, with their requests.")
    embeddings: dict[str, Annotated[Items[Number], Field(min_length=1)]] = Field(
        default_factory=dict, description="Vectors by text; others are computed."
    )
    ignored: Items[str] = Field(
        default=(), description="Request parameters to ignore instead of refusing them."
    )
    models: Items[str] = Field(
        default=("gpt-4o",), min_length=1, description="The models that `/v1/models` lists."
    )
    chat_style: Literal["CONSOLE", "MARKDOWN", "MD_DIALOG", "DIRECT"] | None = Field(
        default=None, description="The form in which `code` is sent."
    )
    count_usage: bool = Field(default=True, description="Count the usage of replies that do not report it.")


def root_of(path: Path) -> Node:
    """Return the mapping in a YAML file; `BadScenario` with `path:line: message`."""
    found = mapping_in(path, "script")
    if isinstance(found, Problem):
        raise BadScenario(str(found))
    return found[0]


def load_serve_file(path: Path) -> ServeFile:
    """Return a script file; `BadScenario`, one `path:line: message` per problem."""
    root = root_of(path)
    value = node_value(root)
    try:
        return ServeFile.model_validate(value)
    except ValidationError as error:
        problems = [
            str(located(path, root, finding)) for finding in findings_of(error, value, prefix=("serve",))
        ]
    raise BadScenario("\n".join(problems))
