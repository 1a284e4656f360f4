"""Which nodes are alive, which node numbers a log, and how a client finds it."""
