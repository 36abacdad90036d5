"""The gate: checks that presets meet the rules of a policy on scenarios, and are no worse than a baseline.

`policy` the rules · `gated_preset` presets and the `.env` next to them · `gate` the plan and all verdicts · `trial` the
runs of a scenario · `needs` the limits that a scenario needs · `judge` one verdict · `verdict` results · `baseline`
comparison with a baseline · `evals_policy` rules for evals.
"""
