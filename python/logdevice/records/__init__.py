"""A record as bytes: header, body as a batch of entries, tags of named writers."""
