"""The parts of a job, without the job: status, counters, log, workspace, futures, handlers, and the current context."""
