"""What processes say to each other: plain values, by the subject they are about."""
