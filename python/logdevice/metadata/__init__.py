"""The epoch store: what a cluster must agree on, such as epochs, nodes, the log directory, incarnations.

`EpochStore` is the interface, and `open_epoch_store` chooses a backend by its address. `LogDirectory` is the
tree of logs, an immutable value. docs/metadata.md says what is kept where, and why.
"""
