"""Tools and their descriptions for models: declaration, wire text, scope, futures in arguments."""
