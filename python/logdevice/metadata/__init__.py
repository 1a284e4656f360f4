"""What a cluster must agree on: epochs, nodes, the log directory, writers' incarnations.

`EpochStore` is the interface, `open_epoch_store` chooses a backend by its address; `LogDirectory` is the tree
of logs, a pure value. docs/metadata.md says what is kept where, and why.
"""
