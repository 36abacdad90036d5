"""The parts of a job: status, counters, log, workspace, futures, handlers and the current context."""
