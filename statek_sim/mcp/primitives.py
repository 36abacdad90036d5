"""Resources and prompts for an MCP test server.

Source: the MCP specification, revision 2025-11-25, server features "Resources" and "Prompts".
"""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from statek_sim.did_you_mean import with_suggestion
from statek_sim.errors import BadInput
from statek_sim.values import JSON, items_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedResource:
    """A resource with text or binary content; the default `name` is the URI."""

    uri: str
    content: str | bytes
    name: str = ""
    description: str = ""
    mime_type: str = ""
    """The default is `text/plain`, or `application/octet-stream` for bytes."""

    def listed(self) -> dict[str, JSON]:
        """Return the resource's entry in `resources/list`."""
        fields: dict[str, JSON] = {"uri": self.uri, "name": self.name or self.uri, "mimeType": self._type}
        return {**fields, **({"description": self.description} if self.description else {})}

    def read(self) -> dict[str, JSON]:
        """Return the `result` of the answer to `resources/read`."""
        text = isinstance(self.content, str)
        content = self.content if isinstance(self.content, str) else base64.b64encode(self.content).decode()
        return {"contents": [{"uri": self.uri, "mimeType": self._type, "text" if text else "blob": content}]}

    @property
    def _type(self) -> str:
        return self.mime_type or (
            "text/plain" if isinstance(self.content, str) else "application/octet-stream"
        )


PromptCode = Callable[..., str | Sequence[Mapping[str, Any]]]
"""Returns a prompt's text, or a list of messages `{"role": "user", "content": ...}` with strings or content blocks."""


@dataclass(frozen=True, slots=True)
class ServedPrompt:
    """A prompt that takes its name, docstring and parameters from a function."""

    run: PromptCode

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.run, "__name__", "prompt"))

    @property
    def arguments(self) -> dict[str, bool]:
        """Argument names, and whether each argument is required."""
        parameters = inspect.signature(self.run).parameters.values()
        return {one.name: one.default is inspect.Parameter.empty for one in parameters}

    def listed(self) -> dict[str, JSON]:
        """Return the prompt's entry in `prompts/list`."""
        arguments: list[JSON] = [
            {"name": name, "required": required} for name, required in self.arguments.items()
        ]
        described = inspect.getdoc(self.run)
        fields: dict[str, JSON] = {"name": self.name, "arguments": arguments}
        return {**fields, "description": described} if described else fields

    def get(self, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the `result` of the answer to `prompts/get`.

        Raises `BadInput` for unknown or missing arguments.
        """
        for name in arguments:
            if name not in self.arguments:
                problem = f"prompt {self.name!r} has no argument {name!r}"
                raise BadInput(with_suggestion(problem, name, self.arguments))
        missing = [name for name, required in self.arguments.items() if required and name not in arguments]
        if missing:
            raise BadInput(f"prompt {self.name!r}: missing arguments {', '.join(map(repr, missing))}")
        given = self.run(**arguments)
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return {"messages": [_message(message) for message in messages]}


def _message(message: Mapping[str, Any]) -> dict[str, JSON]:
    content = message["content"]
    block = {"type": "text", "text": content} if isinstance(content, str) else dict(content)
    return {"role": message["role"], "content": block}


Resources = Mapping[str, str | bytes] | Iterable[ServedResource]
"""A mapping from URIs to contents, or a list of `ServedResource`s."""

Prompts = Iterable[PromptCode | ServedPrompt]
"""A list of functions or `ServedPrompt`s."""


def resources_by_uri(resources: Resources, where: str) -> dict[str, ServedResource]:
    """Return resources keyed by URI; raises `BadInput` for a duplicate URI."""
    made = (
        [ServedResource(uri=uri, content=content) for uri, content in resources.items()]
        if isinstance(resources, Mapping)
        else items_of("resources", resources)
    )
    return _by_key(where, "resource", [(one.uri, one) for one in made])


def prompts_by_name(prompts: Prompts, where: str) -> dict[str, ServedPrompt]:
    """Return prompts keyed by name; raises `BadInput` for a duplicate name."""
    made = [
        one if isinstance(one, ServedPrompt) else ServedPrompt(one) for one in items_of("prompts", prompts)
    ]
    return _by_key(where, "prompt", [(one.name, one) for one in made])


def _by_key(where: str, kind: str, pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for key, one in pairs:
        if key in found:
            raise BadInput(f"{where}: {kind} {key!r} is listed twice")
        found[key] = one
    return found
