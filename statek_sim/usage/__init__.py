"""Usage of jobs: bytes as STATEK counts them, tokens measured here, tokens as reported, and costs."""
