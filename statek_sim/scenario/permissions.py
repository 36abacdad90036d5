"""Permissions in an engine two scenario: rules, and the files that paths lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator
from pydantic.config import ConfigDict

from statek_sim.agent.option_names import PROTECTED, RuleKind
from statek_sim.errors import BadInput
from statek_sim.scenario.part import (
    Items,
    Part,
    PartOrText,
    Positive,
    Seconds,
    also_text,
    exactly_one,
    key,
    refused,
)

if TYPE_CHECKING:
    from statek_sim.agent.permissions.policy import Policy, Rule

_KINDS: Final[tuple[RuleKind, ...]] = ("tool", "read", "write", "host", "command")
_ONE_KIND: Final[list[JsonValue]] = [{"required": [kind]} for kind in _KINDS]


class RuleText(Part):
    """A rule, with exactly one of these keys; the value is a pattern.

    `*` matches any characters; in paths, `*` matches any characters within a name, and `**` any number of names.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": _ONE_KIND})

    tool: str = key("", "A tool name.")
    read: str = key("", "A path, absolute or from `root`.")
    write: str = key("", "A path, absolute or from `root`.")
    host: str = key("", "A host; `*` covers every host except this machine and its network.")
    command: str = key("", "A simple shell command.")

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        exactly_one(self, _KINDS)
        try:
            self.rule  # noqa: B018  # made to see whether it can be
        except BadInput as error:
            raise refused(str(error)) from None
        return self

    @property
    def rule(self) -> Rule:
        """The rule for the permission policy."""
        from statek_sim.agent.permissions.policy import Rule  # noqa: PLC0415  # loaded for a scenario with rules

        kind = next(kind for kind in _KINDS if self.said(kind))
        return Rule(kind, str(getattr(self, kind)))


class FileText(PartOrText):
    """The file at a path; a plain string is the path that it links to."""

    text_key = "link"

    kind: Literal["file", "folder", "other"] = key("file", "The kind of file.")
    link: str = key("", "The target, if this is a link.")
    names: Positive = key(1, "Number of hard links to the file.")

    model_config = ConfigDict(json_schema_extra=also_text("FileText", "The target, if this is a link."))

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if self.link and (self.said("kind") or self.said("names")):
            raise refused("'link' excludes 'kind' and 'names'")
        return self


class PermissionsText(Part):
    """What an agent's calls may access. Rules apply in the order deny, ask, allow; anything else is denied.

    Source: the agent document §8.
    """

    root: Annotated[str, Field(pattern="^/")] = key(
        "/workspace", "Absolute folder to which paths and patterns are relative."
    )
    allow: Items[RuleText] = key((), "Access that is allowed.")
    ask: Items[RuleText] = key((), "Access that a person must allow.")
    deny: Items[RuleText] = key((), "Access that is always denied.")
    protected: Items[str] = key(
        PROTECTED, "Names of files and folders that are never written to, including their contents."
    )
    within: Seconds | None = key(None, "Virtual seconds for a person's answer; null: no limit.")
    hard_links: bool = key(False, "Whether files with several hard links can be read and written.")
    files: dict[Annotated[str, Field(pattern="^/")], FileText] = key(
        dict, "The files on disk, keyed by absolute path; nothing else exists."
    )

    @model_validator(mode="after")
    def _good_root(self) -> Self:
        try:
            self.policy  # noqa: B018  # made to see whether it can be
        except BadInput as error:
            raise refused(str(error)) from None
        return self

    @property
    def policy(self) -> Policy:
        """The permission policy."""
        from statek_sim.agent.permissions.policy import Policy  # noqa: PLC0415  # loaded for a scenario with rules

        return Policy(
            root=self.root,
            allow=[text.rule for text in self.allow],
            ask=[text.rule for text in self.ask],
            deny=[text.rule for text in self.deny],
            protected=self.protected,
            seconds=self.within,
            hard_links=self.hard_links,
        )
