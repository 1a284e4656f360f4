"""One reader's stream on a storage node: what to read, and which copies to send."""
