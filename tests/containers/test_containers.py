"""Programs in bubblewrap and Docker, for real: limits, isolation, outcomes as text, and tools that run programs."""

from __future__ import annotations

import asyncio
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from statek_sim.agent.async_driver import AsyncDriver, LoopClock, model_of
from statek_sim.agent.containers import seccomp
from statek_sim.agent.containers.bubblewrap import Bubblewrap
from statek_sim.agent.containers.docker import Docker
from statek_sim.agent.containers.program import Container, Ended, Limits, Mount, Program
from statek_sim.agent.containers.tools import Answer, ScriptedContainer, outcome_text, run_async, shell_tool
from statek_sim.agent.harness import AgentHarness
from statek_sim.errors import BadInput, ContainerFailed, ContainerRefused, ScriptExhausted
from statek_sim.providers.script import text, tool_call
from statek_sim.providers.scripted import ScriptedLLM
from tests.containers.contract import check_container
from tests.tables import table_test
from tools.containers import REQUIRED, interpreter

PYTHON = interpreter()


def shell(line: str, *mounts: Mount) -> Program:
    return Program(argv=("/bin/sh", "-c", line), mounts=mounts)


# -- for real ---------------------------------------------------------------------------------------------------


def test_there_is_something_here_to_hold_programs_in(request: pytest.FixtureRequest) -> None:
    why = []
    for name in ("bubblewrap", "docker"):
        try:
            request.getfixturevalue(name)
            return
        except pytest.skip.Exception as missing:
            why.append(str(missing))
    if os.environ.get(REQUIRED):
        pytest.fail(f"containers are not tested here, and {REQUIRED} is set: {'; '.join(why)}")
    pytest.skip("; ".join(why))


def test_bubblewrap_keeps_the_contract(bubblewrap: Bubblewrap, tmp_path: Path) -> None:
    assert check_container(bubblewrap, tmp_path, python=PYTHON) == 15


@pytest.mark.slow
def test_docker_keeps_the_contract(docker: Docker, tmp_path: Path) -> None:
    assert check_container(docker, tmp_path, python="/usr/bin/python3") == 15


def test_docker_runs_a_program_and_tells_how_it_ended(docker: Docker, folder: Path) -> None:
    mount = Mount(path=folder, writable=True)
    ended = docker.run(shell("echo out; echo err >&2; echo kept > file; exit 3", mount))
    assert ended == Ended(exit=3, stdout="out\n", stderr="err\n")
    assert (folder / "file").read_text() == "kept\n"
    late = docker.run(shell("trap '' TERM; while :; do :; done"), Limits(seconds=0.5))
    assert (late.timed_out, late.killed, late.why) == (True, True, "killed: it took too long")


def test_bubblewrap_says_how_limits_are_held(bubblewrap: Bubblewrap) -> None:
    assert bubblewrap.limits in ("cgroup v2", "rlimits")
    assert Bubblewrap(groups=False).limits == "rlimits"


def test_without_control_groups_each_process_has_its_limits(bubblewrap: Bubblewrap, folder: Path) -> None:
    alone = Bubblewrap(groups=False)
    program = Program(argv=(PYTHON, "-I", "-S", "-c", "bytearray(200 * 2**20)"))
    ended = alone.run(program, Limits(memory=64 * 2**20))
    assert (ended.exit, ended.oom) == (1, False)
    assert "MemoryError" in ended.stderr


def test_without_control_groups_the_memory_of_all_processes_is_held_together(bubblewrap: Bubblewrap) -> None:
    source = (
        "import os, time\n"
        "for _ in range(4):\n"
        "  if not os.fork(): room = bytearray(40 * 2**20); time.sleep(100)\n"
        "time.sleep(100)"
    )
    program = Program(argv=(PYTHON, "-I", "-S", "-c", source))
    ended = Bubblewrap(groups=False).run(program, Limits(memory=64 * 2**20))
    assert (ended.killed, ended.oom, ended.timed_out) == (True, True, False)


def test_a_program_in_bubblewrap_has_nothing_of_its_callers(bubblewrap: Bubblewrap) -> None:
    os.environ["STATEK_TEST_SECRET"] = "hidden"
    try:
        ended = bubblewrap.run(shell("id -u; env; ls /proc/self/fd | wc -l; cat /proc/1/environ"))
    finally:
        del os.environ["STATEK_TEST_SECRET"]
    lines = ended.stdout.splitlines()
    assert lines[0] == "65534"
    assert sorted(line.partition("=")[0] for line in lines[1:-1]) == ["HOME", "LANG", "PATH", "PWD"]
    assert lines[-1] == "4"  # the three, and the folder that is listed


def test_what_is_protected_and_not_there_cannot_be_made(bubblewrap: Bubblewrap, folder: Path) -> None:
    ended = bubblewrap.run(shell("mkdir -p .git/hooks; touch .git/config", Mount(path=folder, writable=True)))
    assert ended.exit == 1
    assert list(folder.iterdir()) == []


@pytest.fixture(params=["bubblewrap", "docker"])
def container(request: pytest.FixtureRequest) -> Container:
    found: Container = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("name", [".git", "vendor/.git", "a/b/.GIT", "vendor/.Hg"])
def test_what_is_protected_is_so_at_any_depth_and_in_any_case(
    container: Container, folder: Path, name: str
) -> None:
    place = folder / name
    place.mkdir(parents=True)
    place.chmod(0o777)
    line = f"echo '[core] fsmonitor = ./evil' > {name}/config || echo kept; echo x > beside"
    ended = container.run(shell(line, Mount(path=folder, writable=True)))
    assert "kept" in ended.stdout
    assert list(place.iterdir()) == []
    assert (folder / "beside").exists()


@pytest.mark.parametrize("name", [".git", ".Git"])
@pytest.mark.parametrize(
    "makes", ["os.makedirs('new/{}/hooks')", "os.mkdir('new'); open('new/{}', 'w').write('gitdir: /x')"]
)
def test_what_is_protected_and_is_made_deeper_is_removed_and_told(
    container: Container, folder: Path, makes: str, name: str
) -> None:
    python = PYTHON if isinstance(container, Bubblewrap) else "/usr/bin/python3"
    argv = (python, "-I", "-c", f"import os; {makes.format(name)}")
    with pytest.raises(ContainerRefused, match=rf"new/\{name}: created by the program, and removed"):
        container.run(Program(argv=argv, mounts=(Mount(path=folder, writable=True),)))
    assert list((folder / "new").iterdir()) == []


def test_what_is_protected_stays_so_while_another_program_of_the_folder_runs(
    bubblewrap: Bubblewrap, folder: Path
) -> None:
    mount = Mount(path=folder, writable=True)
    line = "until [ -e go ]; do sleep 0.02; done; mkdir .git/hooks || mkdir .git"
    with ThreadPoolExecutor(1) as pool:
        longer = pool.submit(bubblewrap.run, shell(f"touch began; {line}", mount), Limits(seconds=20))
        while not (folder / "began").exists():
            Event().wait(0.01)
        assert bubblewrap.run(shell("true", mount)).exit == 0
        (folder / "go").touch()
        assert longer.result().exit == 1
    assert sorted(path.name for path in folder.iterdir()) == ["began", "go"]


def test_a_folder_with_a_hard_link_to_somewhere_else_is_not_given(
    bubblewrap: Bubblewrap, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("outside")
    (folder / "link").hardlink_to(tmp_path / "other")
    with pytest.raises(ContainerRefused, match="is hard-linked from outside the writable folder"):
        bubblewrap.run(shell("true", Mount(path=folder, writable=True)))
    allowed = Mount(path=folder, writable=True, hard_links=True)
    assert bubblewrap.run(shell("cat link", allowed)).stdout == "outside"


def test_two_names_inside_of_a_folder_are_its_own_affair(bubblewrap: Bubblewrap, folder: Path) -> None:
    (folder / "a").write_text("inside")
    (folder / "b").hardlink_to(folder / "a")
    assert bubblewrap.run(shell("cat b", Mount(path=folder, writable=True))).stdout == "inside"


def test_a_protected_place_that_is_a_link_is_refused(bubblewrap: Bubblewrap, folder: Path) -> None:
    (folder / ".git").symlink_to("/etc")
    with pytest.raises(ContainerRefused, match=r"\.git: a link cannot be protected"):
        bubblewrap.run(shell("true", Mount(path=folder, writable=True)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's programs are somebody else's")
def test_a_folder_that_nobody_may_write_in_is_refused(bubblewrap: Bubblewrap, tmp_path: Path) -> None:
    with pytest.raises(ContainerRefused, match="runs as uid 65534, which cannot write there"):
        bubblewrap.run(shell("true", Mount(path=tmp_path, writable=True)))


def test_a_folder_that_is_only_read_cannot_be_written(bubblewrap: Bubblewrap, folder: Path) -> None:
    (folder / "file").write_text("kept")
    ended = bubblewrap.run(shell("cat file; echo more > file", Mount(path=folder)))
    assert ended.stdout == "kept"
    assert "Read-only file system" in ended.stderr
    assert (folder / "file").read_text() == "kept"


def test_a_sandbox_that_cannot_be_made_is_no_fault_of_the_program(bubblewrap: Bubblewrap) -> None:
    with pytest.raises(
        ContainerFailed, match="bubblewrap could not create a sandbox: bwrap: Can't find source path"
    ):
        bubblewrap.run(shell("true", Mount(path=Path("/there/is/nothing"))))


def test_no_control_group_is_left(bubblewrap: Bubblewrap) -> None:
    bubblewrap.run(shell("sleep 100 & sleep 100 &"), Limits(seconds=5))
    left = list(Path("/sys/fs/cgroup").rglob(f"statek-{os.getpid()}-*"))
    assert left == []


def test_a_tool_that_is_cancelled_takes_its_program_with_it(bubblewrap: Bubblewrap) -> None:
    async def cancelled() -> bool:
        running = asyncio.create_task(run_async(bubblewrap, shell("sleep 3141")))
        while not any("sleep\x003141" in line for line in _commands()):
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running])
        return running.cancelled()

    assert asyncio.run(cancelled())
    assert not any("sleep\x003141" in line for line in _commands())


def _commands() -> list[str]:
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                found.append((place / "cmdline").read_text(errors="replace"))
            except OSError:
                continue
    return found


def test_an_agents_shell_runs_in_a_sandbox(bubblewrap: Bubblewrap, folder: Path) -> None:
    script = ScriptedLLM(
        {"agent": [tool_call("run_shell", command="echo made > file; cat file; nothing"), text("Done.")]}
    )
    tool = shell_tool(bubblewrap, mounts=[Mount(path=folder, writable=True)])
    harness = AgentHarness(tools=[tool])

    async def work() -> list[dict[str, str | None]]:
        clock = LoopClock()
        run = harness.begin("Work.", clock=clock)
        await AsyncDriver(model_of(script), clock=clock.now).run(run)
        return run.calls

    [call] = asyncio.run(work())
    assert (call["result"] or "").startswith("made\n[stderr]\n/bin/sh: 1: nothing: not found")
    assert (call["result"] or "").endswith("[exit code 127]")
    assert (folder / "file").read_text() == "made\n"


# -- without a container ----------------------------------------------------------------------------------------


def test_bubblewrap_that_is_not_installed_says_how_to_get_it() -> None:
    with pytest.raises(
        ContainerFailed, match=r"^'no-bwrap' is not installed; on Debian: apt-get install bub"
    ):
        Bubblewrap(command="no-bwrap")


def test_docker_without_a_daemon_says_so(tmp_path: Path) -> None:
    pytest.importorskip("docker")
    with pytest.raises(ContainerFailed, match=r"^docker: no daemon at unix://"):
        Docker("image", address=f"unix://{tmp_path}/none.sock")


@pytest.mark.parametrize("argv", ["ls", (), ("ls", "a\0b")])
def test_a_program_is_a_list_of_texts_without_nul(argv: tuple[str, ...]) -> None:
    with pytest.raises(BadInput):
        Program(argv=argv)


@table_test("limits", [{"seconds": 0}, {"memory": -1}, {"cpu": float("inf")}, {"processes": True}])
def test_limits_are_numbers_above_nothing(limits: dict[str, float]) -> None:
    with pytest.raises(BadInput, match="expected a number above 0"):
        Limits(**limits)  # type: ignore[arg-type]  # wrong on purpose


def test_a_scripted_container_answers_in_virtual_time() -> None:
    container = ScriptedContainer(
        [
            Answer(ended=Ended(exit=0, stdout="1 passed\n"), seconds=7.5, runs="pytest"),
            Answer(ended=Ended(exit=0), seconds=1000.0),
        ]
    )
    script = ScriptedLLM(
        {
            "agent": [
                tool_call("run_shell", command="pytest"),
                tool_call("run_shell", command="sleep 1000"),
                text("Done."),
            ]
        }
    )
    harness = AgentHarness(script, tools=[shell_tool(container, limits=Limits(seconds=30))])
    run = harness.run("Work.")
    assert [call["result"] for call in run.calls] == ["1 passed", "[killed: it took too long]"]
    assert harness.clock.now() == 37.5
    assert [program.argv[-1] for program in container.programs] == ["pytest", "sleep 1000"]
    with pytest.raises(ScriptExhausted, match=r"is call 3, but only 2 are scripted"):
        container.run(shell("more"))


def test_what_a_model_reads_says_how_a_program_ended() -> None:
    assert outcome_text(Ended(exit=0, stdout="fine\n")) == "fine"
    assert outcome_text(Ended(exit=None, signal=9, oom=True, stdout="a")) == "a\n[killed: out of memory]"
    assert outcome_text(Ended(exit=0, stdout="a", truncated=True)) == "a\n[further output was discarded]"
    assert Ended(exit=None, overfull=True).why == "killed: it wrote too much to a folder"
    assert Ended(exit=None, stopped=True).why == "killed: the caller stopped waiting"
    assert Ended(exit=None, signal=11).why == "killed by signal 11"


# -- the filter of calls ----------------------------------------------------------------------------------------


def answer(filter_: bytes, *, audit: int, number: int, flags: int = 0) -> int:
    """Run a filter as the kernel does, on one call; return what it says."""
    code = [struct.unpack_from("=HBBI", filter_, at) for at in range(0, len(filter_), 8)]
    call = struct.pack("=IIQ6Q", number, audit, 0, flags, 0, 0, 0, 0, 0)
    at, loaded = 0, 0
    while True:
        kind, yes, no, value = code[at]
        at += 1
        match kind:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", call, value)
            case 0x06:
                return int(value)
            case 0x15:
                at += yes if loaded == value else no
            case 0x35:
                at += yes if loaded >= value else no
            case 0x45:
                at += yes if loaded & value else no


ALLOWED, NOT_PERMITTED, NOT_THERE, KILLED = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


@pytest.mark.parametrize(
    ("machine", "audit", "column", "clone", "read"),
    [("x86_64", 0xC000003E, 0, 56, 0), ("aarch64", 0xC00000B7, 1, 220, 63)],
)
def test_the_filter_refuses_what_it_lists_and_nothing_else(
    machine: str, audit: int, column: int, clone: int, read: int
) -> None:
    code = seccomp.program(machine)
    assert code is not None
    refused = {numbers[column] for numbers in seccomp.refused_calls().values()}
    assert len(refused) == len(seccomp.refused_calls())
    socket = (41, 198)[column]
    for number in range(500):
        expected = (
            NOT_PERMITTED
            if number in refused or number == socket
            else NOT_THERE
            if number == 435
            else ALLOWED
        )
        assert answer(code, audit=audit, number=number) == expected, number
    assert answer(code, audit=audit, number=clone, flags=17) == ALLOWED
    families = {
        number for number in range(64) if answer(code, audit=audit, number=socket, flags=number) == ALLOWED
    }
    assert families == {1, 2, 10, 16}
    for bit in (7, 17, 25, 26, 27, 28, 29, 30):
        assert answer(code, audit=audit, number=clone, flags=17 | 1 << bit) == NOT_PERMITTED
    assert answer(code, audit=1, number=read) == KILLED
    assert answer(code, audit=audit, number=read | 0x40000000) == NOT_THERE


def test_there_is_no_filter_for_a_processor_without_a_table() -> None:
    assert seccomp.program("riscv64") is None
