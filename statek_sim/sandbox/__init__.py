"""Model-written code: its policy, compilation and limits.

`policy` decides which code is allowed. `compile` turns a reply into executable statements, which use `helpers`,
`operators` and `modules`. `budget` and `time_limit` stop runaway code, and `llm_repr` displays values. The sandbox
makes model-written code deterministic; it is not a security boundary.
"""
