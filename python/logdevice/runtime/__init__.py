"""What runs a machine in a process: its host, the clocks, and tasks that end with their owner."""
