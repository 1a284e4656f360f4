"""The requests that a node answers: one table of handlers, and the services that it calls."""
