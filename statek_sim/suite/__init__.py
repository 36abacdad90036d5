"""Running scenario suites: select, run, compare with expectations, describe differences."""
