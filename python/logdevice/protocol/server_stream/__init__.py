"""One reader's stream on a storage node: what to read, which copies to send."""
