"""Floor 4: the pod-group cycle, from one popped pod to a decision on its whole group."""
