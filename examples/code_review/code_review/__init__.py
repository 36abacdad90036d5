"""Three specialists and a critic review a change, sharing one inference slot."""
