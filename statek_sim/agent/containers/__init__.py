"""Where programs run that a model wrote or asked for: bubblewrap, Docker, and scripted ones for tests."""
