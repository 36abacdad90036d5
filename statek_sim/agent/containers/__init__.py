"""Containers for programs written or requested by a model: bubblewrap, Docker, and scripted ones for tests."""
