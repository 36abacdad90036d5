"""Containers for programs that a model wrote or requested: bubblewrap, Docker, and scripted ones for tests."""
