"""A node's sequencers, one for each log, and what they ask: epoch store, metadata logs."""
