"""Benchmarks, all of them: what `logdevice bench` runs, and in two folders what developers run."""
