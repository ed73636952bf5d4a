"""The kernel's own agent type."""
