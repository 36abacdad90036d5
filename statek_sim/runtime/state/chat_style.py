"""Chat styles, and the parsing of Markdown replies into code, dialog and media."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadSetting
from statek_sim.runtime.state.access import member_text


class ChatStyle(StrEnum):
    """One of STATEK's four chat styles (behaviour 6.2).

    `None` means no style, which is treated like CONSOLE, except that tools are not filtered by style.
    """

    CONSOLE = "CONSOLE"
    MARKDOWN = "MARKDOWN"
    MD_DIALOG = "MD_DIALOG"
    DIRECT = "DIRECT"

    __repr__ = member_text

    @classmethod
    def values(cls) -> tuple[ChatStyle, ...]:
        """Return the styles in order."""
        return tuple(cls)


def parse_chat_style(text: str) -> ChatStyle:
    """Return the style named `text`, in any letter case; raises `BadSetting` for an unknown name."""
    name = text.upper()
    if name in ChatStyle.__members__:
        return ChatStyle[name]
    names = list(ChatStyle.__members__)
    expected = f"expected one of {', '.join(names)}"
    raise BadSetting(f"unknown chat style {text!r}; {expected}.{suggestion(text, names)}")


DialogPart = tuple[str, str | None]
"""A message to the user as a pair `(body, media)`, where `media` is a path, a Markdown image or None."""

_CACHED_TEXTS: Final = 512

_FENCE: Final = "```"
_ANY_FENCE: Final = re.compile(r"```\w*\n?")
_PYTHON_BLOCK: Final = re.compile(r"```python\n(.*?)```", re.DOTALL)

_IMAGE: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")
_MEDIA_LINK: Final = re.compile(r'!?\[[^\]]*\]\([^\s)]+(?:\s+"[^"]*")?\)')
_MEDIA_PATH: Final = re.compile(r"/?(?:\S+/)+\S+\.\w{3}")
_SEPARATORS: Final = re.compile(r"[\s\[\](){},]+")

# Matches code that may consist only of comments and bare strings. Other code need not be parsed.
_MAY_BE_EMPTY: Final = re.compile(
    r"""(?:\#[^\n]*+\n|[ \t\f\n]++)*+       # blank and comment lines
        (?:
            (?:\#[^\n]*)?\Z                 # nothing else
          | [^\x20-\x7e]                    # other characters: left to the parser
          | ["'(\\]                         # a string, or something around one
          | [rRuUbBfF]{1,2}["']             # a prefixed string
        )""",
    re.VERBOSE,
)


def block_comment(text: str) -> str:
    """Prefix every line in `text` with `# `."""
    return "# " + text.replace("\n", "\n# ")


@lru_cache(maxsize=_CACHED_TEXTS)
def strip_markup(text: str, *, strict: bool) -> str:
    """Return the Python code in a reply, with everything else turned into comments (behaviour 6.2).

    If `strict` (MARKDOWN, MD_DIALOG), only closed fences that open with exactly "```python" and a newline
    contain code. Otherwise (CONSOLE, no style), all fences contain code, and a reply without fences is all
    code.
    """
    if strict:
        return _code_with_comments(_PYTHON_BLOCK.split(text))
    if _FENCE not in text:
        return text
    return _code_with_comments(_ANY_FENCE.split(text))


def _code_with_comments(pieces: Sequence[str]) -> str:
    """Join alternating pieces of prose and code, prose first, dropping blank pieces."""
    lines: list[str] = []
    in_code = False
    for piece in pieces:
        content = piece.strip()
        if content:
            lines.append(content if in_code else block_comment(content))
        in_code = not in_code
    return "\n".join(lines)


@lru_cache(maxsize=_CACHED_TEXTS)
def extract_dialog(text: str) -> str | None:
    """Return the text outside all fences with whitespace collapsed, or None if there is none."""
    words = [word for prose in _ANY_FENCE.split(text)[::2] for word in prose.split()]
    return " ".join(words) or None


def split_media(text: str) -> Iterator[DialogPart]:
    """Split dialog at media paths, such as `images/cat.png`, and at Markdown images (behaviour 6.4).

    Each media item ends a message; the message body is the text before the media item. Brackets, braces and
    commas separate words and are dropped.
    """
    body: list[str] = []
    for word, is_media in _words(text):
        if is_media:
            yield " ".join(body), word
            body = []
        else:
            body.append(word)
    if body:
        yield " ".join(body), None


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield (word, flag) pairs; the flag is True for a media path or an image."""
    position = 0
    for image in _IMAGE.finditer(text):
        yield from _plain_words(text[position : image.start()])
        yield image.group(), True
        position = image.end()
    yield from _plain_words(text[position:])


def _plain_words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words in a string without images, like `_words`; a link is split into its label and address."""
    for word in _SEPARATORS.split(_LINK.sub(r"\1 \2", text).strip()):
        if word:
            yield word, _MEDIA_PATH.fullmatch(word) is not None


def normalize_media_links(dialog: str) -> str:
    """Return `dialog` with link addresses under `sandbox:/private/` replaced by paths under `private/`."""
    return dialog.replace("(sandbox://private/", "(private/").replace("(sandbox:/private/", "(private/")


@lru_cache(maxsize=_CACHED_TEXTS)
def dialog_messages(text: str) -> tuple[DialogPart, ...]:
    """Return the messages to the user in a reply, one per `send_message` call (behaviour 6.4).

    Dialog with a Markdown link or image is a single message; other dialog is split at media.
    """
    dialog = extract_dialog(text)
    if dialog is None:
        return ()
    linked = normalize_media_links(dialog)
    if _MEDIA_LINK.search(linked):
        return ((linked, None),)
    return tuple(part for part in split_media(dialog) if part[0] or part[1])


@lru_cache(maxsize=_CACHED_TEXTS)
def is_empty_code(code: str | None) -> bool:
    """Return whether `code` is blank or contains only comments and bare strings.

    Code with a syntax error is not empty.
    """
    if not code or code.isspace():
        return True
    if "\r" not in code and not _MAY_BE_EMPTY.match(code):
        return False
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return all(_is_bare_string(statement) for statement in body)


def _is_bare_string(statement: ast.stmt) -> bool:
    """Return whether a statement is only a string literal."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
