"""The pytest plugin: scenario suites as test items, and fixtures for tests of agents and their tools."""
