"""What one crash adds, and one crash played alone, by `statek-sim explore`."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.cli import main
from tests.unit.gate_samples import WORKLOADS, written


def explored(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["explore", str(path), "--select", "short", *words])
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


def test_what_one_crash_adds_can_be_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "workloads.yaml", WORKLOADS)
    code, out, _ = explored(capsys, path, "--kind", "crashes", "--max-crash-tokens", "0")
    assert code == 1
    assert "FAILED short: one crash adds " in out
    assert explored(capsys, path, "--kind", "crashes", "--max-crash-tokens", "100000")[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--kill", "x"), "--kill 'x': expected the number of an event, like 17, or 17+2"),
        (("--kill", "5", "--kind", "orders"), "--kill: remove --kind"),
        (("--kill", "9999"), "--kill 9999: none of the chosen scenarios has this event"),
    ],
)
def test_a_crash_that_cannot_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    code, _, err = explored(capsys, written(tmp_path, "workloads.yaml", WORKLOADS), *words)
    assert code == 2
    assert told in err
