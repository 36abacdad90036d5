"""Writes calls in the formats that models use, for tests and simulated models.

A rendering is `None` if the format cannot express the call. For example, Qwen's tags cannot contain their own closing
tag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from statek_sim.values import JSON

Render = Callable[[str, Mapping[str, JSON]], str | None]
_KEY: Final = re.compile(r"[A-Za-z_]\w*")


def _arguments(arguments: Mapping[str, JSON]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)


def _around(
    before: str, behind: str, key: str = "arguments", name_key: str = "name", *, many: bool = False
) -> Render:
    def render(name: str, arguments: Mapping[str, JSON]) -> str:
        call = json.dumps({name_key: name, key: dict(arguments)}, ensure_ascii=False)
        return f"{before}[{call}]{behind}" if many else f"{before}{call}{behind}"

    return render


def _named(before: str, between: str, behind: str) -> Render:
    def render(name: str, arguments: Mapping[str, JSON]) -> str:
        return f"{before}{name}{between}{_arguments(arguments)}{behind}"

    return render


def _elements(
    before: str,
    opening: str,
    closing: str,
    behind: str,
    *,
    mark: str = "<",
    bare: bool = False,
) -> Render:
    """Return a renderer that writes one element per argument; `opening` contains {key} and {string}.

    A string that contains `mark` cannot be rendered; with `bare`, a string with surrounding space cannot be rendered
    either.
    """

    def render(name: str, arguments: Mapping[str, JSON]) -> str | None:
        if "{name}" in behind and _KEY.fullmatch(name) is None:
            return None
        pieces = [before.format(name=name)]
        for key, value in arguments.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            padded = text != text.strip() and (bare or "\n" in opening + closing)
            if _KEY.fullmatch(key) is None or mark in text or padded:
                return None
            kind = "true" if isinstance(value, str) else "false"
            pieces.append(opening.format(key=key, string=kind) + text + closing.format(key=key))
        return "".join(pieces) + behind.format(name=name)

    return render


def _python(before: str, behind: str) -> Render:
    def render(name: str, arguments: Mapping[str, JSON]) -> str | None:
        if not all(map(_KEY.fullmatch, (name, *arguments))):
            return None
        said = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        return f"{before}{name}({said}){behind}"

    return render


def _gemma(before: str, quote: str, behind: str) -> Render:
    def render(name: str, arguments: Mapping[str, JSON]) -> str | None:
        body = _gemma_value(dict(arguments), quote)
        return None if body is None else f"{before}call:{name}{body}{behind}"

    return render


def _gemma_value(value: JSON, quote: str) -> str | None:
    if isinstance(value, dict):
        members = [(key, _gemma_value(member, quote)) for key, member in value.items()]
        if any(member is None or _KEY.fullmatch(key) is None for key, member in members):
            return None
        return "{" + ",".join(f"{key}:{member}" for key, member in members) + "}"
    if isinstance(value, list):
        items = [_gemma_value(member, quote) for member in value]
        return None if None in items else "[" + ",".join(item for item in items if item is not None) + "]"
    if isinstance(value, str):
        return None if quote[:2] in value else f"{quote}{value}{quote}"
    return json.dumps(value)


def _in_a_string(name: str, arguments: Mapping[str, JSON]) -> str:
    return json.dumps({"name": name, "arguments": _arguments(arguments)}, ensure_ascii=False)


def _openai(name: str, arguments: Mapping[str, JSON]) -> str:
    function: JSON = {"name": name, "arguments": _arguments(arguments)}
    return json.dumps(
        {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}, ensure_ascii=False
    )


RENDERINGS: Final[Mapping[str, Render]] = {
    "arguments in a string": _in_a_string,
    "json": _around("", ""),
    "json with parameters": _around("", "", "parameters"),
    "json list": _around("", "", many=True),
    "openai": _openai,
    "fence": _around("```json\n", "\n```"),
    "hermes": _around("<tool_call>\n", "\n</tool_call>"),
    "granite": _around("<|tool_call|>", "", many=True),
    "jamba": _around("<tool_calls>", "</tool_calls>", many=True),
    "nemotron": _around("<TOOLCALL>", "</TOOLCALL>", many=True),
    "phi": _around("functools", "", many=True),
    "cohere": _around("<|START_ACTION|>", "<|END_ACTION|>", "parameters", "tool_name", many=True),
    "llama 3": _around("<|python_tag|>", "", "parameters"),
    "mistral 3": _around("[TOOL_CALLS]", "", many=True),
    "mistral 11": _named("[TOOL_CALLS]", "[ARGS]", ""),
    "deepseek 3": _named(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        "\n```json\n",
        "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    "deepseek 3.1": _named(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    "kimi k2": _named(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
        ":0<|tool_call_argument_begin|>",
        "<|tool_call_end|><|tool_calls_section_end|>",
    ),
    "kimi k2, name alone": _named("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"),
    "kimi k2, first token lost": _named("functions.", ":0<|tool_call_argument_begin|>", "<|tool_call_end|>"),
    "harmony": _named("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "<|call|>"),
    "functionary": _named("<function=", ">", "</function>"),
    "qwen coder": _elements(
        "<tool_call>\n<function={name}>\n",
        "<parameter={key}>\n",
        "\n</parameter>\n",
        "</function>\n</tool_call>",
    ),
    "minimax m2": _elements(
        '<minimax:tool_call>\n<invoke name="{name}">\n',
        '<parameter name="{key}">',
        "</parameter>\n",
        "</invoke>\n</minimax:tool_call>",
    ),
    "dsml": _elements(
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="{name}">\n',
        '<｜DSML｜parameter name="{key}" string="{string}">',
        "</｜DSML｜parameter>\n",
        "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    ),
    "glm": _elements(
        "<tool_call>{name}\n", "<arg_key>{key}</arg_key>\n<arg_value>", "</arg_value>\n", "</tool_call>"
    ),
    "cline": _elements("<{name}>\n", "<{key}>", "</{key}>\n", "</{name}>", bare=True),
    "gemma": _gemma("<|tool_call>", '<|"|>', "<tool_call|>"),
    "function gemma": _gemma("<start_function_call>", "<escape>", "<end_function_call>"),
    "command r": _around("Action: ```json\n", "\n```", "parameters", "tool_name", many=True),
    "harmony 2": _named(
        "<|start|>assistant to=functions.", "<|channel|>commentary json<|message|>", "<|call|>"
    ),
    "harmony 3": _named("<|channel|>commentary to=", " <|constrain|>json<|message|>", "<|call|>"),
    "react": _named("Action: ", "\nAction Input: ", ""),
    "dsml 4.1": _elements(
        '<｜DSML｜ calls>\n<｜DSML｜ invoke name="{name}">\n',
        '<｜DSML｜ parameter name="{key}" string="{string}">',
        "</｜DSML｜ parameter>\n",
        "</｜DSML｜ invoke>\n</｜DSML｜ calls>",
    ),
    "dsml with json": _named(
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="',
        '">\n',
        "\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ),
    "seed": _elements(
        "<seed:tool_call>\n<function={name}>\n",
        "<parameter={key}>",
        "</parameter>\n",
        "</function>\n</seed:tool_call>",
    ),
    "minicpm": _elements('<function name="{name}">', '<param name="{key}">', "</param>", "</function>"),
    "lm studio": _around("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    "python": _python("[", "]"),
    "llama 4": _python("<|python_start|>[", "]<|python_end|>"),
    "lfm2": _python("<|tool_call_start|>[", "]<|tool_call_end|>"),
    "olmo 3": _python("<function_calls>", "</function_calls>"),
}
"""The formats in which models write calls, by display name."""
