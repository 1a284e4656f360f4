"""What a node answers: one table of handlers, and the services behind it."""
