"""From a connection's name to a model that answers."""
