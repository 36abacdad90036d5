"""The reference runtime: STATEK's jobs, tools, futures, handlers and subtasks in a single in-memory process."""
