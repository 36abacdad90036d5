"""The gate: runs scenarios to check that presets comply with a policy and are no worse than a baseline.

`policy` rules · `gated_preset` presets and the `.env` files next to them · `gate` the plan and all verdicts · `trial` a
scenario's runs · `judge` one verdict · `verdict` results · `baseline` comparison with a baseline · `evals_policy`
rules for evals.
"""
