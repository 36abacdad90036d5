"""Selects the executor for the `--executor` option."""

from __future__ import annotations

import re
from typing import Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.executors.executor import Executor, ProcessExecutor, SerialExecutor

SERIAL, PROCESSES, DASK = "serial", "processes", "dask"
_ADDRESS: Final = re.compile(r"(?:(?:tcp|tls)://)?[^\s:/]+:\d+")


def executor_for(text: str | None) -> Executor:
    """Return the executor for `serial`, `processes`, `processes:4` or `dask:HOST:PORT`; None means `processes`.

    Raises BadInput for any other text.
    """
    if text is None:
        return ProcessExecutor()
    name, colon, rest = text.partition(":")
    if name == SERIAL and not colon:
        return SerialExecutor()
    if name == PROCESSES:
        return ProcessExecutor(_number(text, rest) if colon else None)
    if name == DASK:
        return _dask(text, rest)
    hint = suggestion(name, (SERIAL, PROCESSES, DASK))
    raise BadInput(f"--executor {text}: expected serial, processes, processes:N or dask:HOST:PORT.{hint}")


def _number(text: str, number: str) -> int:
    if not number.isascii() or not number.isdigit() or not int(number):
        raise BadInput(f"--executor {text}: expected 1 or more processes, such as processes:4")
    return int(number)


def _dask(text: str, address: str) -> Executor:
    if not _ADDRESS.fullmatch(address):
        raise BadInput(f"--executor {text}: expected the scheduler's address, such as dask:127.0.0.1:8786")
    try:
        # Imported here because it is optional and takes a second to import.
        from statek_sim.executors.dask_cluster import DaskExecutor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        raise BadInput(f"--executor {text}: run pip install 'pytest-statek[dask]' first") from None
    return DaskExecutor(address)
