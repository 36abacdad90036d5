"""How a job's log becomes the messages of a request, and what its user has been told."""
