"""What a harness is worth: tasks with a world of their own, who works on them, and how sure the numbers are."""
