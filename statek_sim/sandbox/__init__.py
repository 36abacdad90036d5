"""Checks, compiles and limits model-written code.

`policy` decides which code is allowed. `compile` turns a reply into executable statements, which use
`helpers`, `operators` and `modules`. `budget` and `time_limit` stop runaway code, and `llm_repr` displays
values. The sandbox makes model-written code deterministic. It is not a security boundary.
"""
