"""Which executor the words of `--executor` mean."""

from __future__ import annotations

import re
from typing import Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.executors.executor import Executor
from statek_sim.executors.processes import ProcessExecutor
from statek_sim.executors.serial import SerialExecutor

SERIAL, PROCESSES, DASK = "serial", "processes", "dask"
_ADDRESS: Final = re.compile(r"(?:(?:tcp|tls)://)?[^\s:/]+:\d+")


def executor_for(text: str | None, *, workers: int | None = None) -> Executor:
    """Return what `serial`, `processes`, `processes:4` or `dask:HOST:PORT` asks for; None: processes.

    `workers` is the number of processes that another option asks for. Raises BadInput for anything else.
    """
    if text is None:
        return ProcessExecutor(workers)
    if workers is not None:
        raise BadInput(f"--executor {text}: leave out the number of processes, or say processes:{workers}")
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
        raise BadInput(f"--executor {text}: expected a number of processes above 0, such as processes:4")
    return int(number)


def _dask(text: str, address: str) -> Executor:
    if not _ADDRESS.fullmatch(address):
        raise BadInput(f"--executor {text}: expected the scheduler's address, such as dask:127.0.0.1:8786")
    try:
        # Optional, and a second to import.
        from statek_sim.executors.dask_cluster import DaskExecutor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        raise BadInput(f"--executor {text}: needs pip install 'pytest-statek[dask]'") from None
    return DaskExecutor(address)
