"""Ways in which a job step ends that STATEK itself has no word for."""

from __future__ import annotations

from typing import Final


class Contained(Exception):
    """Model-written code that STATEK could neither stop nor survive was stopped; the job ends with this error."""


class Escaped(Exception):
    """STATEK's worker failed while it recorded a failure: the job stays as it is, and its step is taken again."""


class Unlogged(Exception):
    """The store refused what a tool call left, with `error`: the job crashes with that, whatever its code did."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class WorkerKilled(BaseException):
    """The worker process died at this point; what was not yet written down is lost. Nothing may catch it."""


class RunLost(BaseException):
    """The run could not be made durable at this point, so that nothing after it may become part of its history.

    `error` says why. Not an `Exception`: for the code of a model, a tool or a handler it would be an error to live on
    with.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


PASSING: Final = (KeyboardInterrupt, GeneratorExit, RunLost)
"""What ends neither a block nor a tool, but the whole run or the process: it is told of nowhere, and passes."""
