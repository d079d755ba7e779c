"""Floor 4: activeQ, backoffQ, unschedulable pods and what is in flight."""
