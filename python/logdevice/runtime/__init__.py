"""What runs a machine in a process: its host, clocks, tasks."""
