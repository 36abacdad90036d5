"""An exploration as GitHub-flavoured Markdown, also for CI step summaries."""

from __future__ import annotations

from collections.abc import Iterator

from statek_sim.explore.result import Exploration, Explored
from statek_sim.reporting.explore_terminal import failure_words, proven_words, tool_lines, verdict_words
from statek_sim.reporting.usage_markdown import escaped, markdown_table

MARKS = {"same": "=", "differs": "~", "unknown": "?"}
"""The crash map's letters; everything else is `X`, an invariant that does not hold."""


def exploration_markdown(exploration: Exploration) -> str:
    """Return the whole report. Equal explorations give equal text."""
    return "\n\n".join(_blocks(exploration)) + "\n"


def _blocks(exploration: Exploration) -> Iterator[str]:
    yield "# Exploration"
    yield f"{verdict_words(exploration)}."
    if exploration.stopped:
        yield "It was stopped: this is what was covered so far."
    played = [explored for explored in exploration.scenarios if explored.problem is None]
    if played:
        head = ("scenario", "proven", "failures", "crash adds", "crash map")
        yield markdown_table(head, map(_row, played))
        yield (
            "The crash map has a letter per distinct place to die: `=` as undisturbed, `~` ends otherwise, `?` leaves "
            "the script, `X` breaks an invariant."
        )
    for explored in exploration.scenarios:
        yield from _failures(explored)
    tools = [f"- {escaped(line.strip())}" for line in tool_lines(exploration.scenarios)]
    if tools:
        yield "## Tools of your own, when their worker dies"
        yield "\n".join(tools)
    left = [explored for explored in exploration.scenarios if explored.problem is not None]
    if left:
        yield "## Not explored"
        yield "\n".join(f"- {explored.id}: {escaped(explored.problem or '')}" for explored in left)


def _row(explored: Explored) -> tuple[str, ...]:
    failing = ", ".join(failure.invariant for failure in explored.failures) or "none"
    letters = "".join(MARKS.get(cell.came, "X") for cell in explored.cells)
    return (
        escaped(f"{explored.id} {explored.profile}"),
        proven_words(explored),
        failing,
        f"{explored.crash.tokens:,} tokens",
        f"`{letters}`" if letters else "",
    )


def _failures(explored: Explored) -> Iterator[str]:
    for failure in explored.failures:
        yield f"## {explored.id} {explored.profile}: {failure.invariant}"
        yield escaped(failure.message)
        yield "\n".join(f"- {escaped(line)}" for line in failure_words(failure))
