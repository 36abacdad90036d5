"""What jobs use: bytes as STATEK counts them, tokens measured here, tokens as reported, and what they cost."""
