"""A node's sequencers, one for each log, and what they use: the epoch store and the metadata logs."""
