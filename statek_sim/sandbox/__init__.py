"""Model-written code: what it may say, how it is compiled, and how much it may do.

`policy` decides what is allowed, `compile` turns a reply into statements to execute, `helpers`, `operators` and
`modules` are what those statements see, `budget` and `time_limit` stop them, `llm_repr` shows their values. This keeps
honest model code deterministic and runaway code bounded; it is no security boundary.
"""
