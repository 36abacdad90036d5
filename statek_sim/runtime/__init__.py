"""The reference runtime: STATEK's jobs, tools, futures, handlers and subtasks in one in-memory process."""
