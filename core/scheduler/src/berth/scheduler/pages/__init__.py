"""What the secure port shows of a scheduler: status, sizes, cache, explanations."""
