"""What a conversation costs: bytes as STATEK counts them, tokens measured here, tokens as reported."""
