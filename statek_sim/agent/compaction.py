"""The loop's part of making a history shorter (004 §5): asked before every request, summaries are asked of a model."""

from __future__ import annotations

from collections.abc import Generator

from statek_sim import trace as events
from statek_sim.agent.effects import Answer, Compaction, Compactor, Effect, TextWanted
from statek_sim.agent.model_request import ask_beside
from statek_sim.agent.progress import Ended
from statek_sim.agent.run_state import RunState
from statek_sim.errors import CompactionFailed, ContextOverflow
from statek_sim.values import in_common


def compact(run: RunState) -> Generator[Effect, Answer, None] | tuple[()]:
    """Return the effects of asking the run's compactor, where it has one, whether its history should be shorter."""
    compactor = run.deps.parts.compactor
    return () if compactor is None else _compacted(run, compactor)


def _compacted(run: RunState, compactor: Compactor) -> Generator[Effect, Answer, None]:
    """Ask a compactor whether the run's history should be shorter, and put what it gives in its place.

    Ends the run, before the provider is asked, with `context_overflow` where it cannot be made to fit.
    """
    before, tokens = run.conversation.messages, run.conversation.prompt_tokens
    try:
        compacted = compactor(before, tokens=tokens)
        made = (yield from _with_summaries(run, compacted)) if isinstance(compacted, Generator) else compacted
    except ContextOverflow as over:
        raise Ended("context_overflow", str(over)) from over
    except CompactionFailed as failed:
        raise Ended("crash", str(failed)) from failed
    if made is None:
        return
    run.conversation.replace(made.messages)
    kept = in_common(before, made.messages)
    run.tell(
        events.Compacted(
            run.now(),
            run.job,
            made.strategy,
            len(before),
            len(made.messages),
            tokens,
            run.conversation.prompt_tokens,
            made.cleared,
            made.summarised,
            made.dropped,
            made.cut,
            kept,
            run.conversation.tokens_of(kept),
        )
    )


def _with_summaries(
    run: RunState, steps: Generator[TextWanted, str | None, Compaction | None]
) -> Generator[Effect, Answer, Compaction | None]:
    try:
        wanted = next(steps)
        while True:
            text = yield from ask_beside(run, wanted, part="context", missing="no summary")
            wanted = steps.send(text)
    except StopIteration as end:
        made: Compaction | None = end.value
        return made
    finally:
        steps.close()
