"""What users write as options: checked once, kept as values."""
