"""The process of an interpreter that has `statek` installed: starts it, answers its requests, and reads its results.

The interpreter can import the same modules as this process. `statek_sim.semantics` lists the supported
releases.
"""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, cast

from statek_sim.backends.installed.messages import Line, Message, answer_of, exchanged, nowhere, or_abort
from statek_sim.backends.record import (
    JobRecord,
    RunError,
    RunRecord,
    UsageRecord,
    seen_of_job,
    seen_of_run,
    stop_reason,
)
from statek_sim.backends.setup import harness_for, job_settings, script_of
from statek_sim.errors import BadInput, BadScenario, StatekSimError
from statek_sim.providers.http_provider import Exchanges
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.scriptable import measured
from statek_sim.semantics import RELEASES, profile_named, profile_of
from statek_sim.semantics import Profile as Behaviour
from statek_sim.trace import Event, Trace, event_of
from statek_sim.usage.tokenizers import TokenizerRegistry

DEADLINE: Final = 60.0
"""Real seconds after which a scenario's process is killed."""

EXCHANGES_DEADLINE: Final = 3600.0
"""The same deadline for a scenario whose requests go to a real model, which takes longer."""

_ROOT: Final = Path(__file__).resolve().parents[3]
_START: Final = (
    "import runpy, sys; sys.path.extend({paths!r}); "
    "runpy.run_module('statek_sim.backends.installed', run_name='__main__')"
)


UNUSABLE: Final = "Unusable"
"""The kind of `Lost` for a scenario that could not start because one of the user's tools is missing."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A scenario that ran to its end; the keys of `facts` are the field names in `backends.record`."""

    facts: Message
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Lost:
    """A scenario that did not return, because its process hung or died.

    `events` are the events recorded before that. `kind` is `NeverEnds` or `OutOfMemory` if the process
    detected this itself, `Unusable` if the scenario did not start, otherwise `Lost`.
    """

    reason: str
    events: tuple[Event, ...] = ()
    kind: str = "Lost"


class Peer:
    """A context manager that runs an interpreter with `statek`; raises `BadInput` if it cannot run `statek`."""

    def __init__(self, python: str, *, deadline: float = DEADLINE) -> None:
        self.interpreter = python
        # It starts in a separate folder. A virtual environment's interpreter must not be resolved any further.
        self._path = os.path.abspath(python) if os.sep in python else python
        self._deadline = deadline
        self._folder = tempfile.TemporaryDirectory(prefix="statek-sim-")
        try:
            self._process = self._spawn()
        except OSError as error:
            self._folder.cleanup()
            raise BadInput(f"{python}: cannot be started: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._line = Line(
            cast("Any", self._process.stdout),  # unbuffered pipes are raw files
            cast("Any", self._process.stdin),
        )
        # A program that is not an interpreter may wait for input.
        watch = _Deadline(deadline)
        watch.watch(self._process.pid)
        try:
            hello = self._line.receive()
        except ValueError:
            hello = {"failed": "it is not a Python interpreter"}
        finally:
            watch.lift()
        if hello is None:
            hello = {
                "failed": f"it did not answer within {deadline:g} s"
                if watch.passed
                else "it ended immediately"
            }
        if "statek" not in hello:
            self.close()
            raise BadInput(
                f"{python}: cannot run statek: {hello.get('failed')}; install it there with: "
                f"{python} -m pip install 'statek[dbzero]'"
            )
        self.version = str(hello["statek"])
        self.python_version = str(hello["python"])

    def _spawn(self) -> subprocess.Popen[bytes]:
        code = _START.format(paths=[str(_ROOT), *module_paths()])
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": self._folder.name,
            "TMPDIR": self._folder.name,
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.Popen(
            [self._path, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=self._folder.name,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the interpreter and remove its folder."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    # -- scenarios -------------------------------------------------------------------------------------------------

    def run(
        self,
        scenario: Scenario,
        profile: str | Behaviour,
        *,
        preset: str | None = None,
        seed: int | None = None,
        tokenizers: TokenizerRegistry | None = None,
        exchanges: Exchanges | None = None,
    ) -> Ran | Lost:
        """Run one scenario with its limits and settings under `profile`.

        `preset` and `seed` override the scenario's, and `exchanges` replace its script. A scripted scenario
        that does not return is run a second time, because the machine may have been overloaded. Raises
        `BadScenario` if one of the user's tools is missing.
        """
        if scenario.deviations:
            raise BadScenario(f"{scenario.place}: deviations: only the reference runtime supports them")
        if exchanges is not None:
            order = _order(scenario, profile, preset, seed, exchanges.environment)
            answer = partial(exchanged, exchanges.transport)
            deadline = _Deadline(EXCHANGES_DEADLINE)
            return self._usable(scenario, self._try(order, answer, exchanges.check_finished, deadline))

        def once() -> Ran | Lost:
            llm = ScriptedLLM(script_of(scenario), measure=partial(measured, tokenizers=tokenizers))
            return self._try(order, partial(answer_of, llm), llm.check_finished, _Deadline(self._deadline))

        order = _order(scenario, profile, preset, seed, {})
        outcome = once()
        # The results of runs that are measured would be measured again.
        again = isinstance(outcome, Lost) and outcome.kind == "Lost"
        return self._usable(scenario, once() if again else outcome)

    def _usable(self, scenario: Scenario, outcome: Ran | Lost) -> Ran | Lost:
        """Return the outcome; raises `BadScenario` if the scenario could not start."""
        if isinstance(outcome, Lost) and outcome.kind == UNUSABLE:
            raise BadScenario(
                f"{scenario.place}: {outcome.reason} (with {self.interpreter}, statek {self.version})"
            )
        return outcome

    def _try(
        self,
        order: Message,
        answer: Callable[[Message], Message],
        check_finished: Callable[[], None],
        deadline: _Deadline,
    ) -> Ran | Lost:
        """Send the request to run the scenario, and answer the scenario's requests until its process ends."""
        self._line.send(order)
        outcome: Ran | Lost | None = None
        seen: list[Event] = []
        while (message := self._line.receive()) is not None:
            record = message.get("facts") if "facts" in message else message
            seen.extend(map(event_of, cast("Message", record).pop("events", ())))  # type: ignore[arg-type]
            if "pid" in message:
                deadline.watch(cast("int", message["pid"]))
            elif "request" in message:
                self._line.send(or_abort(answer, message))
            elif "facts" in message:
                outcome = Ran(_finished(cast("Message", message["facts"]), check_finished), tuple(seen))
            elif "lost" in message:
                lost: Any = message["lost"]
                outcome = Lost(lost["message"], tuple(seen), lost["type"])
            elif "unusable" in message:
                outcome = Lost(str(message["unusable"]), tuple(seen), UNUSABLE)
            elif "broken" in message:
                outcome = Lost(f"broken: {message['broken']}", tuple(seen))
            elif "ended" in message:
                deadline.lift()
                if deadline.passed:
                    return Lost(f"hangs: killed after {deadline.seconds:g} s", tuple(seen))
                died = f"its process died with {_exit(cast('int', message['ended']))}"
                return outcome or Lost(died, tuple(seen))
        raise BadInput(f"{self.interpreter}: the interpreter (statek {self.version}) died")


def profile_of_peer(peer: Peer) -> Profile:
    """Return the behaviour profile for the interpreter's STATEK version; raises `BadInput` if there is none."""
    profile = profile_of(peer.version)
    if profile is None:
        lines = ", ".join(dict.fromkeys(f"{release.line}.x" for release in RELEASES))
        raise BadInput(
            f"{peer.interpreter}: statek {peer.version} has no behaviour profile; expected one of {lines}"
        )
    return profile


class _Deadline:
    """Kills a process that takes longer than `seconds`; `passed` is whether the time has passed."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._timer: threading.Timer | None = None
        self.passed = False

    def watch(self, pid: int) -> None:
        """Kill the process `pid` unless `lift` is called in time. Only one process is watched at a time."""
        self.lift()
        self._timer = threading.Timer(self.seconds, self._kill, (pid,))
        self._timer.daemon = True
        self._timer.start()

    def _kill(self, pid: int) -> None:
        self.passed = True
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def lift(self) -> None:
        """Stop watching, because the process has ended."""
        if self._timer is not None:
            self._timer.cancel()


def _order(
    scenario: Scenario,
    profile: str | Behaviour,
    preset: str | None,
    seed: int | None,
    environment: Mapping[str, str],
) -> Message:
    settings = job_settings(scenario, preset=preset)
    behaviour = profile_named(profile) if isinstance(profile, str) else profile
    harness = harness_for(scenario.limits, settings, behaviour)
    placed = {"suite", "path", "line", "file_digest", "expect", "expect_in", "jobs"}
    jobs: Message = {
        name: job.model_dump(mode="json", exclude_unset=True) for name, job in scenario.jobs.items()
    }
    fields: Message = {
        **scenario.model_dump(mode="json", exclude_unset=True, exclude=placed),
        "jobs": jobs,
        "seed": scenario.seed if seed is None else seed,
    }
    return {
        "scenario": fields,
        # STATEK needs an address and a key, and derives the provider from the model name.
        "environment": {**nowhere(settings.default_llm_api_provider + json.dumps(fields)), **environment},
        "module_paths": list(module_paths()),
        "dormant": behaviour.waiting_job_is_dormant,
        "pass_seconds": behaviour.warmup_wait_pass_seconds,
        "settings": settings.given,
        "limits": asdict(harness.limits),
    }


def _finished(facts: Message, check_finished: Callable[[], None]) -> Message:
    """Return a run's facts; unused replies or recordings become the run's error."""
    if facts["error"] is None:
        try:
            check_finished()
        except StatekSimError as failure:
            facts["error"] = {"type": type(failure).__name__, "message": str(failure)}
    return facts


def _exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def module_paths() -> tuple[str, ...]:
    """Return the absolute folders on `sys.path`, in order, and the current folder.

    This interpreter's own folders (standard library and installed packages) are left out, because the other
    interpreter has its own.
    """
    own = tuple(_own_folders())
    folders = dict.fromkeys(os.path.abspath(entry) for entry in (*sys.path, ""))
    return tuple(
        folder for folder in folders if not any(Path(folder).is_relative_to(own_folder) for own_folder in own)
    )


def _own_folders() -> Iterator[str]:
    """Yield this interpreter's own folders and zip archive."""
    for kind in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield sysconfig.get_path(kind)
    yield from site.getsitepackages()
    yield site.getusersitepackages()
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    yield os.path.join(sys.base_prefix, sys.platlibdir, zipped)


def installed_record(scenario: Scenario, profile: str, outcome: Ran | Lost, *, seed: int) -> RunRecord:
    """Return the record of a run.

    Tokenizer counts are left empty. A lost run's record contains only the error and the events recorded
    before it.
    """
    facts: Any = outcome.facts if isinstance(outcome, Ran) else {}
    failure = (
        facts.get("error") if isinstance(outcome, Ran) else {"type": outcome.kind, "message": outcome.reason}
    )
    trace = Trace(profile=profile, seed=seed)
    for event in outcome.events:
        trace.add(event)
    jobs = {
        name: job_record(facts_of_job, list(trace.of_job(name)))
        for name, facts_of_job in facts.get("jobs", {}).items()
    }
    return RunRecord(
        scenario=scenario.id,
        backend="installed",
        jobs=jobs,
        items=facts.get("items", {}),
        leaked_claims=tuple(facts.get("leaked_claims", ())),
        ledger=tuple(facts.get("ledger", ())),
        idle=facts.get("idle", False),
        settled=facts.get("settled", False),
        worker=facts.get("worker"),
        usage=_total([job.usage for job in jobs.values()]),
        error=None
        if failure is None
        else RunError(**failure).in_run(settled=facts.get("settled", True), until=scenario.until),
        **seen_of_run(trace),
    )


def job_record(facts: Mapping[str, Any], trace: Sequence[Event]) -> JobRecord:
    """Return a job's record, created from its facts (which may have been sent as JSON) and its events."""
    sequences = {key: tuple(facts[key]) for key in ("definition_errors", "console", "history")}
    return JobRecord(
        **{
            **facts,
            **sequences,
            "tool_log": tuple(map(tuple, facts["tool_log"])),
            "usage": UsageRecord(**facts["usage"]),
        },
        stop=stop_reason(trace),
        **seen_of_job(trace),
    )


def _total(usages: list[UsageRecord]) -> UsageRecord:
    counted = ("bytes_sent", "bytes_received", "approx_tokens", "reported_tokens")
    sums: dict[str, Any] = {name: sum(getattr(usage, name) or 0 for usage in usages) for name in counted}
    return UsageRecord(**{**sums, "reported_tokens": sums["reported_tokens"] or None})
