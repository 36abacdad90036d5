"""Model-written code: its policy, compilation and limits.

`policy` decides what is allowed, `compile` turns a reply into statements to execute, `helpers`, `operators` and
`modules` are what those statements use, `budget` and `time_limit` stop them, `llm_repr` displays their values. This
keeps honest model code deterministic and runaway code bounded; it is not a security boundary.
"""
