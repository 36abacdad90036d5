"""Replies whose right reading follows from the rule: every dialect's renderer x damage x what stands around the call.

`python -m tests.rescue.table` prints the score of the parser. *Right* is exactly the calls that the rule
gives; *wrong* is a call that should not run, or one with other arguments; anything else is a refusal of a call.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.rescue import rescue
from statek_sim.values import JSON
from tests.rescue.phrasings import PHRASINGS

Verdict = Literal["right", "refused", "wrong"]
NAME: Final = "delete_file"
ARGUMENTS: Final[tuple[dict[str, JSON], ...]] = (
    {"path": "/tmp/a"},
    {"path": "Oslo", "depth": 12, "force": True},
    {"path": "漢字 é", "names": ["x", "y z"], "depth": -3},
    {"path": "a b", "options": {"mode": "fast", "level": 2}, "force": False},
)
_KINDS: Final = {
    "path": "string", "depth": "integer", "force": "boolean", "names": "array", "options": "object",
}  # fmt: skip
TOOLS: Final[list[Mapping[str, JSON]]] = [
    {
        "name": NAME,
        "parameters": {"type": "object", "properties": {key: {"type": kind} for key, kind in _KINDS.items()}},
    },
    {"name": "read_file", "parameters": {"type": "object"}},
]
DIALECT_OF: Final = {
    "hermes": "hermes", "mistral 3": "mistral", "mistral 11": "mistral", "qwen coder": "qwen-coder", "glm": "glm",
    "kimi k2": "kimi", "harmony": "harmony", "harmony 2": "harmony", "gemma": "gemma",
    "dsml 4.1": "deepseek", "deepseek 3": "deepseek", "deepseek 3.1": "deepseek", "minimax m2": "minimax",
    "lfm2": "lfm2", "olmo 3": "olmo", "llama 3": "llama", "cohere": "cohere",
    "jamba": "tool_calls", "react": "react", "functionary": "functionary",
}  # fmt: skip
"""Renderings that have a token of a dialect with a name."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply and the arguments of the call that it is, None where it is no call."""

    text: str
    arguments: Mapping[str, JSON] | None
    dialect: str | None
    rendering: str
    damage: str
    around: str


# -- damages: what happens to a rendered call, and whether it still is one -------------------------------------------

Damaged = tuple[str, bool]
Damage = Callable[[str, Mapping[str, JSON]], Damaged | None]
"""Returns the damaged call and whether it can still be read, or None where this damage cannot happen to it."""


def _none(text: str, arguments: Mapping[str, JSON]) -> Damaged | None:
    return text, True


def _cut(text: str, arguments: Mapping[str, JSON]) -> Damaged | None:
    """Cut the reply inside the first argument."""
    at = text.find(str(arguments["path"]))
    return (text[: at + 1], False) if at > 0 else None


def _written(text: str, arguments: Mapping[str, JSON]) -> str | None:
    """Return the arguments as the call writes them in JSON."""
    written = json.dumps(dict(arguments), ensure_ascii=False)
    return written if text.count(written) == 1 else None


def _rewritten(change: Callable[[str, Mapping[str, JSON]], str], *, readable: bool = True) -> Damage:
    def damage(text: str, arguments: Mapping[str, JSON]) -> Damaged | None:
        written = _written(text, arguments)
        return None if written is None else (text.replace(written, change(written, arguments)), readable)

    return damage


def _keys(written: str) -> str:
    return re.sub(r'"(\w+)":', r"\1:", written)


def _arguments_bracket(text: str, arguments: Mapping[str, JSON]) -> Damaged | None:
    """Lose the bracket of arguments that stand apart from the name: nobody knows what else was in them."""
    written = _written(text, arguments)
    if written is None or f"{written}}}" in text:
        return None
    return text.replace(written, written[:-1]), False


def _last_bracket(text: str, arguments: Mapping[str, JSON]) -> Damaged | None:
    """Lose the bracket behind the arguments, where a closing token follows or the reply is bare JSON."""
    written = _written(text, arguments)
    if written is None or f"{written}}}" not in text:
        return None
    before, _, behind = text.partition(f"{written}}}")
    closed = behind.strip().startswith(("<", "[END", "[/")) or (before.startswith("{") and not behind)
    return (before + written + behind, True) if closed else None


DAMAGES: Final[Mapping[str, Damage]] = {
    "none": _none,
    "cut": _cut,
    "trailing comma": _rewritten(lambda written, _: written[:-1] + ",}"),
    "single quotes": _rewritten(lambda _, arguments: repr(dict(arguments))),
    "bare keys": _rewritten(lambda written, _: _keys(written)),
    "typographic quotes": _rewritten(lambda written, _: re.sub(r'"(\w+)":', r"“\1”:", written)),
    "comment": _rewritten(lambda written, _: written[:-1] + " /* so */}"),
    "newline behind each comma": _rewritten(lambda written, _: written.replace(", ", ",\n  ")),
    "colon lost": _rewritten(lambda written, _: written.replace('": ', '" ', 1), readable=False),
    "quote lost": _rewritten(lambda written, _: written.replace('"', "", 1), readable=False),
    "key twice": _rewritten(lambda written, _: written[:-1] + ', "path": "/"}', readable=False),
    "bracket of the arguments lost": _arguments_bracket,
    "last bracket lost": _last_bracket,
    "bracket twice": _rewritten(lambda written, _: written + "}", readable=False),
    "arguments in a list": _rewritten(lambda written, _: f"[{written}]", readable=False),
    "no arguments but a number": _rewritten(lambda written, _: "42", readable=False),
}

# -- surroundings: what stands around the call, and whether the reply is the call ------------------------------------

ALONE: Final[Mapping[str, str]] = {
    "alone": "{call}",
    "space": "\n  {call}\n\n",
    "thinking": "<think>Which file?</think>\n{call}",
    "thinking opened in the prompt": "Which file?\n</think>\n\n{call}",
    "the message's end": "{call}<|im_end|>",
    "a block of code": "```json\n{call}\n```",
}
BESIDE: Final[Mapping[str, str]] = {
    "text behind": "{call}\nI will go on when I have the result.",
    "text behind, same line": "{call} is what I would send.",
    "text before, same line": "Let me do that: {call}",
    "in quotes": '"{call}"',
    "a quotation": "> {call}",
    "a list": "- {call}",
    "a block of code behind text": "The call is:\n```json\n{call}\n```",
    "a block of code before text": "```json\n{call}\n```\nThat is how it looks.",
    "between two lines": "First:\n{call}\nThen we see.",
}
LINE_BEFORE: Final = "I will look.\n{call}"
"""A call only where the dialect is named and its token opens the line."""
_UNSURE_IN_BLOCKS: Final = ("deepseek 3", "command r", "fence")
"""Renderings with a block of code of their own."""


def replies() -> Iterator[Reply]:
    """Yield every reply of the table."""
    for rendering, render in RENDERINGS.items():
        for number, arguments in enumerate(ARGUMENTS):
            call = render(NAME, arguments)
            if call is None:
                continue
            for damage, changed in DAMAGES.items():
                made = changed(call, arguments)
                if made is not None:
                    yield from _around(made, arguments, rendering, damage)
            if number < 2:
                yield from _quoted(call, rendering)


def _around(made: Damaged, arguments: Mapping[str, JSON], rendering: str, damage: str) -> Iterator[Reply]:
    text, readable = made
    given = arguments if readable else None
    for around, form in ALONE.items():
        if around == "a block of code" and rendering in _UNSURE_IN_BLOCKS:
            continue
        yield Reply(form.format(call=text), given, None, rendering, damage, around)
    for around, form in BESIDE.items():
        yield Reply(form.format(call=text), None, None, rendering, damage, around)
        yield Reply(form.format(call=text), None, DIALECT_OF.get(rendering), rendering, damage, around)
    yield Reply(LINE_BEFORE.format(call=text), None, None, rendering, damage, "a line before")
    if rendering in DIALECT_OF:
        named = DIALECT_OF[rendering]
        yield Reply(LINE_BEFORE.format(call=text), given, named, rendering, damage, "a line before, named")


def _quoted(call: str, rendering: str) -> Iterator[Reply]:
    for language, phrasings in PHRASINGS.items():
        for phrasing, form in phrasings.items():
            text = form.format(call=call)
            for dialect in dict.fromkeys((None, DIALECT_OF.get(rendering))):
                yield Reply(text, None, dialect, rendering, "none", f"{phrasing} ({language})")


def verdict(reply: Reply) -> Verdict:
    """Return how the parser reads a reply."""
    calls = rescue(reply.text, TOOLS, dialect=reply.dialect).calls
    said = [(call.name, dict(call.arguments)) for call in calls]
    if said == ([] if reply.arguments is None else [(NAME, reply.arguments)]):
        return "right"
    return "wrong" if said else "refused"


def score() -> dict[str, Counter[Verdict]]:
    """Return the verdicts of all replies, by group and in all."""
    counted: dict[str, Counter[Verdict]] = {}
    for reply in replies():
        said = verdict(reply)
        for group in ("all", _group(reply)):
            counted.setdefault(group, Counter())[said] += 1
    return counted


def _group(reply: Reply) -> str:
    if reply.arguments is not None:
        return "a call, undamaged" if reply.damage == "none" else "a call with a damage that is repaired"
    if reply.around.endswith(")"):
        return "a call in a sentence, in eight languages"
    return "a call that is broken" if reply.around in ALONE else "a call beside text"


def table(counted: Mapping[str, Counter[Verdict]]) -> str:
    """Return the score as a table."""
    lines = ["| replies | number | right | wrong |", "|---|---:|---:|---:|"]
    for group, said in counted.items():
        total = said.total()
        right, wrong = 100 * said["right"] / total, 100 * said["wrong"] / total
        lines.append(f"| {group} | {total:,} | {right:.1f} % | {wrong:.2f} % |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(score()))
