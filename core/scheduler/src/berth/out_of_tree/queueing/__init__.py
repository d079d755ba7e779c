"""What a plugin says about the queue: hints for events, requeues of its own, sort keys."""
