"""What processes say to each other: plain values, one file for each subject."""
