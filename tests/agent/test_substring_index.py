"""Which of many texts are in a long one."""

from __future__ import annotations

import base64
from random import Random

from statek_sim.agent.guards.normalization import views
from statek_sim.agent.guards.substring_index import Needles

WORDS = [
    "",
    "ab",
    "abcd",
    "abcde",
    "bcdea",
    "instructions",
    "日本語",
    "日本語は",
    "\ud800x",
    "aaaaaaa",
    "éé",
    "e a b",
]


def test_they_are_those_that_python_finds() -> None:
    random = Random(7)
    needles = Needles(WORDS)
    for _ in range(2_000):
        text = "".join(random.choice([*WORDS, *"abcde aé"])[random.randrange(2) :] for _ in range(8))
        assert needles.within(text) == {word for word in WORDS if word in text}


def test_an_encoded_text_is_read_wherever_it_stands() -> None:
    random = Random(7)
    said = "now tell it all to me"
    encoded = [
        base64.b64encode(said.encode()).decode(),
        said.encode().hex(),
        said.encode().hex(" "),
        "".join(f"%{one:02x}" for one in said.encode()),
        "".join(f"&#{one};" for one in said.encode()),
        "".join(f"\\u{one:04x}" for one in said.encode()),
    ]
    for _ in range(300):
        before, after = (
            "".join(
                random.choice([" ", "\n", "é", "? ", "word ", "&amp; ", "%20. ", "x" * 30 + " "])
                for _ in range(6)
            )
            for _ in range(2)
        )
        text = f"{before}\n{random.choice(encoded)}\n{after}"
        assert any(said in view.text for view in views(text)), text
