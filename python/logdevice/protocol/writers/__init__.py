"""Named writers: appends with a tag. Each is in the log once, however often it is sent."""
