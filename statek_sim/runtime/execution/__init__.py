"""The execution of jobs: the runtime, the scheduler, steps of jobs, model requests, and the built-in tools."""
