"""Reading: one log, several logs, a key, and whether what was read still holds."""
