"""What model code can call: declared tools, built-in ones, their documentation, scope and calls."""
