"""The README as PyPI shows it."""

from __future__ import annotations

import re

from tests.packaging.environment import ROOT
from tools.release_metadata import absolute_links

ADDRESS = "https://example.org/owner/pytest-statek"


def test_links_become_addresses_and_what_is_one_stays() -> None:
    text = "[a](docs/a.md#b) [c](https://x.y/z) [d](#e) ![f](docs/f.png)"
    assert absolute_links(text, ADDRESS) == (
        f"[a]({ADDRESS}/blob/main/docs/a.md#b) [c](https://x.y/z) [d](#e) ![f]({ADDRESS}/raw/main/docs/f.png)"
    )


def test_every_link_of_the_readme_is_an_address_to_a_file_that_is_there() -> None:
    shown = absolute_links((ROOT / "README.md").read_text("utf-8"), ADDRESS)
    targets = re.findall(r"\]\(([^)]+)\)", shown)
    assert [target for target in targets if not target.startswith("https://")] == []
    ours = [target for target in targets if target.startswith(ADDRESS)]
    assert len(ours) > 20
    for target in ours:
        path = re.sub(rf"{re.escape(ADDRESS)}/(blob|raw)/main/", "", target).partition("#")[0]
        assert (ROOT / path).exists(), target
