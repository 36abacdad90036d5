"""What the result of an MCP tool is to a model: one text, of which nothing is lost without a word."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.values import JSON

_BYTES_OF_BASE64: Final = 3 / 4


def text_of(
    content: Sequence[Mapping[str, JSON]], structured: Mapping[str, JSON] | None, *, most: int
) -> str:
    """Return a result's blocks as text, in their order; `most` characters of it.

    Texts stand as they are, resources with their text, links with their address; pictures, sounds and binary
    resources as what they are and how large. A structured value that no block says comes last, as JSON; FastMCP's
    `{"result": X}` is said by a block that says X.
    """
    blocks = [_block(block) for block in content]
    if structured is not None and not any(_says(text, structured) for text in blocks):
        blocks.append(json.dumps(structured, ensure_ascii=False, separators=(",", ":")))
    text = "\n".join(blocks)
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most} of {len(text)} characters are left out]"


def _block(block: Mapping[str, JSON]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio" as kind:
            return f"[{kind} {block.get('mimeType', '')}, {_size(block.get('data'))} bytes]"
        case "resource":
            resource = block.get("resource")
            return _resource(resource if isinstance(resource, dict) else {})
        case "resource_link":
            named = block.get("title") or block.get("name") or ""
            return " ".join(str(part) for part in ("[resource", named, block.get("uri", "")) if part) + "]"
        case kind:
            return f"[a block of type {kind!r} that is not known here]"


def _resource(resource: Mapping[str, JSON]) -> str:
    uri = resource.get("uri", "")
    if isinstance(resource.get("text"), str):
        return f"[resource {uri}]\n{resource['text']}"
    return f"[resource {uri} {resource.get('mimeType', '')}, {_size(resource.get('blob'))} bytes]"


def _size(base64: JSON) -> int:
    text = base64 if isinstance(base64, str) else ""
    return int(len(text.rstrip("=")) * _BYTES_OF_BASE64)


def _says(text: str, structured: Mapping[str, JSON]) -> bool:
    wrapped = structured["result"] if set(structured) == {"result"} else structured
    if text == wrapped:
        return True
    try:
        return json.loads(text) in (structured, wrapped)
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One entry of `tools/list`. `name` is the server's own."""

    name: str
    description: str
    parameters: Mapping[str, JSON]


def definition_of(listed: Mapping[str, JSON]) -> Definition:
    """Return the definition that an entry of `tools/list` is.

    A title stands for a description that is not there: some servers give the one or the other.
    """
    schema = listed.get("inputSchema")
    nothing: dict[str, JSON] = {"type": "object", "properties": {}}
    parameters = schema if isinstance(schema, dict) else nothing
    described = listed.get("description") or listed.get("title") or ""
    return Definition(name=str(listed["name"]), description=str(described), parameters=parameters)
