"""Queueing by sidecars: hints for events, requeues on their own, sort keys."""
