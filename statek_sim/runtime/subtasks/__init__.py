"""Work that a job hands to another: delegation, subtasks, and how they report back."""
