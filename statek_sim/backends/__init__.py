"""Running a scenario on an engine, and what a run leaves behind.

`run` picks the engine: `reference` is the reference runtime, `agent` the agent that calls tools. `installed` runs
scenarios and tests of applications on the real `statek` package. `driver` makes jobs and events on any runtime.
`record` is what a run left behind, `deviation_plan` where it departs from the undisturbed one, `durable` a run that
survives its process.
"""
