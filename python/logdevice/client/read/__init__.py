"""The calls that read: one log, several logs, the search for a key; and the check of a saved position."""
