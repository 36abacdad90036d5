"""Worker processes: results in order, and what hangs, grows or dies ends alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from statek_sim import progress
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed, Pool
from statek_sim.executors.worker import forget_credentials
from tests.tables import table_test

MIB = 2**20
TIGHT = WatchdogLimits(cpu=0.5, wall=30.0, memory=200 * MIB)


def work(what: str) -> str:
    """Do what a scenario should not."""
    progress.at("main", 3)
    match what:
        case "loop":
            while True:
                pass
        case "c code":
            # One call of C code, which no signal handler of Python's could interrupt.
            return str(len(str(7 ** (10**8) >> 3)))
        case "grow":
            return str(len(b"x" * (1024 * MIB)))
        case "die":
            os._exit(7)
        case "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ValueError("as asked")
        case "unsendable":
            raise Unsendable(1, 2)
        case "leave":
            sys.exit(3)
    return what


class Unsendable(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


class ReadOnce:
    """Can be written; making it again from what was written fails."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (int, ("no number",))


class NeverWritten:
    """Cannot be written."""

    def __reduce__(self) -> str:
        raise TypeError("this is not written")


def returned(what: object) -> object:
    """Return a number as it is, and a value that cannot be read for a text."""
    return ReadOnce() if isinstance(what, str) else what


def of(*works: str, limits: WatchdogLimits | None = TIGHT, workers: int = 2) -> list[str | Killed]:
    with Pool(work, limits=limits, workers=workers) as pool:
        return list(pool.map((each,) for each in works))


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_work(workers: int) -> None:
    works = [f"piece {number}" for number in range(100)]
    assert of(*works, workers=workers) == works


@table_test(
    ("what", "why"),
    [
        ("loop", "0.5 s CPU"),
        ("c code", "0.5 s CPU"),
        ("grow", "200 MiB of memory"),
        ("die", "its process ended with exit code 7"),
        ("crash", "its process was killed by SIGKILL"),
    ],
)
def test_what_goes_beyond_its_limits_is_killed_and_the_rest_goes_on(what: str, why: str) -> None:
    # Filling memory may take a slow machine longer than the limit of the others.
    limits = replace(TIGHT, cpu=20.0) if what == "grow" else TIGHT
    came = of("before", what, "after", "and after", limits=limits)
    assert came == ["before", Killed(why, "turn 3 of job main"), "after", "and after"]
    assert str(came[1]) == f"killed by the watchdog: {why} in turn 3 of job main"


def test_time_that_passes_without_work_is_limited_too() -> None:
    limits = WatchdogLimits(cpu=30.0, wall=0.3)
    with Pool(threading.Event().wait, limits=limits, workers=1) as pool:
        assert pool.run() == Killed("0.3 s passed", "")
        assert pool.run(0.0) is False


def test_what_a_piece_of_work_raises_is_raised_in_its_turn() -> None:
    with Pool(work, limits=TIGHT, workers=2) as pool:
        came = pool.map((each,) for each in ("first", "raise", "never seen"))
        assert next(came) == "first"
        with pytest.raises(ValueError, match=r"^as asked$"):
            next(came)


def test_an_exit_of_the_work_is_one_of_the_parent() -> None:
    with pytest.raises(SystemExit, match=r"^3$"):
        of("leave")


def test_an_error_that_cannot_be_sent_keeps_its_traceback() -> None:
    with pytest.raises(Exception, match=r"(?s)cannot be sent.*in work.*Unsendable: 1 and 2"):
        of("unsendable")


def test_a_result_that_cannot_be_read_shifts_no_other_result() -> None:
    with Pool(returned, limits=TIGHT, workers=1) as pool:
        numbers = [pool.submit(what) for what in (1, "unreadable", 2, 3)]
        assert pool.result(numbers[0]) == 1
        with pytest.raises(
            RuntimeError, match=r"(?s)^a worker's error or result cannot be sent .*'no number'"
        ):
            pool.result(numbers[1])
        assert [pool.result(number) for number in numbers[2:]] == [2, 3]


def test_arguments_that_cannot_be_sent_are_an_error_of_their_work_alone() -> None:
    with Pool(returned, limits=TIGHT, workers=1) as pool:
        numbers = [pool.submit(what) for what in (1, NeverWritten(), ReadOnce(), 2)]
        assert pool.result(numbers[0]) == 1
        with pytest.raises(TypeError, match=r"^this is not written$"):
            pool.result(numbers[1])
        with pytest.raises(ValueError, match=r"'no number'$"):
            pool.result(numbers[2])
        assert pool.result(numbers[3]) == 2


def test_a_worker_that_dies_between_two_pieces_of_work_is_replaced() -> None:
    with Pool(work, limits=TIGHT, workers=1) as pool:
        assert pool.run("first") == "first"
        for worker in pool._workers:
            worker.process.kill()
            worker.process.join()
        assert pool.run("second") == "second"


def dies_once(flag: str, what: str) -> str:
    """Die the first time that anybody does it."""
    if what == "poison" or not Path(flag).exists():
        with Path(flag).open("a") as told:
            told.write("died\n")
        os.kill(os.getpid(), signal.SIGKILL)
    return what


def test_work_whose_worker_was_killed_is_done_again(tmp_path: Path) -> None:
    flag = tmp_path / "died"
    works = [f"piece {number}" for number in range(40)]
    with Pool(dies_once, limits=TIGHT, workers=1) as pool:
        assert list(pool.map((str(flag), each) for each in works)) == works
    assert flag.read_text() == "died\n"


def dies_while_it_answers(flag: str) -> int:
    """Die once with an answer begun: it is longer than a pipe holds, and nobody reads it yet."""
    if not Path(flag).exists():
        Path(flag).touch()
        threading.Timer(0.2, os._exit, (7,)).start()
    return LongAnswer()


class LongAnswer(int):
    """What takes megabytes to send and is a small number for whoever gets it."""

    def __reduce__(self) -> tuple[object, ...]:
        return (len, (b"x" * (8 * MIB),))


def test_work_whose_answer_was_cut_off_is_done_again(tmp_path: Path) -> None:
    with Pool(dies_while_it_answers, limits=TIGHT, workers=1) as pool:
        number = pool.submit(str(tmp_path / "died"))
        [worker] = pool._workers
        worker.process.join(30)
        assert worker.process.exitcode == 7
        assert pool.result(number) == 8 * MIB


def test_work_that_kills_two_workers_is_named_and_the_rest_is_done(tmp_path: Path) -> None:
    flag = tmp_path / "died"
    flag.touch()
    with Pool(dies_once, limits=None, workers=2) as pool:
        came = list(pool.map((str(flag), each) for each in ["first", "poison", *map(str, range(30))]))
    assert came == ["first", Killed("its process was killed by SIGKILL", ""), *map(str, range(30))]
    assert flag.read_text() == "died\n" * 2


def test_work_can_be_submitted_while_other_work_is_mapped() -> None:
    with Pool(work, limits=TIGHT, workers=2) as pool:
        first, poison = pool.submit("first"), pool.submit("die")
        mapped = pool.map((str(number),) for number in range(40))
        assert next(mapped) == "0"
        mapped.close()  # type: ignore[attr-defined]  # it is a generator
        assert isinstance(pool.result(poison), Killed)
        assert pool.result(first) == "first"
        with pytest.raises(ValueError, match=r"^no task 0, or its result was already returned$"):
            pool.result(first)


def test_workers_that_die_all_the_time_end_their_own_work_only() -> None:
    works = ["die" if number % 5 == 0 else f"piece {number}" for number in range(60)]
    came = of(*works)
    assert [each for each in came if not isinstance(each, Killed)] == [
        each for each in works if each != "die"
    ]


def several(times: int) -> int:
    """Use more processor time than one run may, in several runs."""
    done = 0
    for _ in range(times):
        progress.afresh()
        done += sum(1 for _ in range(3_000_000)) > 0
    return done


def test_limits_are_those_of_one_run_where_a_piece_of_work_has_several() -> None:
    with Pool(several, limits=WatchdogLimits(cpu=1.0, wall=60.0), workers=1) as pool:
        assert pool.run(30) == 30


def test_who_stops_listening_leaves_no_process_at_work() -> None:
    with Pool(work, limits=None, workers=2) as pool:
        came: Iterator[str | Killed] = pool.map((each,) for each in ("first", "loop", "loop"))
        assert next(came) == "first"
        came.close()  # type: ignore[attr-defined]  # it is a generator
        assert list(pool.map([("again",)])) == ["again"]


def test_workers_start_fresh_where_other_threads_could_hold_locks() -> None:
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        with Pool(pow, limits=TIGHT, workers=2) as pool:
            came = list(pool.map([(7, 2), (7, 10**9), (7, 3)]))
        assert came == [49, Killed("0.5 s CPU", ""), 343]
    finally:
        done.set()
        other.join()


def test_workers_do_not_outlive_their_parent() -> None:
    code = (
        "import os, sys; from statek_sim.executors.pool import Pool\n"
        "pool = Pool(os.getpid, limits=None, workers=1); print(pool.run(), flush=True); os._exit(0)"
    )
    worker = int(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )
    for _ in range(200):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        threading.Event().wait(0.05)
    pytest.fail(f"worker {worker} is still there")


LOADED: list[str] = []


def loaded(_: int) -> list[str]:
    return [*LOADED]


@pytest.mark.skipif(sys.platform != "linux", reason="workers are copies of their parent on Linux")
def test_what_all_workers_would_load_is_loaded_once_before_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "LOADED", [])
    with Pool(loaded, limits=TIGHT, workers=2, prepare=lambda: LOADED.append("vocabulary")) as pool:
        assert list(pool.map((number,) for number in range(4))) == [["vocabulary"]] * 4
        assert LOADED == ["vocabulary"]


def test_work_that_returns_none_is_done_once(tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def noted() -> None:
        with calls.open("a") as file:
            file.write(".")

    with Pool(noted, limits=None, workers=1) as pool:
        assert pool.run() is None
    assert calls.read_text() == "."


def four_times(text: str) -> str:
    return text * 4


@pytest.mark.parametrize("length", [15_000, 60_000, 300_000])
def test_large_work_and_large_answers_do_not_wait_for_each_other(length: int) -> None:
    """Both ends of a pipe would write, and neither read."""
    with Pool(four_times, limits=TIGHT, workers=2) as pool:
        answers = list(pool.map([("x" * length,)] * 60))
    assert [len(answer) for answer in answers if isinstance(answer, str)] == [4 * length] * 60


def test_credentials_are_taken_out_of_an_environment_and_nothing_else() -> None:
    kept = {
        "PATH": "/bin",
        "PWD": "/",
        "STATEK_MAX_TOKEN_USAGE": "1",
        "MAX_TOKENS": "2",
        "KEYBOARD": "us",
        "MONKEY_NAME": "a",
        "OLDPWD": "/tmp",
        "HOME_URL": "https://h.test/a@b:1",
    }
    secret = [
        "OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "PGPASSWORD", "DB_PASSWD",
        "GOOGLE_APPLICATION_CREDENTIALS", "my_secret", "SSH_AUTH_SOCK", "API_KEY_2", "SECRET_FILE", "GH_PAT",
        "MYSQL_PASS", "DB_PWD", "SESSION_COOKIE",
    ]  # fmt: skip
    environment = {**kept, **dict.fromkeys(secret, "x"), "DATABASE_URL": "postgresql://me:plum@h.test/db"}
    forget_credentials(environment)
    assert environment == kept


def test_workers_have_no_credentials_in_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "the-key")
    monkeypatch.setenv("SOME_PLACE", "here")
    with Pool(os.environ.get, limits=TIGHT, workers=1) as pool:
        assert list(pool.map([("SOME_API_KEY",), ("SOME_PLACE",)])) == [None, "here"]
