"""What the next batch reads: decided on the driver, and checkpointed as offsets."""
