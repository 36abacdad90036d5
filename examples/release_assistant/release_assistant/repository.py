"""The project to release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Repository:
    """A project: its newest version, its test result, and the notes and versions published."""

    version: str = "1.1.0"
    tests: Callable[[], str] = lambda: "412 passed"
    notes: dict[str, str] = field(default_factory=dict)
    published: list[str] = field(default_factory=list)

    def run_tests(self) -> str:
        """Run the tests. Raises when one fails."""
        return self.tests()

    def write_notes(self, version: str, text: str) -> str:
        """Write the release notes of a version.

        Args:
            version: The version that is released.
            text: The notes, in Markdown.
        """
        self.notes[version] = text
        return f"notes of {version} written"

    def publish(self, version: str) -> str:
        """Publish a version.

        Args:
            version: The version; its notes must be written.
        """
        if version not in self.notes:
            raise LookupError(f"{version} has no notes; written: {', '.join(self.notes) or 'none'}")
        self.published.append(version)
        self.version = version
        return f"{version} is published"
