"""The parts of a job, without the job itself: status, counters, log, workspace, futures, handlers, current context."""
