"""A pytest plugin for the small applications of this folder: what they find out is the same on every backend.

A test of an application writes what it saw into `facts`; what its jobs became is added. `--write-facts FILE` writes
all of it down; `--held-facts FILE` fails a test that saw something else than was written down there, which is how
facts of the real package hold the reference runtime where the real package is not installed. `record.py` writes
`recorded_1.4.json` anew. `--write-failed FILE` writes the ids of failed tests, one a line.
"""
# mypy: ignore-errors

import dataclasses
import json
import re
from pathlib import Path

import pytest

SEEN = {}
FAILED = {}
LEFT_OUT = ("bytes_sent", "bytes_received", "approx_tokens", "history")
"""Fields of jobs that say what was sent; compared with everything else unless a test asks not to."""


def pytest_addoption(parser):
    parser.addoption("--write-facts")
    parser.addoption("--held-facts")
    parser.addoption("--write-failed")
    parser.addoption("--seeds")


class Facts(dict):
    """What a test saw, by a name for it. `attempt` notes a value, or the error in its place."""

    def attempt(self, name, action):
        try:
            self[name] = action()
        except Exception as error:  # noqa: BLE001  # whatever it is, the other backend raises the same
            self[name] = f"{type(error).__name__}: {error}"


@pytest.fixture
def facts(request):
    """A dictionary to be filled."""
    seen = Facts()
    yield seen
    app = request.getfixturevalue("statek_app") if "statek_app" in request.fixturenames else None
    if app is not None:
        seen["jobs"] = [_job(job, request) for job in app.jobs]
    told = json.loads(ADDRESS.sub(" at 0x...", UUID.sub("uuid=...", json.dumps(seen, default=_plain))))
    SEEN[_name(request.node)] = told
    held = request.config.getoption("--held-facts")
    if held:
        _hold(_name(request.node), told, json.loads(Path(held).read_text(encoding="utf-8")))


def _name(item):
    return f"{item.path.stem}::{item.name}"


def _job(job, request):
    left_out = LEFT_OUT if request.node.get_closest_marker("not_what_was_sent") else ()
    told = {name: value for name, value in dataclasses.asdict(job).items() if name not in left_out}
    # A crash is told with the job's id in the store, and a traceback through files of this machine.
    # An agent among the arguments of a tool is told in short by one side, with all its members by the other.
    told["tools"] = [
        {**use, "arguments": AN_AGENT.sub(r'Agent(role="\1")', use["arguments"])} for use in told["tools"]
    ]
    told["console"] = [CRASHED.sub(r"Job ... failed with error: \1", line) for line in told["console"]]
    return told


ADDRESS = re.compile(r" at 0x[0-9a-f.]+")
AN_AGENT = re.compile(r"\w*Agent\((?:[^()]*,)?role=\"(\w+)\"[^)]*\)")
UUID = re.compile(r"uuid=[A-Z0-9]{24}")
CRASHED = re.compile(r"\AJob \S+ failed with error: (.*?)\nTraceback .*\Z", re.DOTALL)


def _plain(value):
    if hasattr(value, "items"):
        return dict(value)
    if hasattr(value, "__iter__"):
        return list(value)
    return str(value)


def _hold(test, told, held):
    if test not in held:
        pytest.fail(f"{test} is not among the facts of the real package: record them anew", pytrace=False)
    differences = list(compared(held[test], told))
    if differences:
        pytest.fail("differs from the real package:\n" + "\n".join(differences), pytrace=False)


def compared(real, here, place=""):
    """Yield one line for each place at which two facts differ."""
    if isinstance(real, dict) and isinstance(here, dict):
        for name in sorted({*real, *here}):
            yield from compared(real.get(name, "(nothing)"), here.get(name, "(nothing)"), f"{place}.{name}")
    elif isinstance(real, list) and isinstance(here, list) and len(real) == len(here):
        for number, (one, other) in enumerate(zip(real, here, strict=True)):
            yield from compared(one, other, f"{place}[{number}]")
    elif real != here:
        yield f"  {place}: here {here!r}, there {real!r}"


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "not_what_was_sent: facts of this test leave out requests and their sizes"
    )


def pytest_runtest_logreport(report):
    if report.failed:
        FAILED[report.nodeid] = None


def pytest_sessionfinish(session):
    failed = session.config.getoption("--write-failed")
    if failed:
        Path(failed).write_text("".join(f"{test}\n" for test in FAILED), encoding="utf-8")
    file = session.config.getoption("--write-facts")
    if file:
        Path(file).write_text(
            json.dumps(SEEN, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
        )
