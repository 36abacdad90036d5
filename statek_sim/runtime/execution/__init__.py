"""Job execution: the runtime, the scheduler, job steps, model requests, and the built-in tools."""
