"""Which nodes are alive, which one numbers a log, and how a client finds it."""
