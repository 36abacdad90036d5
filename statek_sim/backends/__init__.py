"""Engines that run scenarios, and the results of a run.

`run` chooses the engine: `reference` is the reference runtime, `agent` the agent that calls tools.
`installed` runs scenarios and application tests on the real `statek` package. `driver` creates jobs and
executes events on any runtime. `record` holds a run's results, `deviation_plan` its deviations from the
uninterrupted run, and `durable` a run that survives its process.
"""
