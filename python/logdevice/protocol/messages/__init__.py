"""The messages that processes send to each other: plain values, one file for each subject."""
