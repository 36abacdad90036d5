"""Model-written code: its policy, compilation and limits.

`policy` decides what is allowed, `compile` turns a reply into statements to execute, `helpers`, `operators` and
`modules` are what those statements use, `budget` and `time_limit` stop them, `llm_repr` displays their values. It makes
model code deterministic and stops runaway code; it is not a security boundary.
"""
