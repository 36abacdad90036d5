"""What a tool is and what models are told about it: declaration, wire text, scope, futures in its arguments."""
