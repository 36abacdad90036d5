"""Job definitions, shared between jobs that ask for the same work (behaviour 9, 10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.agents.job_def import JobDef
from statek_sim.runtime.agents.warmup_source import WarmupBlock
from statek_sim.runtime.jobs.post_processing import PostProcessor, identity
from statek_sim.runtime.state.calls import CallSpec
from statek_sim.runtime.state.chat_style import ChatStyle


class JobDefs:
    """Finds the definition for a combination of agent, warmup, style, locale and parameters, or makes it."""

    def __init__(self, kind: type[JobDef] = JobDef) -> None:
        self._kind = kind
        self._known: dict[Agent, dict[object, list[JobDef]]] = {}

    def get(
        self,
        agent: Agent,
        warmup: tuple[WarmupBlock, ...],
        chat_style: ChatStyle | None,
        locale: str | None,
        job_params: Mapping[str, object],
        post_processing: tuple[PostProcessor, ...] = (),
        *,
        own_blocks: int = 0,
    ) -> JobDef:
        """Return the shared definition; an error recorded on it concerns every later job of the same work.

        STATEK compares what is asked for with what its store gives back, and some of that never equals itself
        (checked with 1.2.5 to 1.4.2): such work has a new definition for every job. The
        first `own_blocks` of the warmup are the job's own, the others its agent's.
        """
        if not _found_again(agent.metadata, warmup, own_blocks, locale):
            return self.make(agent, warmup, chat_style, locale, job_params, post_processing)
        alike = self._known.setdefault(agent, {}).setdefault(_key(chat_style, locale, job_params), [])
        processors = [identity(processor) for processor in post_processing]
        for definition in alike:
            # Parsed blocks are cached by source, so identity settles most comparisons.
            same = (
                definition.warmup_code == warmup
                and (definition.job_params or {}) == job_params
                and definition.metadata["MODEL"] == agent.metadata["MODEL"]
            )
            if same and [identity(processor) for processor in definition.post_processing] == processors:
                return definition
        definition = self.make(agent, warmup, chat_style, locale, job_params, post_processing)
        alike.append(definition)
        return definition

    def saved(self) -> list[JobDef]:
        """Return the definitions that others may be found to be the same as, in their order."""
        return [
            definition for by_key in self._known.values() for alike in by_key.values() for definition in alike
        ]

    def resume(self, definitions: Iterable[JobDef]) -> None:
        """Know these definitions and no others."""
        self._known.clear()
        for one in definitions:
            key = _key(one.chat_style, one.locale, one.job_params or {})
            self._known.setdefault(one.agent, {}).setdefault(key, []).append(one)

    def make(
        self,
        agent: Agent,
        warmup: tuple[WarmupBlock, ...],
        chat_style: ChatStyle | None,
        locale: str | None,
        job_params: Mapping[str, object],
        post_processing: tuple[PostProcessor, ...] = (),
    ) -> JobDef:
        """Return a definition that is not shared."""
        return self._kind(
            agent, agent.metadata, warmup, dict(job_params), chat_style, locale, post_processing
        )


def _found_again(
    metadata: Mapping[str, str], warmup: tuple[WarmupBlock, ...], own_blocks: int, locale: str | None
) -> bool:
    """Return whether STATEK finds a definition again.

    Not with models by difficulty (stored as a mapping, compared as text), a locale that is text (another object each
    time, compared by identity), or tool calls in warmup that do not equal themselves in the store.
    """
    if ":" in str(metadata["MODEL"]) or isinstance(locale, str):
        return False
    own, agents = warmup[:own_blocks], warmup[own_blocks:]
    return all(equals_its_like(call) for block in own for call in block.tool_calls) and all(
        equals_itself(call) for block in agents for call in block.tool_calls
    )


def equals_itself(call: CallSpec) -> bool:
    """Return whether a stored call of an agent's warmup, the same for all jobs, equals itself: a mapping does not."""
    return not call.kwargs


def equals_its_like(call: CallSpec) -> bool:
    """Return whether two stored calls of the same are equal: texts and collections in two stored lists are not."""
    return equals_itself(call) and all(value is None or isinstance(value, int | float) for value in call.args)


def _key(chat_style: ChatStyle | None, locale: str | None, job_params: Mapping[str, object]) -> object:
    """Return what equal definitions have in common; parameters that cannot be hashed are told apart later."""
    key = (chat_style, id(locale), *sorted(job_params.items(), key=lambda pair: pair[0]))
    try:
        hash(key)
    except TypeError:
        return (chat_style, id(locale))
    return key
