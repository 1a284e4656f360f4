"""Decides, on the driver, what the next batch of a query reads. The checkpoint keeps it as offsets."""
