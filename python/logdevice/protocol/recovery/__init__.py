"""What a new sequencer does with earlier epochs: every LSN becomes a record or a hole."""
