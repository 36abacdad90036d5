"""Script files for `statek-sim serve llm`: a script without a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from statek_sim.errors import BadScenario
from statek_sim.scenario.files import located, mapping_in
from statek_sim.scenario.locate import findings_of
from statek_sim.scenario.part import Count, Items, Part, Positive, Seconds, exactly_one, key, refused, shape
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
"""The kinds of faults; every fault has exactly one."""

RealSeconds = Annotated[float, Field(ge=0)]


class FaultText(Part):
    """A fault, and the requests that it affects; all given conditions (requests, rate, when, times) must hold."""

    http: Annotated[int, Field(ge=400, le=599)] = key(
        500, "Respond with this status; no scripted reply is used."
    )
    retry_after: Seconds | None = key(None, "`Retry-After` of an `http` fault, in seconds.")
    silence: Literal[True] = key(True, "Don't respond; no scripted reply is used.")
    slow_first_byte: RealSeconds = key(0.0, "Real seconds before the response starts.")
    slow_tokens: RealSeconds = key(0.0, "Real seconds before each event in a stream.")
    reset: Count = key(1, "Reset the connection after this many events, or before a non-streamed response.")
    truncated: Literal[True] = key(True, "Send half of the response.")
    malformed: Literal[True] = key(True, "Send JSON that ends with the wrong bracket.")
    empty_choices: Literal[True] = key(True, "No choices.")
    null_usage: Literal[True] = key(True, "Send null usage.")
    no_usage: Literal[True] = key(True, "No usage.")
    content_type: str = key("text/html", "The response's content type.")

    requests: Items[Positive] = key((), "Request numbers, starting from 1.")
    rate: Annotated[float, Field(ge=0, le=1)] | None = key(None, "Fraction of requests affected.")
    seed: int = key(0, "Seed for `rate`.")
    when: When | None = key(None, "Affect only requests that meet this condition.")
    times: Positive | None = key(None, "Maximum number of requests affected.")

    @property
    def kind(self) -> str:
        """The kind of fault."""
        return next(kind for kind in FAULTS if self.said(kind))

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if exactly_one(self, FAULTS) != "http" and self.said("retry_after"):
            raise refused("retry_after requires http")
        if not any(self.said(key) for key in ("requests", "rate", "when", "times")):
            raise refused("expected at least one of requests, rate, when, times")
        return self


Script = Annotated[
    Annotated[Items[Reply], Tag("<list>")] | Annotated[dict[str, Items[Reply]], Tag("<mapping>")],
    Discriminator(
        shape,
        custom_error_type="refused",
        custom_error_message="expected a list of replies, or a mapping from model or agent names to such lists",
    ),
]


Number = Annotated[float, Field(allow_inf_nan=False)]


class ServeFile(Part):
    """A script file."""

    script: Script = Field(
        description="Replies in order, or lists of replies keyed by model, agent (`x-statek-agent`) or `job:NAME`."
    )
    faults: Items[FaultText] = key((), "Faults, with the requests that they affect.")
    embeddings: dict[str, Annotated[Items[Number], Field(min_length=1)]] = key(
        dict, "Embedding vectors, keyed by input; all others are computed."
    )
    ignored: Items[str] = key((), "Unsupported request parameters to ignore instead of rejecting.")
    models: Items[str] = key(("gpt-4o",), "The models that `/v1/models` lists.", min_length=1)
    chat_style: Literal["CONSOLE", "MARKDOWN", "MD_DIALOG", "DIRECT"] | None = key(
        None, "The chat style in which `code` is sent."
    )
    count_usage: bool = key(True, "Whether to count the usage of replies that don't specify it.")


def root_of(path: Path) -> Node:
    """Return the mapping in a YAML file; raises `BadScenario` with `path:line: message`."""
    found = mapping_in(path, "script")
    if isinstance(found, Problem):
        raise BadScenario(str(found))
    return found[0]


def load_serve_file(path: Path) -> ServeFile:
    """Return a script file; raises `BadScenario` with one line `path:line: message` per problem."""
    root = root_of(path)
    value = node_value(root)
    try:
        return ServeFile.model_validate(value)
    except ValidationError as error:
        problems = [
            str(located(path, root, finding)) for finding in findings_of(error, value, prefix=("serve",))
        ]
    raise BadScenario("\n".join(problems))
