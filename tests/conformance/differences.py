"""What our runtime knowingly does differently from the real package: every job, every field, with the reason.

`test_recorded` holds this table to its word in both directions. A field is `job.fact` or a fact of the whole case;
`requests` goes with nearly every one, because what a job shows becomes part of its next request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OLD, NEW = "1.2.7", "1.4.2"
BOTH: Final = (OLD, NEW)

QUALIFIED = "Python names a dbzero class with its module in errors of operators; ours is a plain class"
UNCOUNTED = (
    "STATEK counts the bytes of a reply before it finds that its content is no text; we find that first"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One declared difference. `fields` differ in every one of `versions`."""

    job: str
    fields: tuple[str, ...]
    reason: str
    versions: tuple[str, ...] = BOTH


SHOWN: Final = ("main.console", "requests")

DIFFERENCES: Final[tuple[Difference, ...]] = (
    Difference(
        "sandbox_more",
        (*SHOWN, "main.exceptions"),
        "STATEK lets `str.format` read attributes that its policy refuses to code; ours refuses them there too",
    ),
    Difference("wait_in_if", SHOWN, QUALIFIED),
    Difference("wait_in_comprehension", SHOWN, QUALIFIED),
    Difference(
        "dialog_style_without_dialog",
        SHOWN,
        "the error names the agent's class: SupervisedAgent there, Agent here, where it is the only plain one",
    ),
    Difference("number_as_content", ("main.usage",), UNCOUNTED),
    Difference("list_as_content", ("main.usage",), UNCOUNTED),
)


def declared(version: str, job: str) -> frozenset[str]:
    """Return the fields of a job that are known to differ in `version`."""
    return frozenset(
        field
        for difference in DIFFERENCES
        if difference.job == job and version in difference.versions
        for field in difference.fields
    )
