"""What single parts cost: the machines, the store, the wire, a scan in Spark."""
