"""Running suites of scenarios: selection, runs, comparison with expectations, and texts about failures."""
