"""Whether an event makes a waiting pod worth another attempt: hints, of this process and of sidecars."""
