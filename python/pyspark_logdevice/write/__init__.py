"""The sink: rows become tagged appends, and each is in the log exactly once."""
