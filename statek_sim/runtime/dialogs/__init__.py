"""What is said to the model and back: dialogs, chat logs, markup, requests, post-processors."""
