"""The sample reports that are committed are those of today: `make report` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.sample_report import FOLDER, ROOT, write


@pytest.mark.slow
def test_the_committed_samples_are_what_make_report_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert write(tmp_path) == 0
    for name in ("report.html", "report.md", "evals.html"):
        same = (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()
        assert same, f"{name} is not what this version writes: run `make report`, and commit it"


@pytest.mark.parametrize("name", ["report.html", "evals.html"])
def test_a_committed_page_is_small_enough_to_be_sent(name: str) -> None:
    assert (FOLDER / name).stat().st_size < 3_000_000
