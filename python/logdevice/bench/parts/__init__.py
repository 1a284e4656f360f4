"""Benchmarks of single parts: the machines, the store, the wire, a scan in Spark."""
