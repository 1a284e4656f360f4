"""A node's sequencers: one for each log, with the epoch store and the metadata logs they need."""
