"""A scheduler's recording, played again."""
