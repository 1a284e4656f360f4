"""What the next batch reads: decided on the driver, checkpointed as offsets."""
