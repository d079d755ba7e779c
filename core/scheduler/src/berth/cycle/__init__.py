"""Floor 4: the scheduling cycle, from a popped pod to a chosen node."""
