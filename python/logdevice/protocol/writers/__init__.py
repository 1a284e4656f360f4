"""Named writers: appends with a tag, each in the log once however often it is sent."""
