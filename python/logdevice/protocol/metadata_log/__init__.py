"""The history of a log's nodesets, kept by the storage nodes like any log."""
