from __future__ import annotations

from statek_sim.runtime.state.chat_style import (
    block_comment,
    dialog_messages,
    extract_dialog,
    is_empty_code,
    normalize_media_links,
    split_media,
    strip_markup,
)
from tests.tables import table_test

# Expected texts are what statek 1.2.7 and 1.4.2 return.
STRICT = [
    ("", ""),
    ("   \n\t", ""),
    ("x = 1", "# x = 1"),
    ("```python\nx = 1\n```", "x = 1"),
    ("Hi.\n```python\nx = 1\n```\nBye.\nNow.", "# Hi.\nx = 1\n# Bye.\n# Now."),
    ("```python\na\n```\n```python\nb\n```", "a\nb"),
    ("```py\nx = 1\n```", "# ```py\n# x = 1\n# ```"),
    ("```\nx = 1\n```", "# ```\n# x = 1\n# ```"),
    ("```python\nx = 1", "# ```python\n# x = 1"),
    ("```python x = 1```", "# ```python x = 1```"),
    ("```python\r\nx = 1\r\n```", "# ```python\r\n# x = 1\r\n# ```"),
    ("```python\n  if x:\n\ty\n```", "if x:\n\ty"),
    ("```python\n```", ""),
    ("a\n```python\ns = '```'\n```", "# a\ns = '\n# '\n# ```"),
]

LOOSE = [
    ("", ""),
    ("  x = 1 \n", "  x = 1 \n"),
    ("```python\nx = 1\n```", "x = 1"),
    ("Hi.\n```py\nx = 1\n```\nBye.", "# Hi.\nx = 1\n# Bye."),
    ("```\nx = 1\n```", "x = 1"),
    ("Hi.\n```python\nx = 1", "# Hi.\nx = 1"),
    ("```json\r\n{}\r\n```", "{}"),
    ("````\nx\n````", "`\nx\n# `"),
]


@table_test(("text", "code"), STRICT)
def test_strict_markup_keeps_only_closed_python_fences_as_code(text: str, code: str) -> None:
    assert strip_markup(text, strict=True) == code


@table_test(("text", "code"), LOOSE)
def test_loose_markup_takes_any_fence_as_code_and_fenceless_text_as_it_is(text: str, code: str) -> None:
    assert strip_markup(text, strict=False) == code


def test_every_line_of_a_block_comment_is_commented() -> None:
    assert block_comment("a\n\n b") == "# a\n# \n#  b"


@table_test(
    ("text", "dialog"),
    [
        ("  Hello,\n\n  world \t!", "Hello, world !"),
        ("Before ```python\nx\n``` after", "Before after"),
        ("Before ```python\nx", "Before"),
        ("```python\nx\n```", None),
        (" \n ", None),
    ],
)
def test_dialog_is_the_collapsed_text_outside_fences(text: str, dialog: str | None) -> None:
    assert extract_dialog(text) == dialog


@table_test(
    ("text", "parts"),
    [
        ("print(1)", [("print 1", None)]),
        ("See docs/plan.pdf now", [("See", "docs/plan.pdf"), ("now", None)]),
        ("a/b.png", [("", "a/b.png")]),
        ("no/media.jpeg here", [("no/media.jpeg here", None)]),
        ("x ![alt text](a b.png) y", [("x", "![alt text](a b.png)"), ("y", None)]),
        ("[label](dir/pic.jpg), {end}", [("label", "dir/pic.jpg"), ("end", None)]),
        ("", []),
    ],
)
def test_dialog_is_split_at_media(text: str, parts: list[tuple[str, str | None]]) -> None:
    assert list(split_media(text)) == parts


def test_sandbox_links_become_private_paths() -> None:
    text = "[a](sandbox:/private/x.png) [b](sandbox://private/y.png) sandbox:/private/z.png"
    assert normalize_media_links(text) == "[a](private/x.png) [b](private/y.png) sandbox:/private/z.png"


def test_dialog_with_a_link_is_one_message_kept_whole() -> None:
    assert dialog_messages("See  [a](sandbox:/private/x.png),\nplease") == (
        ("See [a](private/x.png), please", None),
    )


def test_dialog_without_a_link_is_one_message_per_medium() -> None:
    assert dialog_messages("One a/b.png two") == (("One", "a/b.png"), ("two", None))
    assert dialog_messages("```python\nx\n```") == ()


@table_test(
    "code",
    [
        *(None, "", "  \n", "# only a comment", "#a\n\n  # b\n"),
        *("'text'", '"""doc"""\n# c', "('x')", "r'x' 'y'"),
        *("'a'; 'b'", "# c\r'x'", "\\\n'a'", "'''\nx = 1\n'''", "# c\r'''\nx\n'''"),
    ],
)
def test_comments_and_bare_strings_are_empty_code(code: str | None) -> None:
    assert is_empty_code(code)


@table_test(
    "code",
    [
        *("x", "# c\nx = 1", "'a'\nx", "f'x'", "b'x'", "'a',", "-'a'"),
        *("None", "...", "  'a'", "for", "é", "(1)"),
        *("'unclosed", "\ufeffx", "# c\rx", "'a'.upper()", "pass", "\n\nx"),
    ],
)
def test_anything_else_is_code_even_when_it_does_not_parse(code: str) -> None:
    assert not is_empty_code(code)
