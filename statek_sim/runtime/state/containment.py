"""Ways in which a job step ends that STATEK itself has no word for."""

from __future__ import annotations


class Contained(Exception):
    """Model-written code that STATEK could neither stop nor survive was stopped; the job ends with this error."""


class Escaped(Exception):
    """STATEK's worker failed while it recorded a failure: the job stays as it is, and its step is taken again."""


class WorkerKilled(BaseException):
    """The worker process died at this point; what was not yet written down is lost. Nothing may catch it."""
