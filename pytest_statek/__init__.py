"""The pytest plugin: runs scenario suites as test items, and provides fixtures for testing agents and their tools."""
