"""The real package in the hands of the driver."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn, Protocol

from statek.executors import utils
from statek.task import create_new_job, create_sub_task

from statek_sim.backends.installed import stored_objects, stored_world
from statek_sim.backends.installed.agents import make_agent
from statek_sim.backends.installed.cast import Cast
from statek_sim.backends.installed.loop import WorkerLoop
from statek_sim.backends.installed.virtual_time import VirtualTime
from statek_sim.scenario.schema import AgentText, JobText

StartJobs = Callable[[int], None]
"""What STATEK calls in each pass of its loop, with the free capacity."""


class Leave(Protocol):
    """Ends this process and leaves everything to the next one."""

    def __call__(self, *, restart: bool) -> NoReturn:
        """End it; with `restart` the worker of the next one begins to work at once."""


class InstalledSide:
    """STATEK in its store, with its worker loop. `restarted` hears of a worker that begins to work.

    A process works with what it finds: in one that goes on, agents are in the store already.
    """

    def __init__(
        self, time: VirtualTime, loop: WorkerLoop, cast: Cast, *, leave: Leave, restarted: Callable[[], None]
    ) -> None:
        self._time = time
        self._loop = loop
        self._cast = cast
        self._leave = leave
        self._restarted = restarted
        self._start_jobs: list[StartJobs] = []
        self.fresh = False
        """Whether the process has done nothing since it opened the store of a worker that is dead."""

    @property
    def now(self) -> float:
        """The virtual second."""
        return self._time.now

    @property
    def world(self) -> stored_world.StoredWorld:
        """The world in the objects of the store."""
        return stored_world.WORLD

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do `action` at virtual second `when`, and offer the jobs that it made able to run."""

        def act() -> None:
            action()
            self._loop.offer()

        self._time.at(when, act)

    def enter_agent(self, role: str, text: AgentText) -> None:
        """Make an agent, where no process before has made it."""
        if role not in stored_world.AGENTS:
            stored_world.AGENTS[role] = make_agent(role, text)

    def add_loop(self, role: str) -> None:
        """Have STATEK start jobs of this agent for the items of the queue, from when the worker begins to work."""
        self._start_jobs.append(_start_jobs(stored_world.AGENTS[role]))

    def make_job(self, name: str, text: JobText, shared: dict[str, Any]) -> Any:
        """Create a job as an application does."""
        agent = stored_world.AGENTS[text.agent or next(iter(stored_world.AGENTS))]
        parent = self._cast.jobs[text.parent] if text.parent is not None else None
        job = _new_job(agent, shared, parent, text.warmup)
        self._cast.meet(job, name)
        return job

    def job(self, name: str) -> Any:
        """Return a job by its name."""
        return self._cast.jobs[name]

    def make_subtask(self, job: Any, subtask_id: str) -> Any:
        """Make a job a subtask of its parent."""
        return create_sub_task(job, id=subtask_id)

    def kill(self, reason: str, *, in_call: bool) -> None:
        """Kill the worker: this process, from wherever it is."""
        self._loop.die(reason)
        self._leave(restart=False)

    def restart(self) -> None:
        """Let a new worker process begin to work: this one, if it has done nothing since it opened the store."""
        if not self.fresh:
            self._leave(restart=True)
        self.begin_anew()

    # -- the worker process ----------------------------------------------------------------------------------------

    def begin_work(self) -> None:
        """Have the loops of agents take part in each pass."""
        self._loop.on_pass[:] = self._start_jobs

    def begin_anew(self) -> None:
        """Begin to work in the place of a worker that is dead."""
        self.fresh = False
        self._restarted()
        self.begin_work()
        self._loop.restart()


def _new_job(_agent: Any, _shared: Mapping[str, Any], _parent: Any, _warmup: str | None) -> Any:
    """Create a job. STATEK copies the caller's variables that warmup code reads: here they have unlikely names."""
    return create_new_job(_agent, _shared, _parent, _warmup)


def _start_jobs(agent: Any) -> StartJobs:
    """Return what STATEK makes to start jobs of an agent, with its warmup as `start_statek`; its loop is not run."""
    made: list[StartJobs] = []
    warmup = None if agent.warmup_def is None else agent.warmup_def.warmup_code

    async def keep(*, start_jobs_func: StartJobs, **_: Any) -> None:
        made.append(start_jobs_func)

    run_loop, utils.run_jobs_loop = utils.run_jobs_loop, keep
    try:
        _run(utils.run_agentic_loop(agent, warmup, stored_objects.LIVE.queue.ready, queue_prefixes=()))
    finally:
        utils.run_jobs_loop = run_loop
    return made[0]


def _run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run to its end what waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise AssertionError("STATEK's agentic loop waits for something before it runs jobs")
