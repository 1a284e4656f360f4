"""Benchmarks: what `logdevice bench` runs. Developers' ones are in the two folders."""
