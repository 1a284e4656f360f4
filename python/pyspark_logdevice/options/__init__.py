"""The options of the Spark source and sink: checked once, and kept as values."""
