"""Three specialists and a critic review a change on one inference slot."""
