"""One reader's stream as a storage node sees it: what to read, and which copies to send."""
