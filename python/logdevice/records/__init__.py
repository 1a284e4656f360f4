"""What is in a record: its bytes on disk and wire, its body as a batch of entries, the tags of its writer."""
