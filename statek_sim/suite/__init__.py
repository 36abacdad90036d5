"""Running scenario suites: select, run, compare with what was expected, tell what differs."""
