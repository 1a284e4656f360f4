"""The sink: rows become tagged appends, each in the log once."""
