"""A cluster of processes on this machine: its directory, ports and nodes; and how to ask each node."""
