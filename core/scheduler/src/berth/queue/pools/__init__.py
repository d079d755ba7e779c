"""Where pods wait: heaps in the order of activeQ and of backoffs, the unschedulable pods, those in flight."""
