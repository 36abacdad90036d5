"""Where runs depart: faults, kills and schedules for any scenario, and the deviations that one has occasion for."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from statek_sim.explore.subject import Subject
from statek_sim.scenario.deviation import Deviation, Fault
from statek_sim.scenario.schema import Scenario


def faults(*names: str, most_reply: int = 5) -> st.SearchStrategy[Deviation]:
    """Return a failing request of one of the jobs called `names`, `main` if you name none."""
    return st.builds(
        Deviation,
        fault=st.sampled_from(get_args(Fault)),
        job=st.sampled_from(names or ("main",)),
        reply=st.integers(1, most_reply),
    )


def kills(*, most_event: int = 60, restarts: bool = True) -> st.SearchStrategy[Deviation]:
    """Return a death of the worker after an event of the trace, and a new worker after some seconds.

    A run with fewer events does not die. Without `restarts` no worker may come.
    """
    after: st.SearchStrategy[float | None] = st.sampled_from((60.0, 1.0, 0.0))
    if not restarts:
        after = after | st.none()
    places = st.tuples(st.integers(0, most_event), st.sampled_from((0, 0, 0, 1, 2)), after)
    return places.map(_kill)


def _kill(place: tuple[int, int, float | None]) -> Deviation:
    event, silent, restart = place
    if silent:
        return Deviation(kill=event, silent=silent, restart=restart)
    return Deviation(kill=event, restart=restart)


def schedules(*names: str, most: int = 3, most_choice: int = 12) -> st.SearchStrategy[tuple[Deviation, ...]]:
    """Return orders: up to `most` choices between jobs that are ready at which one of `names` steps first."""
    choices = st.dictionaries(st.integers(1, most_choice), st.sampled_from(names), max_size=most)
    return choices.map(
        lambda picked: tuple(Deviation(choose=number, first=name) for number, name in sorted(picked.items()))
    )


def deviations(
    subject: Subject, *, kinds: tuple[str, ...] | None = None, most: int = 2
) -> st.SearchStrategy[tuple[Deviation, ...]]:
    """Return up to `most` different deviations for which the scenario gives occasion.

    `kinds` are of kill, lose, fault, move, limit; None: all. The scenario is run once when the first is drawn.
    """

    @st.composite
    def drawn(draw: st.DrawFn) -> tuple[Deviation, ...]:
        every = [deviation for deviation in subject.singles if kinds is None or deviation.action in kinds]
        if not every:
            return ()
        places = draw(st.lists(st.integers(0, len(every) - 1), max_size=most, unique=True))
        return tuple(every[place] for place in places)

    return drawn()


@st.composite
def variations(
    draw: st.DrawFn, /, drawn: st.SearchStrategy[Scenario], subject: Subject | None = None, *, most: int = 2
) -> tuple[Subject, tuple[Deviation, ...]]:
    """Return a drawn scenario to be asked about, as `subject` is, and deviations that it has occasion for."""
    scenario = draw(drawn)
    made = Subject(scenario) if subject is None else subject.like(scenario)
    return made, draw(deviations(made, most=most))
