"""What the calls of an agent may touch: rules of paths, hosts and commands, and files that are held to them."""
