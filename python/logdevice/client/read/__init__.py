"""One log, several logs, a key; whether what was read still holds."""
