"""Writers: appends with a tag, which are in the log once however often they are sent."""
