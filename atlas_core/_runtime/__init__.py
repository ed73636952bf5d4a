"""Private: the loop and what it stands on."""
