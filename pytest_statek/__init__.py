"""The pytest plugin: scenario suites as test items, and fixtures for testing agents and their tools."""
