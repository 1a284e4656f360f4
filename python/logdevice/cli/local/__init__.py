"""A cluster of processes on this machine: its directory, its ports, its nodes."""
