"""Usage of jobs: bytes as STATEK counts them, measured tokens, reported tokens, and costs."""
