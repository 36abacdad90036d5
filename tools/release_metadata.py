"""The project's metadata on PyPI: its URLs, and the README with links that work there.

The repository URL is set in one place, `[tool.pytest-statek] repository` in pyproject.toml. If it is empty, the
distribution has no URLs, and its README keeps relative links.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def absolute_links(readme: str, repository: str) -> str:
    """Return the README with all relative links and pictures converted to repository URLs."""
    pictures = re.sub(r"(!\[[^\]]*\])\((?!https?:|#)([^)]+)\)", rf"\1({repository}/raw/main/\2)", readme)
    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({repository}/blob/main/\1)", pictures)


class ReadmeAndAddresses(MetadataHookInterface):
    """Sets `readme` and `urls`, which pyproject.toml declares as dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and `urls`."""
        root = Path(self.root)
        settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["pytest-statek"]
        repository = str(settings["repository"]).rstrip("/")
        text = (root / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(text, repository) if repository else text,
        }
        if repository:
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/blob/main/docs/index.md",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
