"""The gate's result as GitHub workflow commands: annotations on the lines of preset files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from statek_sim.gate.verdict import GateResult, Place


def gate_annotations(result: GateResult, folder: Path) -> Iterator[str]:
    """Yield a line for every failure and every remark; files in `folder`, the checkout, are named from there."""
    for verdict in result.failed:
        title = f"statek-sim gate: {verdict.rule}"
        yield annotation("error", verdict.place, folder, title=title, message=verdict.reason)
    for remark in result.remarks:
        yield annotation("warning", remark.place, folder, title="statek-sim gate", message=remark.message)


def annotation(level: str, place: Place, folder: Path, *, title: str, message: str) -> str:
    """Return one workflow command, escaped as GitHub demands: values of properties more than the message."""
    path = Path(os.path.abspath(folder / place.path))
    base = Path(os.path.abspath(folder))
    shown = path.relative_to(base) if path.is_relative_to(base) else path
    properties = {"file": shown.as_posix(), "line": str(place.line), "title": title}
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {told}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
