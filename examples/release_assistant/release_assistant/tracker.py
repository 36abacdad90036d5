"""The issue tracker, as the tools of an MCP server."""

from __future__ import annotations

ISSUES = {
    101: ("A token is no longer logged", "fix"),
    102: ("Exports are twice as fast", "feature"),
    103: ("Dates follow the user's locale", "feature"),
}


def merged(since: str) -> str:
    """List the issues that were merged since a version.

    Args:
        since: The version, like 1.1.0.
    """
    return "\n".join(f"#{number} {title} ({kind})" for number, (title, kind) in ISSUES.items())


def details(number: int) -> str:
    """Return the whole text of an issue.

    Args:
        number: Its number.
    """
    title, kind = ISSUES[number]
    return f"#{number} {title} ({kind})\n" + f"A comment on {title.lower()}. " * 60


TOOLS = [merged, details]
