"""Floor 2: the contracts of every extension point, statuses, cycle state, events and hints."""
