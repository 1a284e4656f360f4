"""The benchmarks that `logdevice bench` runs. The two folders hold benchmarks for developers."""
