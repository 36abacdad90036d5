"""`dbzero.find`, `tags` and what goes with them, over the stand-in store."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, final

from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.stored.kinds import EnumValue
from statek_sim.shim.memo import has_class_tag, is_memo, number_of
from statek_sim.shim.not_covered import NotCovered
from statek_sim.shim.store import current_store

_UUID: Final = "STAND-IN-"


@dataclass(frozen=True, slots=True)
class No:
    """A criterion turned round."""

    criterion: Any


@dataclass(frozen=True, slots=True)
class Tag:
    """A stored object as a tag of others."""

    number: int


@final
class Found:
    """What a query finds: it can be counted and gone through, again and again, and has no positions.

    `sorted_from` is the query that an index put in order: dbzero counts that one, also where the index lacks some.
    """

    def __init__(self, items: Callable[[], list[Any]], sorted_from: Found | None = None) -> None:
        self._items = items
        self._sorted_from = sorted_from

    @property
    def is_sorted(self) -> bool:
        """Whether an index put it in order."""
        return self._sorted_from is not None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    def __len__(self) -> int:
        return len(self._items() if self._sorted_from is None else self._sorted_from)

    def __bool__(self) -> bool:
        return len(self) > 0


def find(*criteria: Any) -> Found:
    """Find stored objects that fulfil every criterion: a class, a tag, an object, another query, `no(...)`.

    A tuple holds more of them; of a list one is enough.
    """
    wanted = tuple(_each(criteria))
    if not wanted:
        return Found(list)
    return Found(
        lambda: [item for item in _candidates(wanted) if all(_fits(item, criterion) for criterion in wanted)]
    )


def _each(criteria: tuple[Any, ...]) -> Iterator[Any]:
    for criterion in criteria:
        if isinstance(criterion, tuple):
            yield from _each(criterion)
        else:
            yield criterion


def _candidates(criteria: tuple[Any, ...]) -> Iterable[Any]:
    first = criteria[0]
    if isinstance(first, Found):
        return first
    if isinstance(first, type) and issubclass(first, Job):
        return reversed(current_runtime().jobs)
    if isinstance(first, type) and first.__module__.startswith("statek_sim.") and not is_memo(first):
        raise NotCovered(f"dbzero.find({first.__name__})")
    return current_store().newest_first()


def _fits(item: Any, criterion: Any) -> bool:
    match criterion:
        case Found():
            return any(item is element for element in criterion)
        case type():
            return isinstance(item, criterion) and has_class_tag(item)
        case No():
            return not _fits(item, criterion.criterion)
        case tuple():
            return all(_fits(item, part) for part in criterion)
        case list() | set():
            return any(_fits(item, part) for part in criterion)
        case JobStatus() | EnumValue() if isinstance(item, Job):
            return item.status == criterion
        case JobStatus():
            return False
    if is_memo(criterion):
        return item is criterion
    if isinstance(item, Job):
        return _is_tagged(item, criterion)
    return current_store().has_tag(number_of(item), _tag(criterion))


def _is_tagged(job: Job, criterion: Any) -> bool:
    """Return whether a job has a tag: its agent and its definition are tags of it."""
    if isinstance(criterion, Tag):
        return criterion in (as_tag(job.agent), as_tag(job.job_def))
    raise NotCovered(f"dbzero.find(Job, {criterion!r})")


def _tag(value: Any) -> Hashable:
    if isinstance(value, str | Tag | EnumValue):
        return value
    raise NotCovered(f"dbzero tag {value!r}")


def no(criterion: Any) -> No:
    """Return the opposite of a criterion."""
    return No(criterion)


def as_tag(stored: Any) -> Tag:
    """Return a stored object as a tag."""
    return Tag(number_of(stored))


class Tags:
    """The tags of some objects."""

    def __init__(self, stored: tuple[Any, ...]) -> None:
        self._stored = stored
        self._numbers = [number_of(found) for found in stored]

    def add(self, *tags: Any) -> None:
        """Add tags."""
        for number in self._numbers:
            current_store().tag(number, {_tag(tag) for tag in _flat(tags)})

    def remove(self, *tags: Any) -> None:
        """Take tags away."""
        for number in self._numbers:
            current_store().untag(number, {_tag(tag) for tag in _flat(tags)})


def tags(*stored: Any) -> Tags:
    """Return the tags of objects, to be changed."""
    return Tags(stored)


def _flat(tags: tuple[Any, ...]) -> Iterator[Any]:
    for tag in tags:
        if isinstance(tag, list | tuple | set):
            yield from tag
        else:
            yield tag


def filter_(condition: Callable[[Any], bool], found: Iterable[Any]) -> Found:
    """Return what of a query fulfils a condition."""
    return Found(lambda: [item for item in found if condition(item)])


def uuid(stored: Any) -> str:
    """Return the id of a stored object or a job."""
    return stored.id if isinstance(stored, Job) else f"{_UUID}{number_of(stored)}"


def fetch(*what: Any) -> Any:
    """Return the object with an id, or the singleton of a class."""
    wanted = what[-1]
    found = _fetched(wanted)
    if found is None:
        raise RuntimeError(f"Invalid UUID: {wanted}")
    return found


def exists(*what: Any) -> bool:
    """Return whether `fetch` would find something."""
    return _fetched(what[-1]) is not None


def _fetched(wanted: Any) -> Any:
    if isinstance(wanted, type):
        return current_store().singletons.get(wanted)
    if isinstance(wanted, str) and wanted.startswith(_UUID):
        return current_store().with_number(int(wanted.removeprefix(_UUID)))
    return next((job for job in current_runtime().jobs if job.id == wanted), None)
