"""What single parts cost: the machines, the store, the wire, the scan in Spark. Not in the wheel."""
