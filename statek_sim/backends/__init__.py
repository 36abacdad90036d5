"""Engines that run scenarios, and the results of runs.

`run` chooses the engine: `reference` is the reference runtime, `agent` the tool-calling agent. `installed`
runs scenarios and application tests on the real `statek` package. `driver` creates jobs and executes events
on any runtime. `record` defines a run's results, `deviation_plan` the deviations from the uninterrupted run,
and `durable` runs that survive their process.
"""
